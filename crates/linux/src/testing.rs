//! What the tests of the devices share: a network namespace for each, and frames of all kinds.
#![allow(unsafe_code)]

use linerate_nic::{
    ChecksumRequest, ChecksumStatus, Chunk, Frame, Interface, MacAddr, RxBatch, Segmentation, TxQueue,
    TxToken,
};
use linerate_wire::units::Instant;
use rustix::fd::AsFd;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Addresses of the host's end and of ours.
pub(crate) const HOST4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(crate) const OURS4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 4);
pub(crate) const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1);
pub(crate) const OURS6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 4);

/// Our Ethernet address.
pub(crate) const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 4]);

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the tests of the devices cannot run here, if they cannot.
fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        Some("not root")
    } else if !std::path::Path::new("/dev/net/tun").exists() {
        Some("no /dev/net/tun")
    } else {
        None
    }
}

/// Runs `test` in a thread with a network namespace of its own, which is gone with the thread. Where that cannot be
/// had, prints a line that begins with `SKIPPED` to standard error, past the capture of the test harness.
pub(crate) fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    if let Some(obstacle) = obstacle() {
        let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {obstacle}");
        return;
    }
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // SAFETY: only the network namespace of this thread changes. No memory and no descriptor table is unshared, so
        // that nothing another thread relies on is affected.
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
        test();
    });
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

/// Datagrams of the host's kernel on a veth pair arrive, each in a small buffer. Their checksums are left to a card that there is
/// not, and taken for right. `look` is called for each.
pub(crate) fn datagrams_arrive<D: Interface + AsFd>(device: &mut D, look: impl Fn(&Frame)) {
    for v4 in [true, false] {
        for len in [0, 1, 1400] {
            host_socket(v4).send_to(&vec![0xa5; len], ours(v4, 7)).unwrap();
            let frame = await_frame(device, |frame| is_to_port(frame, 17, 7));
            let headers = if v4 { 42 } else { 62 };
            assert_eq!(frame.len(), headers + len);
            assert_eq!(&frame.data.bytes()[..6], &OUR_MAC.0);
            assert!(frame.data.bytes()[headers..].iter().all(|&byte| byte == 0xa5));
            assert_eq!(frame.data.held(), 2 << 10);
            let intact = udp_checksum_holds(frame.data.bytes(), v4);
            assert!(frame.meta.checksum == ChecksumStatus::Good && !intact, "{:?}", frame.meta);
            look(&frame);
        }
    }
}

/// What `peer` sends at the host's end has its checksum, of which the device says nothing.
pub(crate) fn a_complete_checksum_is_left<D, P>(device: &mut D, peer: &mut P, host_mac: MacAddr)
where
    D: Interface + AsFd,
    P: Interface + AsFd,
{
    let mut packet = to_host(OUR_MAC, true, 17, 7);
    std::mem::swap(&mut packet.from, &mut packet.to);
    packet.from_mac = host_mac;
    send_one(peer, |slot| packet.fill(slot, &[b"complete"], false, 0));
    let frame = await_frame(device, |frame| is_to_port(frame, 17, 7));
    assert_eq!(frame.meta.checksum, ChecksumStatus::Unchecked);
    assert!(udp_checksum_holds(frame.data.bytes(), true));
}

/// Receives until `wanted` accepts a frame.
pub(crate) fn await_frame<D: Interface + AsFd>(device: &mut D, wanted: impl Fn(&Frame) -> bool) -> Frame {
    let deadline = std::time::Instant::now() + PATIENCE;
    // One at a time: what follows the frame stays in the kernel for the next call.
    let mut batch = RxBatch::with_limit(1);
    while std::time::Instant::now() < deadline {
        device.receive(Instant::ZERO, &mut batch).unwrap();
        match batch.pop() {
            Some(frame) if wanted(&frame) => return frame,
            Some(_) => {}
            None => wait_readable(device, Duration::from_millis(100)),
        }
    }
    panic!("the frame never came");
}

/// Waits until the device has a frame, or `limit`.
pub(crate) fn wait_readable(device: &impl AsFd, limit: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::new(device, PollFlags::IN)], Some(&timeout)).unwrap();
}

/// Sends one packet made by `fill`; it must leave, with its completion.
pub(crate) fn send_one<D: Interface>(device: &mut D, fill: impl FnOnce(&mut linerate_nic::TxPacket)) {
    let mut queue = TxQueue::with_capacity(1);
    let packet = queue.vacant().unwrap();
    fill(packet);
    packet.meta.token = TxToken(99);
    queue.commit();
    assert_eq!(device.transmit(Instant::ZERO, &mut queue), Ok(1));
    assert_eq!(device.poll_completion(), Some(TxToken(99)));
    assert_eq!(device.poll_completion(), None);
}

/// The sum of 16-bit words, folded, not complemented.
pub(crate) fn sum(parts: &[&[u8]]) -> u16 {
    let mut total: u64 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            total += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The sum over the pseudo-header of RFC 9293 section 3.1 or RFC 8200 section 8.1.
pub(crate) fn pseudo_sum(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> u16 {
    let tail = [&(len as u32).to_be_bytes()[..], &[0, protocol]].concat();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => sum(&[&from.octets(), &to.octets(), &tail]),
        (IpAddr::V6(from), IpAddr::V6(to)) => sum(&[&from.octets(), &to.octets(), &tail]),
        _ => panic!("mixed families"),
    }
}

/// One packet to build.
pub(crate) struct Packet {
    pub(crate) to_mac: MacAddr,
    pub(crate) from_mac: MacAddr,
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// 17 for UDP, 6 for TCP (sent as data with ACK).
    pub(crate) protocol: u8,
    pub(crate) ports: (u16, u16),
}

impl Packet {
    fn layer4(&self, payload_len: usize) -> Vec<u8> {
        let mut header = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        if self.protocol == 17 {
            header.extend_from_slice(&((8 + payload_len) as u16).to_be_bytes());
            header.extend_from_slice(&[0; 2]);
        } else {
            header.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        }
        header
    }

    /// Ethernet and IP headers for `len` bytes of layer 4.
    fn layers23(&self, len: usize) -> Vec<u8> {
        let mut header = [self.to_mac.0, self.from_mac.0].concat();
        match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                header.extend_from_slice(&[0x08, 0x00]);
                let total = ((20 + len) as u16).to_be_bytes();
                let mut ip = vec![0x45, 0, total[0], total[1], 0, 1, 0x40, 0, 64, self.protocol, 0, 0];
                ip.extend_from_slice(&from.octets());
                ip.extend_from_slice(&to.octets());
                let checksum = !sum(&[&ip]);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
                header.extend_from_slice(&ip);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                header.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
                header.extend_from_slice(&(len as u16).to_be_bytes());
                header.extend_from_slice(&[self.protocol, 64]);
                header.extend_from_slice(&from.octets());
                header.extend_from_slice(&to.octets());
            }
            _ => panic!("mixed families"),
        }
        header
    }

    /// Fills `packet` with these headers and the payload in pieces. With `offload` the checksum is left to the device;
    /// `segment_size` other than 0 makes it a super-segment.
    pub(crate) fn fill(
        &self,
        packet: &mut linerate_nic::TxPacket,
        pieces: &[&'static [u8]],
        offload: bool,
        segment_size: u16,
    ) {
        let payload_len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut layer4 = self.layer4(payload_len);
        let len = layer4.len() + payload_len;
        let pseudo = pseudo_sum(self.from, self.to, self.protocol, len);
        let offset = if self.protocol == 17 { 6 } else { 16 };
        let field = if offload {
            pseudo
        } else {
            let payload = pieces.concat();
            match !sum(&[&pseudo.to_be_bytes(), &layer4, &payload]) {
                0 => 0xffff,
                other => other,
            }
        };
        layer4[offset..offset + 2].copy_from_slice(&field.to_be_bytes());
        let header = self.layers23(len);
        let start = header.len() as u16;
        let header = [header, layer4].concat();
        packet.header_mut(header.len()).copy_from_slice(&header);
        for piece in pieces {
            packet.push_chunk(Chunk::constant(piece)).unwrap();
        }
        packet.meta.header_len = header.len() as u16;
        packet.meta.checksum = offload.then_some(ChecksumRequest { start, offset: offset as u16 });
        packet.meta.segmentation = match (segment_size, self.from.is_ipv4()) {
            (0, _) => Segmentation::None,
            (size, true) => Segmentation::Tcp4(size),
            (size, false) => Segmentation::Tcp6(size),
        };
    }
}

/// Whether `frame` is an untagged UDP or TCP packet to `port`; `protocol` as in the IP header.
pub(crate) fn is_to_port(frame: &Frame, protocol: u8, port: u16) -> bool {
    let bytes = frame.data.bytes();
    let (next, ports) = match bytes.get(12..14) {
        Some([0x08, 0x00]) => (bytes.get(23), bytes.get(36..38)),
        Some([0x86, 0xdd]) => (bytes.get(20), bytes.get(56..58)),
        _ => return false,
    };
    next == Some(&protocol) && ports == Some(&port.to_be_bytes()[..])
}

/// A packet from us to the host's end.
pub(crate) fn to_host(host_mac: MacAddr, v4: bool, protocol: u8, port: u16) -> Packet {
    let (from, to): (IpAddr, IpAddr) =
        if v4 { (OURS4.into(), HOST4.into()) } else { (OURS6.into(), HOST6.into()) };
    Packet { to_mac: host_mac, from_mac: OUR_MAC, from, to, protocol, ports: (4000, port) }
}

/// A UDP socket at the host's end.
pub(crate) fn host_socket(v4: bool) -> UdpSocket {
    let ip: IpAddr = if v4 { HOST4.into() } else { HOST6.into() };
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Our address with a port.
pub(crate) fn ours(v4: bool, port: u16) -> SocketAddr {
    SocketAddr::new(if v4 { OURS4.into() } else { OURS6.into() }, port)
}

/// Whether a UDP frame's checksum is complete and right.
pub(crate) fn udp_checksum_holds(frame: &[u8], v4: bool) -> bool {
    let (from, to): (IpAddr, IpAddr) =
        if v4 { (HOST4.into(), OURS4.into()) } else { (HOST6.into(), OURS6.into()) };
    let udp = &frame[if v4 { 34 } else { 54 }..];
    sum(&[&pseudo_sum(from, to, 17, udp.len()).to_be_bytes(), udp]) == 0xffff
}

/// Plays a TCP peer just long enough that the kernel sends it `data` in one piece: answers its SYN, then its frames are
/// returned as they come.
pub(crate) fn tcp_from_host<D: Interface + AsFd>(
    device: &mut D,
    host_mac: MacAddr,
    port: u16,
    data: &'static [u8],
    mss: u16,
) -> Vec<Frame> {
    std::thread::scope(|scope| {
        // The scope's thread inherits the namespace of this one.
        let writer = scope.spawn(move || {
            let mut stream = TcpStream::connect(ours(true, port)).unwrap();
            // Whatever the machine's default is: this one sends its whole window at once.
            rustix::net::sockopt::set_tcp_congestion(&stream, "reno").unwrap();
            std::io::Write::write_all(&mut stream, data).unwrap();
            stream
        });
        let syn = await_frame(device, |frame| is_to_port(frame, 6, port));
        let tcp = &syn.data.bytes()[34..];
        let (from_port, sequence) =
            (u16::from_be_bytes([tcp[0], tcp[1]]), u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]));
        let packet = to_host(host_mac, true, 6, from_port);
        let packet = Packet { ports: (port, from_port), ..packet };
        send_one(device, |slot| {
            // The options go where payload would: MSS and window scale 7, padded.
            let options = vec![2, 4, (mss >> 8) as u8, mss as u8, 3, 3, 7, 0];
            packet.fill(slot, &[], true, 0);
            let mut header = slot.header().to_vec();
            header[42..46].copy_from_slice(&sequence.wrapping_add(1).to_be_bytes());
            header[46] = 0x70;
            header[47] = 0x12;
            header[17] += 8;
            header[24..26].fill(0);
            let ip = !sum(&[&header[14..34]]);
            header[24..26].copy_from_slice(&ip.to_be_bytes());
            let pseudo = pseudo_sum(OURS4.into(), HOST4.into(), 6, 28);
            header[50..52].copy_from_slice(&pseudo.to_be_bytes());
            slot.header_mut(header.len()).copy_from_slice(&header);
            slot.push_chunk(Chunk::Shared(options.into())).unwrap();
        });
        let mut frames = Vec::new();
        let mut received = 0;
        while received < data.len() {
            let frame = await_frame(device, |frame| is_to_port(frame, 6, port) && frame.len() > 66);
            // A large frame lies in several buffers.
            let pieces = frame.more.iter().flat_map(|piece| piece.bytes());
            let payload: Vec<u8> = frame.data.bytes()[54..].iter().chain(pieces).copied().collect();
            assert!(payload == data[received..received + payload.len()], "out of order at {received}");
            received += payload.len();
            frames.push(frame);
        }
        drop(writer.join().unwrap());
        frames
    })
}

/// Ten segments of 1,000 bytes: what the kernel's initial window lets out at once.
pub(crate) static DATA: [u8; 10_000] = {
    let mut data = [0; 10_000];
    let mut i = 0;
    while i < data.len() {
        data[i] = (i % 253) as u8;
        i += 1;
    }
    data
};
