//! The peer: it knows the true numbers, and checks everything that the host sends.

use crate::ops::{Offset, Say, Setup};
use crate::streams::{host_bytes, peer_byte};
use linerate_wire::tcp::{self, Flags, Options, SackBlock, SeqNumber, Timestamps};

/// What the peer knows of the connection. Positions are counted from the first byte after a SYN.
pub struct Peer {
    irs: SeqNumber,
    iss: Option<SeqNumber>,
    /// The peer's next position, and what the host has acknowledged of it.
    next: u32,
    acked: u32,
    /// Whether the host has acknowledged the peer's SYN.
    is_known: bool,
    /// End of what the host has sent.
    pub host_end: i64,
    /// End of what it has given to its device: it takes acknowledgements of that, though nothing of it has arrived.
    given_end: i64,
    /// The right edge of the window that the peer has offered at most.
    edge: i64,
    scales: bool,
    scale: u8,
    host_scale: u8,
    /// The right edge of the host's window as last said.
    host_edge: Option<i64>,
    value: u32,
    echo: u32,
    timestamps: bool,
    /// Positions at which the peer ever said FIN.
    pub fins: Vec<u32>,
    /// Whether the peer has said anything but its stream.
    pub has_lied: bool,
    /// A new connection took the place of the first: nothing is checked any more.
    pub is_over: bool,
}

impl Peer {
    pub fn new(setup: &Setup) -> Peer {
        Peer {
            irs: SeqNumber(setup.irs),
            iss: None,
            next: 0,
            acked: 0,
            is_known: false,
            host_end: 0,
            given_end: 0,
            edge: 0,
            scales: setup.scale.is_some(),
            scale: setup.scale.unwrap_or(0).min(14),
            host_scale: 0,
            host_edge: None,
            value: 1_000,
            echo: 0,
            timestamps: setup.timestamps,
            fins: Vec::new(),
            has_lied: false,
            is_over: false,
        }
    }

    /// The options of a SYN of the peer.
    fn syn_options(&self, setup: &Setup) -> Options {
        Options {
            mss: setup.mss,
            window_scale: setup.scale,
            sack_permitted: setup.sack,
            timestamps: setup.timestamps.then_some(Timestamps { value: self.value, echo: self.echo }),
            ..Options::default()
        }
    }

    /// A good segment with these flags: at the peer's next number, acknowledging all.
    pub fn good(
        &mut self,
        setup: &Setup,
        flags: Flags,
        len: u16,
        ack: i64,
        window: u16,
    ) -> (tcp::Builder, Vec<u8>) {
        self.value = self.value.wrapping_add(1);
        let is_syn = flags.contains(Flags::SYN);
        let timestamps = Timestamps { value: self.value, echo: self.echo };
        let options = match is_syn {
            true => self.syn_options(setup),
            false => Options { timestamps: self.timestamps.then_some(timestamps), ..Options::default() },
        };
        let seq = if is_syn { self.irs } else { self.irs + 1 + self.next };
        let start = self.next;
        if !is_syn {
            self.next = self.next.wrapping_add(u32::from(len));
        }
        self.offer(flags, ack, window);
        let payload = (0..u32::from(len)).map(|i| peer_byte(start.wrapping_add(i))).collect();
        (self.builder(flags, seq, ack, window, options), payload)
    }

    /// Notes the edge of a window that the host may take for true.
    fn offer(&mut self, flags: Flags, ack: i64, window: u16) {
        // RFC 7323 section 2.2: a SYN's is not scaled. One without an ACK begins at the host's first byte.
        let is_syn = flags.contains(Flags::SYN);
        let scale = if is_syn { 0 } else { self.scale };
        let start = match flags.contains(Flags::ACK) {
            true => ack,
            false if is_syn => 0,
            false => return,
        };
        if start <= self.host_end.max(self.given_end) {
            self.edge = self.edge.max(start + (i64::from(window) << scale));
        }
    }

    /// Notes a segment that waits in the host's device.
    pub fn expect(&mut self, segment: &tcp::Header<'_>) {
        if self.iss.is_some() && !segment.flags().intersects(Flags::SYN | Flags::RST) {
            self.given_end = self.given_end.max(self.extent(segment).1);
        }
    }

    /// The positions from which and to which a segment of the host reaches; a FIN takes one too.
    fn extent(&self, segment: &tcp::Header<'_>) -> (i64, i64) {
        let first = self.iss.unwrap_or(SeqNumber(0)) + 1;
        let seq = near(self.host_end, segment.sequence().0.wrapping_sub(first.0));
        let fin = i64::from(segment.flags().contains(Flags::FIN));
        (seq, seq + segment.payload().len() as i64 + fin)
    }

    fn builder(&self, flags: Flags, seq: SeqNumber, ack: i64, window: u16, options: Options) -> tcp::Builder {
        let acknowledgement = match self.iss {
            Some(iss) if flags.contains(Flags::ACK) => iss + 1 + ack as u32,
            _ => SeqNumber(ack as u32),
        };
        tcp::Builder {
            source_port: crate::PEER_PORT,
            destination_port: crate::HOST_PORT,
            sequence: seq,
            acknowledgement,
            flags,
            window,
            options,
            ..tcp::Builder::default()
        }
    }

    /// Any segment, with numbers from where the connection stands.
    pub fn say(&mut self, setup: &Setup, say: &Say) -> (tcp::Builder, Vec<u8>) {
        let flags = Flags(say.flags);
        let is_syn = flags.contains(Flags::SYN);
        let edge = self.host_edge.unwrap_or(0) as u32;
        let mut position = at(self.next, edge, say.seq);
        let ack = at(self.host_end as u32, self.edge as u32, say.ack);
        // As the host counts it: the nearest number to the end of what it sent.
        let ack = self.host_end + i64::from(ack.wrapping_sub(self.host_end as u32) as i32);
        self.value = self.value.wrapping_add_signed(i32::from(say.tick.unwrap_or(0)));
        let mut options = if is_syn { self.syn_options(setup) } else { self.options(say) };
        if say.tick.is_none() {
            options.timestamps = None;
        }
        let mut seq = self.irs + 1 + position;
        if is_syn && !self.is_known {
            // Which number the peer begins with is settled; what comes with the SYN lies after it.
            seq = self.irs;
            position = 0;
        }
        // With the longest options it fits a frame.
        let len = say.len % 1_421;
        let payload = (0..u32::from(len)).map(|i| peer_byte(position.wrapping_add(i)) ^ u8::from(say.lies));
        let payload: Vec<u8> = payload.collect();
        let end = position.wrapping_add(u32::from(len));
        self.has_lied |= say.lies && len > 0 || is_syn && self.is_known;
        if flags.contains(Flags::FIN) {
            self.fins.push(end);
        }
        if position == self.next && !is_syn {
            self.next = end;
        }
        self.offer(flags, ack, say.window);
        let mut builder = self.builder(flags, seq, ack, say.window, options);
        builder.urgent = say.urgent;
        (builder, payload)
    }

    fn options(&self, say: &Say) -> Options {
        let echo = self.echo.wrapping_sub(u32::from(say.old_echo));
        let timestamps = self.timestamps.then_some(Timestamps { value: self.value, echo });
        let mut options = Options { timestamps, ..Options::default() };
        let iss = self.iss.unwrap_or(SeqNumber(0)) + 1;
        for (back, len) in say.sack.iter().flatten() {
            let left = iss + (self.host_end as u32).wrapping_sub(u32::from(*back));
            options.sack_blocks.push(SackBlock { left, right: left + u32::from(*len) });
        }
        options
    }

    /// Looks at a segment of the host; `queued` bytes were given to it, and `finished` says whether that was all.
    pub fn hear(&mut self, segment: &tcp::Header<'_>, queued: u64, finished: bool) {
        let flags = segment.flags();
        if flags.contains(Flags::SYN) {
            self.hear_syn(segment);
        }
        if self.iss.is_none() {
            return;
        }
        if let Some(timestamps) = segment.options().timestamps {
            self.echo = timestamps.value;
        }
        if flags.contains(Flags::RST) || self.is_over {
            return;
        }
        let (seq, reached) = self.extent(segment);
        let end = seq + segment.payload().len() as i64;
        if !segment.payload().is_empty() {
            assert!(seq >= 0 && end as u64 <= queued, "{seq}..{end} of {queued} bytes");
            for (piece, at) in segment.payload().chunks(1_024).zip((seq as u64..).step_by(1_024)) {
                assert!(piece == host_bytes(at, piece.len()), "wrong bytes at {at}");
            }
            assert!(end <= self.edge + 1, "{end} is beyond the window, {}", self.edge);
        }
        if flags.contains(Flags::FIN) {
            assert!(finished && end as u64 == queued, "FIN at {end} of {queued} bytes");
        }
        self.host_end = self.host_end.max(reached);
        if flags.contains(Flags::ACK) {
            self.hear_ack(segment);
        }
    }

    fn hear_syn(&mut self, segment: &tcp::Header<'_>) {
        let iss = segment.sequence();
        // A SYN of ours has opened another connection, maybe at the same time, and so from the same number.
        let is_other = self.acked != 0 || segment.acknowledgement() != self.irs + 1;
        let is_other = is_other && segment.flags().contains(Flags::ACK);
        self.is_over |= is_other || self.iss.is_some_and(|known| known != iss);
        self.iss = Some(iss);
        self.host_scale = segment.options().window_scale.filter(|_| self.scales).unwrap_or(0);
    }

    fn hear_ack(&mut self, segment: &tcp::Header<'_>) {
        let acked = segment.acknowledgement().0.wrapping_sub(self.irs.0.wrapping_add(1));
        if !self.is_known {
            self.is_known = true;
            self.acked = acked;
        }
        assert!(acked.wrapping_sub(self.acked) as i32 >= 0, "the host takes an acknowledgement back");
        self.acked = acked;
        if segment.flags().contains(Flags::SYN) {
            return;
        }
        let scale = self.host_scale;
        let edge = i64::from(acked) + (i64::from(segment.window()) << scale);
        let shrunk = self.host_edge.map_or(0, |last| last - edge);
        assert!(shrunk < 1 << scale, "the host's window shrinks by {shrunk}");
        self.host_edge = Some(edge);
    }
}

/// A position, from the next one or from the edge of a window.
fn at(next: u32, edge: u32, offset: Offset) -> u32 {
    match offset {
        Offset::Exact => next,
        Offset::Near(by) => next.wrapping_add_signed(i32::from(by)),
        Offset::Within(by) => next.wrapping_add_signed(i32::from(by)),
        Offset::Edge(by) => edge.wrapping_add_signed(i32::from(by)),
        Offset::Far(position) => position,
    }
}

/// The position nearest to `around` that has these low bits.
fn near(around: i64, position: u32) -> i64 {
    around + i64::from(position.wrapping_sub(around as u32) as i32)
}
