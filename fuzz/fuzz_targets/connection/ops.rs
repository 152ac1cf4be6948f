//! The input: how the connection begins, and what happens to it, in terms of where it stands.

use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
pub struct Input {
    pub setup: Setup,
    pub steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
pub struct Setup {
    pub opening: Opening,
    pub irs: u32,
    /// What the peer offers.
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub window: u16,
    /// ECN bits of its SYN.
    pub ecn: bool,
    /// What the host's socket is set to.
    pub buffers: Buffers,
    pub no_delay: bool,
    pub keep_alive: bool,
    pub asks_ecn: bool,
    pub reno: bool,
    /// The host hands super-segments to its device.
    pub super_segments: bool,
    /// The device reports what it has sent; otherwise packets count as sent at once.
    pub completions: bool,
    /// Little memory for all sockets.
    pub is_tight: bool,
}

#[derive(Arbitrary, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// The host listens, the peer shakes hands properly.
    Passive,
    /// The host connects, the peer answers properly.
    Active,
    /// The host listens, the rest is up to the steps.
    OnlyListen,
    /// The host connects, the rest is up to the steps.
    OnlyConnect,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Buffers {
    Small,
    Medium,
    Auto,
}

#[derive(Arbitrary, Debug)]
pub enum Step {
    /// The next bytes of the peer's stream, as a good peer sends them.
    Next { len: u16 },
    /// The peer acknowledges what it has got, all or a part of it.
    Acknowledge { part: u8, window: u16 },
    /// Any segment.
    Say(Say),
    /// The application.
    App(App),
    /// So many milliseconds pass: a power of two, and a bit.
    Pass { power: u8, more: u8 },
    /// The device takes nothing any more, or goes on.
    Stall(bool),
    /// The device reports so many packets.
    Complete(u8),
    /// An ICMP error about one of the last packets.
    Icmp { kind: u8, which: u8, shift: i16, mtu: u16 },
    /// A file read is answered.
    File { is_short: bool },
}

#[derive(Arbitrary, Debug)]
pub struct Say {
    /// FIN, SYN, RST, PSH, ACK, URG, ECE, CWR.
    pub flags: u8,
    /// From the peer's next number.
    pub seq: Offset,
    /// From the end of what the host has sent.
    pub ack: Offset,
    pub len: u16,
    pub window: u16,
    /// The bytes are not those of the peer's stream.
    pub lies: bool,
    /// Blocks of the host's stream: start, counted back from its end, and length.
    pub sack: [Option<(u16, u16)>; 3],
    /// From the last timestamp; `None`: no option.
    pub tick: Option<i8>,
    pub old_echo: u8,
    pub ecn: u8,
    pub urgent: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Offset {
    Exact,
    Near(i8),
    Within(i16),
    /// From the edge of the window.
    Edge(i8),
    Far(u32),
}

#[derive(Arbitrary, Debug)]
pub enum App {
    Write { len: u16 },
    Send { len: u16 },
    SendFile { len: u16 },
    Read { len: u16 },
    ReadAll,
    Shutdown,
    Close,
    Abort,
    SetBuffers(Buffers),
    CloseListener,
}
