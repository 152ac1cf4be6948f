//! The checksum unit, written after the hardware's documentation and sharing no code with what it is compared with.

/// Sums 16-bit words, big-endian, with the carry carried round at once; a last odd byte is the high one.
pub fn sum(bytes: &[u8], start: u16) -> u16 {
    let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    words.fold(start, |sum, word| {
        let (sum, has_carry) = sum.overflowing_add(word);
        sum + u16::from(has_carry)
    })
}

/// One's complement addition.
pub fn add(one: u16, other: u16) -> u16 {
    let (sum, has_carry) = one.overflowing_add(other);
    sum + u16::from(has_carry)
}

/// Fills in the checksum that the app words ask for: summed from `begin` to the end, starting from `seed`. Zero, which would mean
/// "none" in UDP, goes out as all ones there.
pub fn insert(frame: &mut [u8], seed: u16, begin: usize, at: usize, lies: bool) {
    let total = !sum(&frame[begin.min(frame.len())..], seed);
    let value = if lies { total.wrapping_add(1) } else { total };
    let is_udp = at.checked_sub(begin) == Some(6);
    if let Some(field) = frame.get_mut(at..at + 2) {
        field.copy_from_slice(&if value == 0 && is_udp { 0xFFFF } else { value }.to_be_bytes());
    }
}

/// The sum from the 15th byte to the end.
pub fn raw_sum(frame: &[u8]) -> u16 {
    sum(frame.get(14..).unwrap_or_default(), 0)
}

/// What the unit finds: the code for app 4.
pub fn status(frame: &[u8]) -> u32 {
    match frame.get(12..14) {
        Some([0x08, 0x00]) => status4(&frame[14..]).unwrap_or(0b000),
        Some([0x86, 0xDD]) => status6(&frame[14..]).unwrap_or(0b000),
        _ => 0b000,
    }
}

fn status4(packet: &[u8]) -> Option<u32> {
    let header_len = usize::from(packet.first()? & 0xF) * 4;
    let header = packet.get(..header_len.max(20))?;
    if sum(header, 0) != 0xFFFF {
        return Some(0b101);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    let payload = packet.get(header.len()..total)?;
    if is_fragment { Some(0b001) } else { layer4(header[9], &header[12..20], payload, true) }
}

fn status6(packet: &[u8]) -> Option<u32> {
    let header = packet.get(..40)?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    layer4(header[6], &header[8..40], packet.get(40..40 + len)?, false)
}

fn layer4(protocol: u8, addresses: &[u8], payload: &[u8], is_v4: bool) -> Option<u32> {
    let (good, bad) = match protocol {
        6 => (0b010, 0b110),
        17 if is_v4 && payload.get(6..8)? == [0, 0] => return Some(0b001),
        17 => (0b011, 0b111),
        _ => return Some(0b001),
    };
    let pseudo = sum(addresses, u16::from(protocol));
    let with_len = sum(&(payload.len() as u32).to_be_bytes(), pseudo);
    Some(if sum(payload, with_len) == 0xFFFF { good } else { bad })
}
