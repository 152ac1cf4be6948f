//! Checksums of a received frame: the status code that the 10G Ethernet checksum engine gives (`RX_CS_STS`), and the raw sum.
//!
//! | code | meaning | when |
//! |---|---|---|
//! | 000 | not checked | not IP, cut short, or malformed headers |
//! | 001 | IP good, layer 4 not checked | fragments, what a routing header sends on, neither TCP nor UDP, lengths of layer 4 that do not fit |
//! | 010 | TCP good | |
//! | 011 | UDP good | also with a checksum of 0 over IPv4, which means "not used" |
//! | 100 | | reserved |
//! | 101 | IP bad | the IPv4 header's checksum is wrong; layer 4 is not looked at |
//! | 110 | TCP bad | |
//! | 111 | UDP bad | also with a checksum of 0 over IPv6, which is not allowed |
//!
//! An IPv6 header has no checksum: it is good when it is well-formed. ICMP, which the software fallback verifies, has no code of
//! its own and is 001.

use crate::checksum;
use crate::layers;
use crate::meta::ChecksumStatus;
use crate::verify::{Verdict, judge};
use linerate_wire::checksum::Sum;
use linerate_wire::ethernet::HEADER_LEN;
use linerate_wire::ip::Protocol;

/// `RX_CS_STS`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Status {
    /// Nothing was checked.
    #[default]
    Unchecked = 0,
    /// IP is good, layer 4 was not checked.
    IpGood = 1,
    /// IP and TCP are good.
    TcpGood = 2,
    /// IP and UDP are good.
    UdpGood = 3,
    /// The IPv4 header's checksum is wrong.
    IpBad = 5,
    /// IP is good, TCP's checksum is wrong.
    TcpBad = 6,
    /// IP is good, UDP's checksum is wrong.
    UdpBad = 7,
}

impl Status {
    /// All of them, in the order of their codes.
    pub const ALL: [Status; 7] = [
        Status::Unchecked,
        Status::IpGood,
        Status::TcpGood,
        Status::UdpGood,
        Status::IpBad,
        Status::TcpBad,
        Status::UdpBad,
    ];

    /// The three bits.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What three bits of a descriptor mean; the reserved code means that nothing was checked.
    pub fn from_code(code: u8) -> Status {
        Status::ALL.into_iter().find(|status| status.code() == code).unwrap_or_default()
    }

    /// What a driver tells the stack.
    pub const fn to_meta(self) -> ChecksumStatus {
        match self {
            Status::Unchecked | Status::IpGood => ChecksumStatus::Unchecked,
            Status::TcpGood | Status::UdpGood => ChecksumStatus::Good,
            Status::IpBad | Status::TcpBad | Status::UdpBad => ChecksumStatus::Bad,
        }
    }
}

/// The status of a whole frame.
pub fn status(frame: &[u8]) -> Status {
    let Some(layers) = layers::parse(frame, frame.len()) else { return Status::Unchecked };
    let sum_of = |from, to| checksum::sum(frame.get(from..to).unwrap_or_default());
    match judge(frame, &layers, sum_of, Sum::is_valid) {
        Verdict::BadHeader => Status::IpBad,
        Verdict::Good(Protocol::TCP) => Status::TcpGood,
        Verdict::Good(Protocol::UDP) => Status::UdpGood,
        Verdict::Bad(Protocol::TCP) => Status::TcpBad,
        Verdict::Bad(Protocol::UDP) => Status::UdpBad,
        Verdict::Unverified | Verdict::Good(_) | Verdict::Bad(_) => Status::IpGood,
    }
}

/// The sum from the 15th byte to the end of the frame, padding included, not complemented. 0 only if all these bytes are 0.
pub fn raw_sum(frame: &[u8]) -> u16 {
    checksum::sum(frame.get(HEADER_LEN..).unwrap_or_default()).folded()
}

#[cfg(test)]
mod tests;
