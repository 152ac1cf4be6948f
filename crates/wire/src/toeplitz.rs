//! The Toeplitz hash, by which receive-side scaling picks a queue (Microsoft, "RSS hashing functions").

use core::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a key.
pub const KEY_LEN: usize = 40;

/// Most bytes that a key of 40 bytes can hash: both IPv6 addresses and both ports.
pub const MAX_INPUT_LEN: usize = 36;

/// The key of Microsoft's verification suite, which many drivers have as default.
pub const MICROSOFT_KEY: [u8; KEY_LEN] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// What is hashed: source and destination address and, if not a fragment, source and destination port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Input {
    bytes: [u8; MAX_INPUT_LEN],
    len: usize,
}

impl Input {
    /// Two IPv4 addresses: for fragments and for protocols without ports.
    pub fn ipv4(source: Ipv4Addr, destination: Ipv4Addr) -> Input {
        Input::of(&source.octets(), &destination.octets(), None)
    }

    /// Two IPv4 addresses and two ports.
    pub fn ipv4_ports(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        source_port: u16,
        destination_port: u16,
    ) -> Input {
        Input::of(&source.octets(), &destination.octets(), Some([source_port, destination_port]))
    }

    /// Two IPv6 addresses: for fragments and for protocols without ports.
    pub fn ipv6(source: Ipv6Addr, destination: Ipv6Addr) -> Input {
        Input::of(&source.octets(), &destination.octets(), None)
    }

    /// Two IPv6 addresses and two ports.
    pub fn ipv6_ports(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        source_port: u16,
        destination_port: u16,
    ) -> Input {
        Input::of(&source.octets(), &destination.octets(), Some([source_port, destination_port]))
    }

    fn of(source: &[u8], destination: &[u8], ports: Option<[u16; 2]>) -> Input {
        let [[a, b], [c, d]] = ports.unwrap_or_default().map(u16::to_be_bytes);
        let ports = if ports.is_some() { &[a, b, c, d][..] } else { &[] };
        let mut input = Input { bytes: [0; MAX_INPUT_LEN], len: 0 };
        for (to, from) in input.bytes.iter_mut().zip(source.iter().chain(destination).chain(ports)) {
            *to = *from;
            input.len += 1;
        }
        input
    }

    /// The bytes in the order in which they are hashed.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The hash of it.
    pub fn hash(&self, key: &[u8; KEY_LEN]) -> u32 {
        hash(key, self.as_bytes())
    }
}

/// The hash of `input`, of which only the first [`MAX_INPUT_LEN`] bytes count.
///
/// For every bit that is set, from the first byte's highest on, the 32 bits of the key that begin at the same place are
/// added without carry.
pub fn hash(key: &[u8; KEY_LEN], input: &[u8]) -> u32 {
    let [a, b, c, d, rest @ ..] = key;
    // The upper half is the window for the byte's first bit; the byte after it moves in from below.
    let mut window = u64::from(u32::from_be_bytes([*a, *b, *c, *d])) << 32;
    let mut hash = 0;
    for (byte, next) in input.iter().zip(rest) {
        window |= u64::from(*next) << 24;
        for bit in (0..8).rev() {
            // All ones if the bit is set: a branch would be mispredicted every other time.
            let mask = 0u32.wrapping_sub(u32::from(byte >> bit & 1));
            hash ^= (window >> 32) as u32 & mask;
            window <<= 1;
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, SocketAddr};
    use proptest::prelude::*;

    /// Checks one line of Microsoft's verification suite.
    fn check(source: &str, destination: &str, addresses: u32, ports: u32) {
        let source: SocketAddr = source.parse().expect("an address and port");
        let destination: SocketAddr = destination.parse().expect("an address and port");
        let (p, q) = (source.port(), destination.port());
        let (two, four) = match (source.ip(), destination.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (Input::ipv4(a, b), Input::ipv4_ports(a, b, p, q)),
            (IpAddr::V6(a), IpAddr::V6(b)) => (Input::ipv6(a, b), Input::ipv6_ports(a, b, p, q)),
            _ => panic!("two families"),
        };
        assert_eq!(
            (two.hash(&MICROSOFT_KEY), four.hash(&MICROSOFT_KEY)),
            (addresses, ports),
            "{source} {destination}"
        );
    }

    #[test]
    fn the_vectors_of_microsoft() {
        check("66.9.149.187:2794", "161.142.100.80:1766", 0x323e8fc2, 0x51ccc178);
        check("199.92.111.2:14230", "65.69.140.83:4739", 0xd718262a, 0xc626b0ea);
        check("24.19.198.95:12898", "12.22.207.184:38024", 0xd2d0a5de, 0x5c2b394a);
        check("38.27.205.30:48228", "209.142.163.6:2217", 0x82989176, 0xafc7327f);
        check("153.39.163.191:44251", "202.188.127.2:1303", 0x5d1809c5, 0x10e828a2);
        check("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x2cc18cd5, 0x40207d3d);
        check("[3ffe:501:8::260:97ff:fe40:efab]:14230", "[ff02::1]:4739", 0x0f0c461c, 0xdde51bbf);
        check(
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            "[fe80::200:f8ff:fe21:67cf]:38024",
            0x4b61e985,
            0x02d1feef,
        );
    }

    #[test]
    fn input_beyond_the_key_does_not_count() {
        let long = [0xa5; 50];
        assert_eq!(hash(&MICROSOFT_KEY, &long), hash(&MICROSOFT_KEY, &long[..MAX_INPUT_LEN]));
        assert_eq!(hash(&MICROSOFT_KEY, &[]), 0);
    }

    /// Bit by bit, as the definition says it.
    fn reference(key: &[u8; KEY_LEN], input: &[u8]) -> u32 {
        let key_bit = |at: usize| u32::from(key[at / 8] >> (7 - at % 8) & 1);
        let mut hash = 0;
        for at in 0..input.len() * 8 {
            if input[at / 8] >> (7 - at % 8) & 1 == 1 {
                hash ^= (0..32).fold(0, |window, offset| window << 1 | key_bit(at + offset));
            }
        }
        hash
    }

    proptest! {
        #[test]
        fn any_key_and_input(key in proptest::collection::vec(any::<u8>(), KEY_LEN), input in proptest::collection::vec(any::<u8>(), 0..=36)) {
            let key: [u8; KEY_LEN] = key.try_into().expect("40 bytes");
            prop_assert_eq!(hash(&key, &input), reference(&key, &input));
        }
    }
}
