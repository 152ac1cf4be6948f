//! Segmentation, written after what is on the wire and sharing no code with what it is compared with.

use super::checksum;

/// The frames of a super-frame, and what is to be added to the sum of each because its length is another one.
pub fn split(frame: &[u8], size: usize, headers: usize, ip: usize, is_v6: bool) -> Vec<(Vec<u8>, u16)> {
    if frame.len() <= headers || frame[ip] >> 4 != if is_v6 { 6 } else { 4 } {
        return vec![(frame.to_vec(), 0)];
    }
    let layer4 = if is_v6 { ip + 40 } else { ip + 4 * usize::from(frame[ip] & 0xF) };
    let payload = &frame[headers..];
    let count = payload.len().div_ceil(size);
    let whole = (frame.len() - layer4) as u16;
    let pieces = payload.chunks(size).enumerate().map(|(at, piece)| {
        let mut out = [&frame[..headers], piece].concat();
        let (len, is_last) = ((out.len() - ip) as u16, at + 1 == count);
        if is_v6 {
            out[ip + 4..ip + 6].copy_from_slice(&(len - 40).to_be_bytes());
        } else {
            let id = u16::from_be_bytes([frame[ip + 4], frame[ip + 5]]).wrapping_add(at as u16);
            out[ip + 2..ip + 4].copy_from_slice(&len.to_be_bytes());
            out[ip + 4..ip + 6].copy_from_slice(&id.to_be_bytes());
            out[ip + 10..ip + 12].fill(0);
            let sum = !checksum::sum(&out[ip..layer4], 0);
            out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        }
        let seq: [u8; 4] = frame[layer4 + 4..layer4 + 8].try_into().expect("four bytes");
        let seq = u32::from_be_bytes(seq).wrapping_add((at * size) as u32);
        out[layer4 + 4..layer4 + 8].copy_from_slice(&seq.to_be_bytes());
        // CWR in the first only, PSH and FIN in the last only.
        out[layer4 + 13] &= if at == 0 { 0xFF } else { 0x7F } & if is_last { 0xFF } else { 0xF6 };
        let change = checksum::add((out.len() - layer4) as u16, !whole);
        (out, change)
    });
    pieces.collect()
}
