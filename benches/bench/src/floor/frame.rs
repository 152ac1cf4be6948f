//! Frames: what the floor reads of one, and the headers of those that it sends. IPv4 and TCP without options, but for the
//! SYN; sizes and places are those of RFC 791, RFC 826 and RFC 9293.

/// Ethernet, IPv4 and TCP headers without options, in bytes.
pub const HEADERS: usize = 54;
/// Payload of a full segment at an MTU of 1,500.
pub const MSS: usize = 1_460;
/// By how many bits our window is shifted.
pub const WINDOW_SHIFT: u8 = 7;
/// A TCP flag.
pub const FIN: u8 = 1;
/// A TCP flag.
pub const SYN: u8 = 2;
/// A TCP flag.
pub const RST: u8 = 4;
/// A TCP flag.
pub const PSH: u8 = 8;
/// A TCP flag.
pub const ACK: u8 = 16;

const ETHERNET: usize = 14;

/// An Ethernet address.
pub type Mac = [u8; 6];
/// An IPv4 address.
pub type Ip = [u8; 4];

/// Who we are.
#[derive(Clone, Copy, Debug)]
pub struct Us {
    /// Our Ethernet address.
    pub mac: Mac,
    /// Our address.
    pub ip: Ip,
}

/// A TCP segment that came for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// Who sent it: Ethernet address.
    pub mac: Mac,
    /// Who sent it: address.
    pub ip: Ip,
    /// Its port.
    pub port: u16,
    /// Ours.
    pub our_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// Window, as it stands there.
    pub window: u16,
    /// By how many bits its windows are shifted: in a SYN.
    pub shift: u8,
    /// Payload.
    pub payload: &'a [u8],
}

/// What a frame is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<'a> {
    /// Somebody asks for our Ethernet address: the answer.
    Arp([u8; 42]),
    /// A segment.
    Tcp(Segment<'a>),
    /// Nothing that we answer.
    Other,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads a frame that starts with its Ethernet header.
pub fn read(frame: &[u8], us: Us) -> Seen<'_> {
    if frame.len() >= 42 && word(frame, 12) == 0x0806 {
        return arp(frame, us).map_or(Seen::Other, Seen::Arp);
    }
    tcp(frame, us).map_or(Seen::Other, Seen::Tcp)
}

fn arp(frame: &[u8], us: Us) -> Option<[u8; 42]> {
    if word(frame, 20) != 1 || frame[38..42] != us.ip {
        return None;
    }
    let mut answer = [0; 42];
    answer[..6].copy_from_slice(&frame[6..12]);
    answer[6..12].copy_from_slice(&us.mac);
    answer[12..20].copy_from_slice(&frame[12..20]);
    answer[21] = 2;
    answer[22..28].copy_from_slice(&us.mac);
    answer[28..32].copy_from_slice(&us.ip);
    answer[32..42].copy_from_slice(&frame[22..32]);
    Some(answer)
}

fn tcp(frame: &[u8], us: Us) -> Option<Segment<'_>> {
    let ip = frame.get(ETHERNET..).filter(|ip| ip.len() >= 40 && frame[12..14] == [8, 0])?;
    let (header, total) = (usize::from(ip[0] & 15) * 4, usize::from(word(ip, 2)));
    if ip[0] >> 4 != 4 || ip[9] != 6 || ip[16..20] != us.ip {
        return None;
    }
    let tcp = ip.get(header..total).filter(|tcp| tcp.len() >= 20)?;
    let offset = usize::from(tcp[12] >> 4) * 4;
    let options = tcp.get(20..offset)?;
    Some(Segment {
        mac: frame[6..12].try_into().ok()?,
        ip: ip[12..16].try_into().ok()?,
        port: word(tcp, 0),
        our_port: word(tcp, 2),
        seq: long(tcp, 4),
        ack: long(tcp, 8),
        flags: tcp[13],
        window: word(tcp, 14),
        shift: if tcp[13] & SYN == 0 { 0 } else { shift(options) },
        payload: &tcp[offset..],
    })
}

/// The window scale among the options of a SYN.
fn shift(mut options: &[u8]) -> u8 {
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [3, 3, shift, ..] => return (*shift).min(14),
            [kind, len, ..] if *kind > 1 && *len >= 2 && usize::from(*len) <= options.len() => {
                &options[usize::from(*len)..]
            }
            _ => return 0,
        };
    }
}

/// Headers of a segment that we send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// To whom: Ethernet address.
    pub mac: Mac,
    /// To whom: address.
    pub ip: Ip,
    /// To which port.
    pub port: u16,
    /// From which.
    pub our_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
}

impl Reply {
    /// An answer to `segment` that starts where it says and acknowledges all of it.
    pub fn to(segment: &Segment<'_>, flags: u8) -> Reply {
        let counted = segment.payload.len() as u32 + u32::from(segment.flags & (SYN | FIN) != 0);
        Reply {
            mac: segment.mac,
            ip: segment.ip,
            port: segment.port,
            our_port: segment.our_port,
            seq: segment.ack,
            ack: segment.seq.wrapping_add(counted),
            flags,
        }
    }

    /// The headers, with the sum of the pseudo-header in place of the checksum; returns their length.
    pub fn write(&self, us: Us, payload_len: usize, out: &mut [u8; HEADERS + 8]) -> usize {
        let options: &[u8] = if self.flags & SYN == 0 { &[] } else { &[2, 4, 5, 180, 1, 3, 3, WINDOW_SHIFT] };
        let len = HEADERS + options.len();
        out[..6].copy_from_slice(&self.mac);
        out[6..12].copy_from_slice(&us.mac);
        out[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        out[16..18].copy_from_slice(&((len - ETHERNET + payload_len) as u16).to_be_bytes());
        out[18..26].copy_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        out[26..30].copy_from_slice(&us.ip);
        out[30..34].copy_from_slice(&self.ip);
        let check = !fold(sum(&out[14..34]));
        out[24..26].copy_from_slice(&check.to_be_bytes());
        out[34..36].copy_from_slice(&self.our_port.to_be_bytes());
        out[36..38].copy_from_slice(&self.port.to_be_bytes());
        out[38..42].copy_from_slice(&self.seq.to_be_bytes());
        out[42..46].copy_from_slice(&self.ack.to_be_bytes());
        out[46] = ((20 + options.len()) as u8 / 4) << 4;
        out[47] = self.flags;
        // Always open: 65,535 << 7 bytes.
        out[48..50].copy_from_slice(&[0xff, 0xff]);
        let tcp_len = (len - 34 + payload_len) as u64;
        let pseudo = fold(sum(&out[26..34]) + 6 + tcp_len);
        out[50..52].copy_from_slice(&pseudo.to_be_bytes());
        out[52..54].copy_from_slice(&[0, 0]);
        out[HEADERS..len].copy_from_slice(options);
        len
    }
}

/// The sum of the bytes as words, before it is folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let whole: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    whole + rest.first().map_or(0, |last| u64::from(*last) << 8)
}

/// The one's complement sum in 16 bits.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const US: Us = Us { mac: [2, 0, 0, 0, 0, 4], ip: [192, 168, 1, 4] };
    pub(crate) const PEER: Us = Us { mac: [2, 0, 0, 0, 0, 1], ip: [192, 168, 1, 1] };

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let reply =
            Reply { mac: US.mac, ip: US.ip, port: 80, our_port: 4_000, seq: 7, ack: 9, flags: ACK | PSH };
        let mut head = [0; HEADERS + 8];
        let len = reply.write(PEER, 3, &mut head);
        let mut frame = head[..len].to_vec();
        frame.extend_from_slice(b"abc");
        let Seen::Tcp(segment) = read(&frame, US) else { panic!("a segment") };
        assert_eq!((segment.port, segment.our_port, segment.seq, segment.ack), (4_000, 80, 7, 9));
        assert_eq!((segment.payload, segment.ip, segment.mac), (&b"abc"[..], PEER.ip, PEER.mac));
        assert_eq!(fold(sum(&frame[14..34])), 0xffff, "the IPv4 header's sum");
        // The field has the pseudo-header's sum: its complement over the segment completes it.
        let whole = !fold(sum(&frame[34..]));
        let pseudo = sum(&frame[26..34]) + 6 + (frame.len() - 34) as u64;
        let mut complete = frame.clone();
        complete[50..52].copy_from_slice(&whole.to_be_bytes());
        assert_eq!(fold(sum(&complete[34..]) + pseudo), 0xffff, "the segment's sum");
    }

    #[test]
    fn a_syn_has_its_options() {
        let reply = Reply { mac: US.mac, ip: US.ip, port: 80, our_port: 1, seq: 1, ack: 0, flags: SYN };
        let mut head = [0; HEADERS + 8];
        let len = reply.write(PEER, 0, &mut head);
        let Seen::Tcp(segment) = read(&head[..len], US) else { panic!("a segment") };
        assert_eq!((segment.shift, segment.flags), (WINDOW_SHIFT, SYN));
        assert_eq!(Reply::to(&segment, ACK).ack, 2);
    }

    #[test]
    fn odd_options_and_short_frames_are_no_fault() {
        assert_eq!(shift(&[3, 3]), 0);
        assert_eq!(shift(&[8, 10, 0]), 0);
        assert_eq!(shift(&[1, 1, 3, 3, 20]), 14);
        assert_eq!(shift(&[5, 0, 3, 3, 7]), 0);
        for len in 0..60 {
            assert_eq!(read(&vec![0x08; len], US), Seen::Other);
        }
    }

    #[test]
    fn who_asks_for_our_address_gets_it() {
        let mut ask = [0; 42];
        ask[..6].fill(0xff);
        ask[6..12].copy_from_slice(&PEER.mac);
        ask[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        ask[22..28].copy_from_slice(&PEER.mac);
        ask[28..32].copy_from_slice(&PEER.ip);
        ask[38..42].copy_from_slice(&US.ip);
        let Seen::Arp(answer) = read(&ask, US) else { panic!("an answer") };
        assert_eq!(answer[..12], [PEER.mac, US.mac].concat());
        assert_eq!(answer[20..42], [&[0, 2][..], &US.mac, &US.ip, &PEER.mac, &PEER.ip].concat());
        ask[41] = 9;
        assert_eq!(read(&ask, US), Seen::Other);
    }
}
