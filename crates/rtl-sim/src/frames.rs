//! Random received frames: mostly TCP and UDP, with everything that makes a parser stumble.

use crate::rng::Rng;
use linerate_wire::checksum::{Sum, checksum};

/// How often things happen, in percent of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mix {
    /// A frame longer than an MTU of 1500 brings, up to 9,014 bytes.
    pub jumbo: u64,
    /// Of these, one of up to 64,060 bytes, which takes as long as a hundred others.
    pub giant: u64,
    /// One VLAN tag; two in half as many.
    pub tagged: u64,
    /// IPv6, of the IP frames.
    pub ipv6: u64,
    /// Not IP, or neither TCP nor UDP.
    pub other: u64,
    /// IPv4 options, or IPv6 extension headers.
    pub extended: u64,
    /// A fragment.
    pub fragments: u64,
    /// A checksum of layer 4 that is wrong.
    pub bad_layer4: u64,
    /// An IPv4 header checksum that is wrong.
    pub bad_ip: u64,
    /// A length, a version, a type, any byte of a header that is wrong, or an end that is cut off.
    pub malformed: u64,
}

impl Default for Mix {
    fn default() -> Self {
        Mix {
            jumbo: 2,
            giant: 0,
            tagged: 20,
            ipv6: 40,
            other: 4,
            extended: 15,
            fragments: 4,
            bad_layer4: 14,
            bad_ip: 8,
            malformed: 6,
        }
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A frame of `mix`, without FCS, at least 60 bytes long unless its end was cut off.
pub fn random(rng: &mut Rng, mix: &Mix) -> Vec<u8> {
    let mut frame = vec![0; 12];
    rng.fill(&mut frame);
    let mut tags = u64::from(rng.chance(mix.tagged)) + u64::from(rng.chance(mix.tagged / 2));
    while tags > 0 {
        let tag = if tags == 2 || rng.chance(10) { 0x88a8u16 } else { 0x8100 };
        frame.extend(tag.to_be_bytes());
        frame.extend((rng.bits() as u16).to_be_bytes());
        tags -= 1;
    }
    let headers = frame.len();
    if rng.chance(mix.other / 2) {
        let kind = rng.pick(&[0x0806u16, 0x88cc, 0x8100, 0x0026, 0x86dc, 0x0801]);
        frame.extend(kind.to_be_bytes());
        let len = rng.between(0, 100);
        append_random(rng, &mut frame, len);
    } else if rng.chance(mix.ipv6) {
        frame.extend([0x86, 0xdd]);
        ipv6(rng, mix, &mut frame);
    } else {
        frame.extend([0x08, 0x00]);
        ipv4(rng, mix, &mut frame);
    }
    if frame.len() < 60 || rng.chance(5) {
        // Padding, which no rule says is zero.
        let len = 60usize.saturating_sub(frame.len()) + if rng.chance(20) { rng.between(0, 9) } else { 0 };
        append_random(rng, &mut frame, len);
    }
    if rng.chance(mix.malformed) {
        spoil(rng, &mut frame, headers);
    }
    frame
}

fn spoil(rng: &mut Rng, frame: &mut Vec<u8>, headers: usize) {
    let reach = (frame.len() - headers).min(80) as u64;
    match rng.below(5) {
        // One bit of a type, a tag or the version: what is almost right.
        4 => {
            let at = rng.between(12, headers + 4);
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        0 => frame.truncate(rng.between(1, frame.len())),
        // The length of IPv4 or IPv6, by a little and by a lot.
        1 => {
            let at = headers + rng.pick(&[3, 5, 6, 7]);
            if let Some(byte) = frame.get_mut(at) {
                *byte = byte.wrapping_add(rng.pick(&[1, 2, 3, 0xff, 0xfe, 0x80]));
            }
        }
        _ => {
            let at = headers + rng.below(reach) as usize;
            frame[at] = rng.bits() as u8;
        }
    }
}

fn append_random(rng: &mut Rng, to: &mut Vec<u8>, len: usize) {
    let from = to.len();
    to.resize(from + len, 0);
    rng.fill(&mut to[from..]);
}

fn payload_len(rng: &mut Rng, mix: &Mix) -> usize {
    if rng.chance(mix.jumbo) {
        if rng.chance(mix.giant) { rng.between(8_901, 64_000) } else { rng.between(1_461, 8_900) }
    } else if rng.chance(60) {
        rng.between(0, 40)
    } else {
        rng.between(41, 1_460)
    }
}

fn protocol(rng: &mut Rng, mix: &Mix) -> u8 {
    if rng.chance(mix.other / 2) {
        let almost = rng.pick(&[TCP, UDP, 0, 43, 44, 51, 60]) ^ 1 << rng.below(8);
        rng.pick(&[1, 2, 47, 58, 132, 255, almost, almost, almost])
    } else if rng.chance(60) {
        TCP
    } else {
        UDP
    }
}

fn ipv4(rng: &mut Rng, mix: &Mix, frame: &mut Vec<u8>) {
    let protocol = protocol(rng, mix);
    let options = if rng.chance(mix.extended) { rng.between(1, 10) } else { 0 };
    let mut header = vec![0; 20];
    rng.fill(&mut header);
    append_random(rng, &mut header, 4 * options);
    let pseudo: Vec<u8> = header[12..20].to_vec();
    let fragment = rng.chance(mix.fragments);
    let layer4 = layer4(rng, mix, protocol, &pseudo);
    header[0] = 0x45 + options as u8;
    let total = (header.len() + layer4.len()) as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    let flags =
        if fragment { rng.pick(&[0x2000u16, 0x00b9, 0x20b9]) } else { rng.pick(&[0x4000u16, 0, 0x4000]) };
    header[6..8].copy_from_slice(&flags.to_be_bytes());
    header[9] = protocol;
    header[10..12].fill(0);
    let sum = checksum(&header) ^ if rng.chance(mix.bad_ip) { 1 + rng.below(0xfffe) as u16 } else { 0 };
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend(layer4);
}

fn ipv6(rng: &mut Rng, mix: &Mix, frame: &mut Vec<u8>) {
    let protocol = protocol(rng, mix);
    let mut header = vec![0; 40];
    rng.fill(&mut header);
    let pseudo = header[8..40].to_vec();
    let mut kinds = Vec::new();
    if rng.chance(mix.extended) {
        // Up to one more than are walked over.
        let count = if rng.chance(5) { rng.between(7, 9) } else { rng.between(1, 4) };
        kinds.extend((0..count).map(|_| rng.pick(&[0u8, 60, 43, 51, 60])));
    }
    if rng.chance(mix.fragments) {
        kinds.push(44);
    }
    let mut extensions = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let from = extensions.len();
        let units = match rng.below(100) {
            0..80 => rng.between(0, 2),
            80..98 => rng.between(3, 12),
            _ => rng.between(13, 255),
        };
        let len = match kind {
            44 => 8,
            51 => 4 * (units + 2),
            _ => 8 * (units + 1),
        };
        append_random(rng, &mut extensions, len);
        extensions[from] = kinds.get(index + 1).copied().unwrap_or(protocol);
        match kind {
            // Atomic fragments too (RFC 6946).
            44 if rng.chance(40) => extensions[from + 2..from + 4].fill(0),
            44 => {}
            _ => extensions[from + 1] = units as u8,
        }
        if *kind == 43 && rng.chance(70) {
            // No segments left: the addresses are those of the pseudo-header.
            extensions[from + 3] = 0;
        }
    }
    let layer4 = layer4(rng, mix, protocol, &pseudo);
    header[0] = 0x60 | header[0] & 0xf;
    header[4..6].copy_from_slice(&((extensions.len() + layer4.len()) as u16).to_be_bytes());
    header[6] = kinds.first().copied().unwrap_or(protocol);
    frame.extend(header);
    frame.extend(extensions);
    frame.extend(layer4);
}

/// A header above IP and its payload; `addresses` are those of the pseudo-header.
fn layer4(rng: &mut Rng, mix: &Mix, protocol: u8, addresses: &[u8]) -> Vec<u8> {
    let payload = payload_len(rng, mix);
    let mut packet = Vec::new();
    let field = match protocol {
        TCP => {
            let options = if rng.chance(50) { rng.pick(&[3, 3, 3, 1, 10]) } else { 0 };
            append_random(rng, &mut packet, 20 + 4 * options + payload);
            packet[12] = (5 + options as u8) << 4 | packet[12] & 0xf;
            16
        }
        UDP => {
            append_random(rng, &mut packet, 8 + payload);
            let len = packet.len() as u16;
            packet[4..6].copy_from_slice(&len.to_be_bytes());
            6
        }
        _ => {
            append_random(rng, &mut packet, payload);
            return packet;
        }
    };
    if rng.chance(10) {
        // Carries out of every word.
        packet.iter_mut().skip(20).for_each(|byte| *byte |= 0xfe);
    }
    packet[field..field + 2].fill(0);
    let mut sum = Sum::ZERO;
    sum.add(addresses);
    sum.add_u32(u32::from(protocol));
    sum.add_u32(packet.len() as u32);
    sum.add(&packet);
    let mut value = if protocol == UDP { sum.finish_udp() } else { sum.finish() };
    if rng.chance(mix.bad_layer4) {
        // Also by the one bit that a sloppy adder loses.
        value = value.wrapping_add(rng.pick(&[1, 0xffff, 0x100, 0x8000, 0x1234]));
    }
    if protocol == UDP && rng.chance(5) {
        value = 0;
    }
    packet[field..field + 2].copy_from_slice(&value.to_be_bytes());
    if protocol == UDP && rng.chance(3) {
        // A length of its own that does not fit, or is shorter than the packet.
        let len = packet.len() as u16;
        let len = rng.pick(&[len.wrapping_sub(1), len.wrapping_add(1), 8, 7, 0, len / 2]);
        packet[4..6].copy_from_slice(&len.to_be_bytes());
    }
    if rng.chance(2) {
        // Not even a header.
        packet.truncate(rng.between(0, 22));
    }
    packet
}

/// Bytes that bring the one's complement sum of `bytes`, from the 15th on, to where a carry more or less counts: to a
/// number that is all ones but for one bit at most, and behind it a stretch of words that each carry.
pub fn append_to_brink(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.len() % 2 == 1 {
        bytes.push(rng.bits() as u8);
    }
    let at = bytes.len().max(14);
    bytes.resize(at + 2, 0xa5);
    let brink = if rng.chance(30) { 0 } else { 1 << rng.below(16) };
    let target = (0xffff ^ brink as u16).wrapping_add(rng.below(6) as u16);
    // Counted as the words lie in memory, the lower byte first: so does the adder.
    for _ in 0..rng.between(0, 16) {
        bytes.extend([0xff, rng.pick(&[0xff, 0xfe, 0xfd, 0xf0])]);
    }
    bytes[at..at + 2].fill(0);
    let mut sum = Sum::ZERO;
    sum.add(&bytes[14..]);
    // In one's complement the difference is the sum with the complement.
    let mut rest = Sum::ZERO;
    rest.add(&target.to_le_bytes());
    rest.add(&(!sum.folded()).to_be_bytes());
    bytes[at..at + 2].copy_from_slice(&rest.folded().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_frames_of_every_length() {
        let all = |seed| -> Vec<Vec<u8>> {
            let mut rng = Rng::new(seed);
            (0..3_000).map(|_| random(&mut rng, &Mix::default())).collect()
        };
        let frames = all(7);
        assert_eq!(frames, all(7));
        assert!(frames.iter().any(|frame| frame.len() > 8_000));
        assert!(frames.iter().any(|frame| frame.len() < 60));
        assert!(frames.iter().filter(|frame| frame.len() == 60).count() > 50);
        let of_type = |kind: [u8; 2]| frames.iter().filter(|frame| frame.get(12..14) == Some(&kind)).count();
        assert!(of_type([0x81, 0]) > 200 && of_type([0x88, 0xa8]) > 50 && of_type([0x86, 0xdd]) > 500);
    }
}
