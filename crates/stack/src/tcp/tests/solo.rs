//! One connection against hand-made segments.

use super::{Wire, addr, config, drain, resources};
use crate::tcp::{Config, Connection, Outcome, Resources, State, TxLimits};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_nic::Pool;
use linerate_wire::ip::Ecn;
use linerate_wire::tcp::{Flags, Options, SackBlock, SeqNumber, Timestamps};
use linerate_wire::units::Instant;

/// Our initial sequence number, near the wrap so that every test crosses it.
pub const ISS: u32 = u32::MAX - 999;
/// The peer's.
pub const IRS: u32 = u32::MAX - 9;

pub const SYN: Flags = Flags::SYN;
pub const ACK: Flags = Flags::ACK;
pub const FIN: Flags = Flags::FIN;
pub const RST: Flags = Flags::RST;
pub const SYN_ACK: Flags = Flags(0x12);
pub const FIN_ACK: Flags = Flags(0x11);

/// A connection on a bench. Sequence numbers are counted from the first byte of each direction: 0 is the first byte
/// after the SYN, -1 the SYN.
pub struct Solo {
    pub connection: Connection,
    pub now: Instant,
    pub limits: TxLimits,
    pub resources: Resources,
    pub rx: Pool,
    /// The window field of the peer's segments.
    pub window: u16,
    /// TSval of the peer's segments; echoes our last.
    pub timestamps: bool,
    pub last_value: u32,
    /// The peer's next sequence number, for plain ACKs.
    pub peer_next: i64,
    /// The mark on the peer's packets.
    pub mark: Ecn,
}

/// A segment of ours, with numbers counted as [`Solo`] does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub seq: i64,
    pub ack: i64,
    pub flags: Flags,
    pub len: usize,
    pub wire: Wire,
}

/// The options of a peer that offers what `config` may take.
pub fn offer(sack: bool, timestamps: bool) -> Options {
    Options {
        mss: Some(1_460),
        window_scale: Some(0),
        sack_permitted: sack,
        timestamps: timestamps.then_some(Timestamps { value: 1_000, echo: 0 }),
        ..Options::default()
    }
}

impl Solo {
    /// In SYN-SENT, the SYN not sent yet.
    pub fn active(config: Config) -> Self {
        let resources = resources();
        let now = Instant::from_millis(5_000);
        let connection =
            Connection::active(now, config, &resources, addr(1, 1_000), addr(2, 2_000), SeqNumber(ISS));
        Solo {
            connection,
            now,
            limits: TxLimits { max_payload: 0, completions: false },
            resources,
            rx: Pool::new(4_096, 2_048),
            window: 65_535,
            timestamps: false,
            last_value: 1_000,
            peer_next: 0,
            mark: Ecn::NotCapable,
        }
    }

    /// In SYN-RECEIVED, the SYN-ACK not sent yet.
    pub fn passive(config: Config, options: Options) -> Self {
        Solo::passive_with_flags(config, SYN, options)
    }

    /// The same from a SYN with other bits.
    pub fn passive_with_flags(config: Config, flags: Flags, options: Options) -> Self {
        Solo::passive_in(config, flags, options, resources())
    }

    /// The same with other resources.
    pub fn passive_in(config: Config, flags: Flags, options: Options, resources: Resources) -> Self {
        let mut solo = Solo { resources, ..Solo::active(config.clone()) };
        solo.timestamps = options.timestamps.is_some() && config.timestamps;
        let mut syn = Wire {
            seq: SeqNumber(IRS),
            ack: SeqNumber(0),
            flags,
            ecn: Ecn::NotCapable,
            window: solo.window,
            options,
            payload: Vec::new(),
        };
        syn.options.malformed = None;
        let segment = syn.to_segment(&solo.rx);
        let (local, remote) = (addr(1, 1_000), addr(2, 2_000));
        solo.connection =
            Connection::active(solo.now, config, &solo.resources, local, remote, SeqNumber(ISS));
        solo.connection.answer(solo.now, &segment).expect("a SYN opens");
        solo
    }

    /// Established, with SACK and without timestamps.
    pub fn established() -> Self {
        Solo::established_with(config(), offer(true, false))
    }

    pub fn established_with(config: Config, options: Options) -> Self {
        Solo::established_in(config, options, resources())
    }

    /// The same with other resources.
    pub fn established_in(config: Config, options: Options, resources: Resources) -> Self {
        let mut solo = Solo::passive_in(config, SYN, options, resources);
        assert_eq!(solo.output()[0].flags, SYN_ACK);
        let _ = solo.input(ACK, 0, 0, 0);
        assert_eq!(solo.connection.tcp_state(), State::Established);
        solo.connection.poll_ready();
        solo
    }

    /// Established and then led to `state`; nothing is left to send.
    pub fn in_state(state: State) -> Self {
        let mut solo = match state {
            State::SynSent => {
                let mut solo = Solo::active(config());
                solo.output();
                return solo;
            }
            State::SynReceived => {
                let mut solo = Solo::passive(config(), offer(true, false));
                solo.output();
                return solo;
            }
            _ => Solo::established(),
        };
        let now = solo.now;
        match state {
            State::FinWait1 | State::FinWait2 | State::Closing | State::TimeWait => {
                solo.connection.shutdown(now);
                solo.output();
            }
            State::CloseWait | State::LastAck => {
                let _ = solo.input(FIN_ACK, 0, 0, 0);
                solo.output();
            }
            _ => {}
        }
        match state {
            State::FinWait2 => {
                let _ = solo.input(ACK, 0, 1, 0);
            }
            State::Closing => {
                let _ = solo.input(FIN_ACK, 0, 0, 0);
            }
            State::TimeWait => {
                let _ = solo.input(FIN_ACK, 0, 1, 0);
            }
            State::LastAck => solo.connection.shutdown(now),
            State::Closed => {
                let _ = solo.input(RST, 0, 0, 0);
            }
            _ => {}
        }
        solo.output();
        assert_eq!(solo.connection.tcp_state(), state);
        solo.connection.poll_ready();
        solo
    }

    /// Hands a segment with `len` bytes of the test stream to the connection.
    pub fn input(&mut self, flags: Flags, seq: i64, ack: i64, len: usize) -> Outcome {
        self.input_with(flags, seq, ack, len, Options::default())
    }

    /// The same with options; timestamps are added when agreed upon.
    pub fn input_with(
        &mut self,
        flags: Flags,
        seq: i64,
        ack: i64,
        len: usize,
        mut options: Options,
    ) -> Outcome {
        if self.timestamps && options.timestamps.is_none() && !flags.contains(RST) {
            self.last_value += 1;
            let echo = (self.now.as_millis() as u32).wrapping_sub(10);
            options.timestamps = Some(Timestamps { value: self.last_value, echo });
        }
        let wire = Wire {
            seq: SeqNumber(IRS.wrapping_add(1).wrapping_add(seq as u32)),
            ack: SeqNumber(ISS.wrapping_add(1).wrapping_add(ack as u32)),
            flags,
            ecn: self.mark,
            window: self.window,
            options,
            payload: super::stream(seq.max(0) as u64..seq.max(0) as u64 + len as u64),
        };
        let segment = wire.to_segment(&self.rx);
        super::doze(&mut self.connection, &self.resources, self.now);
        self.connection.handle_segment(self.now, segment)
    }

    /// An ACK with SACK blocks, counted as `seq` of ours.
    pub fn sack(&mut self, ack: i64, blocks: &[(i64, i64)]) {
        let mut options = Options::default();
        for &block in blocks {
            assert!(options.sack_blocks.push(self.block(block)));
        }
        let _ = self.input_with(ACK, self.peer_next, ack, 0, options);
    }

    /// A SACK block of these positions.
    pub fn block(&self, (left, right): (i64, i64)) -> SackBlock {
        let number = |at: i64| SeqNumber(ISS.wrapping_add(1).wrapping_add(at as u32));
        SackBlock { left: number(left), right: number(right) }
    }

    /// The device reports all packets up to this completion tag.
    pub fn report_up_to(&mut self, tag: u32) {
        for tag in 1..=tag {
            self.connection.handle_transmitted(self.now, tag);
        }
    }

    /// A plain ACK.
    pub fn ack(&mut self, ack: i64) {
        let _ = self.input(ACK, self.peer_next, ack, 0);
    }

    /// Queues `len` bytes.
    pub fn send(&mut self, len: usize) {
        const ZEROS: &[u8] = &[0; 65_536];
        let mut left = len;
        while left > 0 {
            let part = left.min(ZEROS.len());
            let payload = linerate_transport::Payload::Static(&ZEROS[..part]);
            self.connection.send(self.now, payload).expect("room in the send buffer");
            left -= part;
        }
    }

    /// What it sends now.
    pub fn output(&mut self) -> Vec<Seen> {
        super::doze(&mut self.connection, &self.resources, self.now);
        let sent = drain(&mut self.connection, self.now, &self.limits);
        sent.into_iter().map(|wire| self.seen(wire)).collect()
    }

    /// (seq, len) of what it sends now.
    pub fn lengths(&mut self) -> Vec<(i64, usize)> {
        self.output().iter().map(|segment| (segment.seq, segment.len)).collect()
    }

    fn seen(&self, wire: Wire) -> Seen {
        let seq = i64::from(wire.seq.0.wrapping_sub(ISS).wrapping_sub(1) as i32);
        let ack = i64::from(wire.ack.0.wrapping_sub(IRS).wrapping_sub(1) as i32);
        Seen { seq, ack, flags: wire.flags, len: wire.payload.len(), wire }
    }

    /// Lets time pass, running timers when they are due.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.connection.poll_timeout()
            && at <= until
        {
            self.now = self.now.max(at);
            super::doze(&mut self.connection, &self.resources, self.now);
            self.connection.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Lets time pass up to the next timer and runs it; how long that took.
    pub fn fire(&mut self) -> Duration {
        let at = self.connection.poll_timeout().expect("a timer");
        let waited = at - self.now;
        self.now = self.now.max(at);
        self.connection.handle_timeout(self.now);
        waited
    }

    /// Loses all that is sent until the retransmission timer expires; how long that took.
    pub fn time_out(&mut self) -> Duration {
        let (start, before) = (self.now, self.connection.counters().timeouts);
        while self.connection.counters().timeouts == before {
            self.output();
            self.fire();
        }
        self.now - start
    }
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
