//! IPv4 with options, IPv6 with extension headers.

use crate::{icmp, transport};
use linerate_wire::ip::Protocol;
use linerate_wire::{ipv4, ipv6};

/// Reads a packet, whole and as a quoted one, and writes the header back.
pub fn v4(bytes: &[u8]) {
    if let Ok(quoted) = ipv4::Header::parse_quoted(bytes) {
        assert!(quoted.header_len() + quoted.payload().len() <= bytes.len());
        let _ = (quoted.options().count(), quoted.verify_checksum());
    }
    let Ok(header) = ipv4::Header::parse(bytes) else { return };
    assert_eq!(header.header_len() + header.payload().len(), usize::from(header.total_len()));
    for option in header.options() {
        assert!(option.data.len() <= 38);
        let _ = option.kind.is_source_route();
    }
    let builder = ipv4::Builder {
        source: header.source(),
        destination: header.destination(),
        protocol: header.protocol(),
        ttl: header.ttl(),
        dscp: header.dscp(),
        ecn: header.ecn(),
        identification: header.identification(),
        dont_fragment: header.dont_fragment(),
        more_fragments: header.more_fragments(),
        fragment_offset: header.fragment_offset(),
        options: header.options_bytes(),
        payload_len: header.payload().len(),
    };
    let mut out = [0; ipv4::MAX_HEADER_LEN];
    let len = builder.emit(&mut out).expect("60 bytes hold any header");
    let again = ipv4::Header::parse_quoted(&out[..len]).expect("what was written");
    assert!(again.verify_checksum());
    // All but the reserved flag and the checksum come back.
    assert_eq!(out[..6], bytes[..6]);
    assert_eq!(out[6], bytes[6] & 0x7f);
    assert_eq!(out[7..10], bytes[7..10]);
    assert_eq!(out[12..len], bytes[12..len]);
}

/// Reads a packet and its extension headers, and writes the header back.
pub fn v6(bytes: &[u8]) {
    if let Ok(quoted) = ipv6::Header::parse_quoted(bytes) {
        assert!(ipv6::HEADER_LEN + quoted.payload().len() <= bytes.len());
    }
    let Ok(header) = ipv6::Header::parse(bytes) else { return };
    let builder = ipv6::Builder {
        source: header.source(),
        destination: header.destination(),
        next_header: header.next_header(),
        hop_limit: header.hop_limit(),
        dscp: header.dscp(),
        ecn: header.ecn(),
        flow_label: header.flow_label(),
        payload_len: header.payload().len(),
    };
    let mut out = [0; ipv6::HEADER_LEN];
    assert_eq!(builder.emit(&mut out), Ok(ipv6::HEADER_LEN));
    assert_eq!(out, bytes[..ipv6::HEADER_LEN]);
    match header.chain() {
        Ok(chain) => {
            assert_eq!(bytes[chain.next_header_offset], chain.upper.0);
            assert_eq!(chain.offset + chain.payload.len(), ipv6::HEADER_LEN + header.payload().len());
            if let Some(fragment) = chain.fragment {
                assert!(!fragment.is_atomic());
                assert_eq!(fragment.emit(&mut out), Ok(ipv6::Fragment::LEN));
            }
        }
        Err(ipv6::ChainError::ParameterProblem { pointer, .. }) => {
            assert!((pointer as usize) < ipv6::HEADER_LEN + header.payload().len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Walks extension headers alone: the first byte tells what they begin with and where the packet goes.
pub fn chain(bytes: &[u8]) {
    let [first, payload @ ..] = bytes else { return };
    let kinds = [Protocol::HOP_BY_HOP, Protocol::ROUTING, Protocol::FRAGMENT, Protocol::DESTINATION_OPTIONS];
    let kind = kinds[usize::from(first & 3)];
    if let Ok(chain) = ipv6::walk(kind, payload, first & 4 != 0) {
        assert_eq!(chain.offset + chain.payload.len(), ipv6::HEADER_LEN + payload.len());
        assert!(chain.offset <= ipv6::HEADER_LEN + ipv6::MAX_EXTENSIONS * 2048);
    }
}

/// Reads an IPv4 packet and what it carries.
pub fn v4_up(bytes: &[u8]) {
    v4(bytes);
    let Ok(header) = ipv4::Header::parse(bytes) else { return };
    if header.is_fragment() {
        return;
    }
    match header.protocol() {
        Protocol::TCP => transport::tcp(header.payload()),
        Protocol::UDP => transport::udp(header.payload()),
        Protocol::ICMPV4 => icmp::v4(header.payload()),
        _ => {}
    }
}

/// Reads an IPv6 packet and what it carries.
pub fn v6_up(bytes: &[u8]) {
    v6(bytes);
    let Ok(header) = ipv6::Header::parse(bytes) else { return };
    let Ok(chain) = header.chain() else { return };
    if chain.fragment.is_some() {
        return;
    }
    match chain.upper {
        Protocol::TCP => transport::tcp(chain.payload),
        Protocol::UDP => transport::udp(chain.payload),
        Protocol::ICMPV6 => {
            icmp::v6(chain.payload, header.source(), header.destination());
            icmp::ndp(chain.payload, header.source(), header.destination());
        }
        _ => {}
    }
}
