//! The two ends of an AXI4-Stream, with idle cycles and back-pressure, and its rules checked.
//!
//! In each clock: [`Source::drive`] and [`Sink::drive`], [`Dut::settle`], [`Source::observe`] and [`Sink::observe`],
//! [`Dut::edge`].

use crate::dut::{Dut, Port};
use crate::rng::Rng;
use std::collections::VecDeque;

/// Most words of `tuser`.
const USER_WORDS: usize = 4;
/// Bytes of the widest stream.
const MAX_BYTES: usize = 64;
/// More bytes than any frame has: without a bound a fault that never ends a frame would be followed for ever.
const ENDLESS: usize = 1 << 18;

/// When a side of a stream does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Never.
    Never,
    /// In each clock with this chance in percent.
    Percent(u64),
    /// For stretches of up to this many clocks, between stretches of the same kind without.
    Bursts(u64),
}

/// A [`Pause`] in progress.
#[derive(Debug)]
pub(crate) struct Pacer {
    pause: Pause,
    left: u64,
    is_pausing: bool,
}

impl Pacer {
    pub fn new(pause: Pause) -> Self {
        Pacer { pause, left: 0, is_pausing: false }
    }

    pub fn pauses(&mut self, rng: &mut Rng) -> bool {
        match self.pause {
            Pause::Never => false,
            Pause::Percent(percent) => rng.chance(percent),
            Pause::Bursts(most) => {
                if self.left == 0 {
                    self.is_pausing = !self.is_pausing;
                    self.left = 1 + rng.below(most);
                }
                self.left -= 1;
                self.is_pausing
            }
        }
    }
}

/// In which beats of a frame `tuser` means something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserAt {
    /// In all of them.
    Every,
    /// In the last; the others carry random bits.
    Last,
}

/// The ports of a stream.
#[derive(Debug)]
struct Ports {
    data: Port,
    keep: Port,
    valid: Port,
    ready: Port,
    last: Port,
    user: Option<Port>,
    bytes: usize,
}

impl Ports {
    fn of(dut: &Dut, prefix: &str) -> Result<Ports, String> {
        let data = dut.port(&format!("{prefix}_tdata"))?;
        let user = format!("{prefix}_tuser");
        let user = if dut.has_port(&user) { Some(dut.port(&user)?) } else { None };
        let bytes = dut.bits(data) as usize / 8;
        if bytes > MAX_BYTES || user.is_some_and(|user| dut.bits(user) as usize > 32 * USER_WORDS) {
            return Err(format!("stream {prefix} is wider than 512 bits of data or 128 of tuser"));
        }
        Ok(Ports {
            data,
            keep: dut.port(&format!("{prefix}_tkeep"))?,
            valid: dut.port(&format!("{prefix}_tvalid"))?,
            ready: dut.port(&format!("{prefix}_tready"))?,
            last: dut.port(&format!("{prefix}_tlast"))?,
            user,
            bytes,
        })
    }
}

/// What drives a block's input stream.
#[derive(Debug)]
pub struct Source {
    ports: Ports,
    pacer: Pacer,
    user_at: UserAt,
    rng: Rng,
    waiting: VecDeque<(Vec<u8>, [u32; USER_WORDS])>,
    /// Bytes of the first waiting frame that have been taken.
    taken: usize,
    is_offering: bool,
    sent: u64,
}

impl Source {
    /// The stream whose ports begin with `prefix` (`s_axis`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str, pause: Pause, user_at: UserAt, seed: u64) -> Result<Self, String> {
        Ok(Source {
            ports: Ports::of(dut, prefix)?,
            pacer: Pacer::new(pause),
            user_at,
            rng: Rng::new(seed),
            waiting: VecDeque::new(),
            taken: 0,
            is_offering: false,
            sent: 0,
        })
    }

    /// Queues a frame, which is not empty.
    pub fn push(&mut self, frame: Vec<u8>, user: [u32; USER_WORDS]) {
        assert!(!frame.is_empty(), "a frame has at least one byte");
        self.waiting.push_back((frame, user));
    }

    /// Frames that have not been taken completely.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Frames that have been taken completely.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sets the inputs for this clock. What has been offered stays until it is taken.
    pub fn drive(&mut self, dut: &mut Dut) {
        let Some((frame, user)) = self.waiting.front() else {
            self.is_offering = false;
            return dut.set(self.ports.valid, 0);
        };
        if self.is_offering {
            return;
        }
        self.is_offering = !self.pacer.pauses(&mut self.rng);
        dut.set(self.ports.valid, u64::from(self.is_offering));
        // What is not valid must not matter.
        let mut bytes = [0; MAX_BYTES];
        let mut words = *user;
        let rest = &frame[self.taken..];
        let count = rest.len().min(self.ports.bytes);
        let last = rest.len() <= self.ports.bytes;
        self.rng.fill(&mut bytes[..self.ports.bytes]);
        if self.is_offering {
            bytes[..count].copy_from_slice(&rest[..count]);
        }
        if !self.is_offering || (self.user_at == UserAt::Last && !last) {
            words = core::array::from_fn(|_| self.rng.bits() as u32);
        }
        let (keep, last) = if self.is_offering {
            (u64::MAX >> (64 - count), last)
        } else {
            (self.rng.bits(), self.rng.chance(50))
        };
        let data: [u32; MAX_BYTES / 4] = core::array::from_fn(|at| {
            u32::from_le_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
        });
        dut.set_wide(self.ports.data, &data);
        dut.set(self.ports.keep, keep);
        dut.set(self.ports.last, u64::from(last));
        if let Some(port) = self.ports.user {
            dut.set_wide(port, &words);
        }
    }

    /// Sees whether the block takes what is offered.
    pub fn observe(&mut self, dut: &Dut) {
        if !self.is_offering || dut.get(self.ports.ready) == 0 {
            return;
        }
        self.is_offering = false;
        self.taken += self.ports.bytes;
        if self.waiting.front().is_some_and(|(frame, _)| self.taken >= frame.len()) {
            self.waiting.pop_front();
            self.taken = 0;
            self.sent += 1;
        }
    }
}

/// A frame that came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its bytes.
    pub data: Vec<u8>,
    /// `tuser` in its last beat.
    pub user: [u32; USER_WORDS],
    /// Whether `tuser` was the same in every beat.
    pub user_constant: bool,
    /// The clock of its first beat.
    pub first_cycle: u64,
    /// The clock of its last beat.
    pub last_cycle: u64,
}

/// A rule of the stream that the block broke (AMBA AXI4-Stream, section 2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamFault(pub String);

/// What a block's output stream goes to.
#[derive(Debug)]
pub struct Sink {
    ports: Ports,
    pacer: Pacer,
    rng: Rng,
    received: VecDeque<Received>,
    current: Option<Received>,
    is_ready: bool,
    /// What was offered in the last clock and not taken.
    stalled: Option<([u8; MAX_BYTES], u64, bool, [u32; USER_WORDS])>,
    fault: Option<StreamFault>,
    count: u64,
    /// More bytes than any frame has.
    endless: usize,
}

impl Sink {
    /// The stream whose ports begin with `prefix` (`m_axis`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str, pause: Pause, seed: u64) -> Result<Self, String> {
        Ok(Sink {
            ports: Ports::of(dut, prefix)?,
            pacer: Pacer::new(pause),
            rng: Rng::new(seed),
            received: VecDeque::new(),
            current: None,
            is_ready: false,
            stalled: None,
            fault: None,
            count: 0,
            endless: ENDLESS,
        })
    }

    /// Takes the next frame that has come out.
    ///
    /// # Errors
    /// The first rule of the stream that was broken.
    pub fn pop(&mut self) -> Result<Option<Received>, StreamFault> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(self.received.pop_front()),
        }
    }

    /// Takes frames of up to so many bytes; without this they end below 256 KiB.
    pub fn allow(&mut self, bytes: usize) {
        self.endless = bytes;
    }

    /// Frames that have come out.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a frame has begun and not ended.
    pub fn is_in_frame(&self) -> bool {
        self.current.is_some()
    }

    /// Sets ready for this clock.
    pub fn drive(&mut self, dut: &mut Dut) {
        self.is_ready = !self.pacer.pauses(&mut self.rng);
        dut.set(self.ports.ready, u64::from(self.is_ready));
    }

    /// Sees what is offered.
    pub fn observe(&mut self, dut: &Dut) {
        if dut.get(self.ports.valid) == 0 {
            if self.stalled.take().is_some() {
                self.breaks(dut, "tvalid fell before tready");
            }
            return;
        }
        let mut words = [0; MAX_BYTES / 4];
        dut.read_words(self.ports.data, &mut words);
        let mut data = [0; MAX_BYTES];
        for (to, word) in data.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let keep = dut.get(self.ports.keep);
        let last = dut.get(self.ports.last) != 0;
        let user = self.ports.user.map_or([0; USER_WORDS], |port| dut.get_wide(port));
        let offered = (data, keep, last, user);
        if self.stalled.take().is_some_and(|before| before != offered) {
            self.breaks(dut, "what was offered changed before tready");
        }
        if !self.is_ready {
            self.stalled = Some(offered);
            return;
        }
        let count = keep.trailing_ones() as usize;
        if count == 0 || keep != u64::MAX >> (64 - count) || (!last && count != self.ports.bytes) {
            self.breaks(dut, &format!("tkeep {keep:#x} with tlast {last}"));
        }
        let cycle = dut.cycles();
        let current = self.current.get_or_insert_with(|| Received {
            data: Vec::new(),
            user,
            user_constant: true,
            first_cycle: cycle,
            last_cycle: cycle,
        });
        current.data.extend_from_slice(&data[..count.min(self.ports.bytes)]);
        current.user_constant &= current.user == user;
        current.user = user;
        current.last_cycle = cycle;
        let is_endless = current.data.len() > self.endless;
        if last {
            self.count += 1;
            self.received.extend(self.current.take());
        } else if is_endless {
            self.current = None;
            self.breaks(dut, "a frame that does not end");
        }
    }

    fn breaks(&mut self, dut: &Dut, rule: &str) {
        self.fault.get_or_insert_with(|| StreamFault(format!("clock {}: {rule}", dut.cycles())));
    }
}

impl core::fmt::Display for StreamFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StreamFault> for String {
    fn from(fault: StreamFault) -> String {
        fault.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stuck `tlast` looks like to a sink: the comparison must come to an end.
    #[test]
    fn a_frame_that_does_not_end_is_a_fault() {
        let Ok(mut dut) = Dut::open("axis_register") else { return };
        dut.reset().unwrap();
        let mut source = Source::new(&dut, "s_axis", Pause::Never, UserAt::Every, 1).unwrap();
        let mut sink = Sink::new(&dut, "m_axis", Pause::Never, 2).unwrap();
        source.push(vec![0x5a; 2 * ENDLESS], [0; USER_WORDS]);
        while source.waiting() > 0 {
            source.drive(&mut dut);
            sink.drive(&mut dut);
            dut.settle();
            source.observe(&dut);
            sink.observe(&dut);
            dut.edge();
        }
        let fault = sink.pop().unwrap_err();
        assert!(fault.0.contains("does not end"), "{fault}");
    }
}
