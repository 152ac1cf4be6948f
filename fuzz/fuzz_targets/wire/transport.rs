//! UDP and TCP.

use crate::dhcp;
use linerate_wire::checksum::Sum;
use linerate_wire::tcp::{Builder, Header, MAX_HEADER_LEN, MAX_OPTIONS_LEN, Options};
use linerate_wire::udp;

/// Reads a datagram and writes it back with a checksum.
pub fn udp(bytes: &[u8]) {
    let Ok(header) = udp::Header::parse(bytes) else { return };
    assert_eq!(udp::HEADER_LEN + header.payload().len(), usize::from(header.len()));
    let seed = Sum::from_folded(header.checksum());
    let _ = (header.verify_checksum4(seed), header.verify_checksum6(seed));
    let builder = udp::Builder {
        source_port: header.source_port(),
        destination_port: header.destination_port(),
        payload_len: header.payload().len(),
        checksum: header.checksum(),
    };
    let mut out = bytes[..usize::from(header.len())].to_vec();
    assert_eq!(builder.emit(&mut out), Ok(udp::HEADER_LEN));
    assert_eq!(out[..], bytes[..out.len()]);
    assert_eq!(builder.emit_with_checksum(&mut out, seed, header.payload()), Ok(udp::HEADER_LEN));
    assert!(udp::Header::parse(&out).is_ok_and(|again| again.verify_checksum6(seed)));
    dhcp::message(header.payload());
}

/// Reads a segment and writes it back.
pub fn tcp(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    assert_eq!(header.header_len() + header.payload().len(), bytes.len());
    tcp_options(header.options_bytes());
    let builder = Builder {
        source_port: header.source_port(),
        destination_port: header.destination_port(),
        sequence: header.sequence(),
        acknowledgement: header.acknowledgement(),
        flags: header.flags(),
        window: header.window(),
        checksum: header.checksum(),
        urgent: header.urgent(),
        options: header.options(),
    };
    let mut out = [0; MAX_HEADER_LEN];
    let len = builder.emit(&mut out).expect("60 bytes hold any header");
    assert_eq!(len, builder.header_len());
    // All but data offset and options come back; those are in our order.
    assert_eq!(out[..12], bytes[..12]);
    assert_eq!(out[13..20], bytes[13..20]);
    assert_eq!(Header::parse(&out[..len]).map(|again| again.payload().len()), Ok(0));
    let _ = (header.verify_checksum(Sum::ZERO), header.sequence_len());
}

/// Reads options and writes back what was understood.
pub fn tcp_options(bytes: &[u8]) {
    let options = Options::parse(bytes);
    let mut out = [0; MAX_OPTIONS_LEN];
    let len = options.emit(&mut out).expect("40 bytes hold any options");
    assert!(len == options.emitted_len() && len.is_multiple_of(4));
    let again = Options::parse(&out[..len]);
    let fit = options.max_sack_blocks().min(options.sack_blocks.len());
    assert_eq!(again.sack_blocks.as_slice(), &options.sack_blocks.as_slice()[..fit]);
    assert_eq!(again, Options { sack_blocks: again.sack_blocks, malformed: None, ..options });
}
