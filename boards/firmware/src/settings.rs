//! What is decided when an image is built.

use core::net::IpAddr;
use linerate_nic::{PacingConfig, PacingMode};

/// The settings of an image. `linerate-firmware-build` makes them of the board's `board.toml`, where each is explained.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What the machine is called.
    pub name: &'static str,
    /// Cores that serve, as far as there are so many.
    pub cores: usize,
    /// The interface's Ethernet address.
    pub mac: [u8; 6],
    /// Addresses, each with the length of its prefix. Without one of IPv4, DHCP is asked.
    pub addresses: &'static [(IpAddr, u8)],
    /// Default gateways.
    pub gateways: &'static [IpAddr],
    /// Whether there is IPv6.
    pub ipv6: bool,
    /// Whether the interface's offloads are used.
    pub offloads: bool,
    /// When the interface interrupts, and what is left to other tasks.
    pub interrupts: Interrupts,
    /// Seconds without progress of one who has to make some, after which the board starts anew; 0 for never.
    pub watchdog: u32,
    /// Ports of HTTP; none for no server.
    pub http: &'static [u16],
    /// Ports of iperf3.
    pub iperf3: &'static [u16],
    /// The port that iperf3 has on the first core alone; the next port is the second's, and so on.
    pub iperf3_by_core: Option<u16>,
    /// Ports of FTP.
    pub ftp: &'static [u16],
    /// Who may log in and upload: the name, and the password's hash as a PHC string.
    pub ftp_users: &'static [(&'static str, &'static str)],
    /// Whether anybody may read by FTP without a password.
    pub ftp_anonymous: bool,
    /// TCP connections at once.
    pub connections: usize,
    /// Bytes that sockets may hold together.
    pub socket_memory: usize,
    /// Most bytes of the send buffer of one connection.
    pub send_buffer: usize,
    /// Most bytes of the receive buffer of one connection.
    pub receive_buffer: usize,
    /// Receive buffers of the interface.
    pub receive_buffers: usize,
    /// Bytes of the RAM disk `/ram`.
    pub ram_disk: usize,
    /// Bytes of the trace's ring; 0 for no trace.
    pub trace: usize,
    /// Bytes of the capture's ring; 0 for no capture.
    pub capture: usize,
}

/// Longest time that a frame waits for others, in microseconds, as `linerate-firmware-settings` has it.
pub(crate) const MOST_TIMER_US: u32 = 100_000;
/// Most frames that wait for one another where the interface does not bound them, as there.
pub(crate) const MOST_FRAMES: u32 = 255;

/// When the interface interrupts, and what is left to other tasks.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts {
    /// How long frames wait for others, and for how many; a threshold of 1 waits for none.
    pub pacing: PacingConfig,
    /// Whether the timer follows the load, up to that of `pacing`.
    pub adaptive: bool,
    /// The share of the processor that the network leaves to tasks below it, in percent: 0 to 90.
    pub reserve: u32,
}

impl Interrupts {
    /// An interrupt for each frame, and all of the processor for the network.
    pub const AT_ONCE: Interrupts = Interrupts {
        pacing: PacingConfig {
            mode: PacingMode::FirstNewPacket,
            timer_ticks: 0,
            tick_ns: PacingConfig::DEFAULT_TICK_NS,
            threshold: 1,
        },
        adaptive: false,
        reserve: 0,
    };
}
