use super::*;
use crate::netconfig::{HostInterface, Netlink};
use crate::testing::{
    HOST4, HOST6, OURS4, OURS6, Packet, await_frame, in_namespace, is_to_port, pseudo_sum, send_one, sum,
};
use linerate_nic::{ChecksumStatus, Chunk, Pool};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const OUR_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 4]);

/// A TAP with addresses on the host's side, up, with us as static neighbour.
fn open(enabled: Capabilities) -> (Tap, HostInterface) {
    let config = TapConfig { mac: Some(OUR_MAC), enabled, ..TapConfig::new(RxPools::new(8, 64)) };
    let tap = Tap::open(config).unwrap();
    let mut host = HostInterface::open(tap.name()).unwrap();
    host.up().unwrap();
    host.add_address(HOST4.into(), 24).unwrap();
    host.add_address(HOST6.into(), 64).unwrap();
    let mut netlink = Netlink::open().unwrap();
    netlink.set_neighbour(tap.index(), OURS4.into(), OUR_MAC).unwrap();
    netlink.set_neighbour(tap.index(), OURS6.into(), OUR_MAC).unwrap();
    (tap, host)
}

fn to_host(tap: &Tap, v4: bool, protocol: u8, port: u16) -> Packet {
    let (from, to): (IpAddr, IpAddr) =
        if v4 { (OURS4.into(), HOST4.into()) } else { (OURS6.into(), HOST6.into()) };
    Packet { to_mac: tap.host_mac(), from_mac: OUR_MAC, from, to, protocol, ports: (4000, port) }
}

fn host_socket(v4: bool) -> UdpSocket {
    let ip: IpAddr = if v4 { HOST4.into() } else { HOST6.into() };
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

fn ours(v4: bool, port: u16) -> SocketAddr {
    SocketAddr::new(if v4 { OURS4.into() } else { OURS6.into() }, port)
}

/// Whether a UDP frame's checksum is complete and right.
fn udp_checksum_holds(frame: &[u8], v4: bool) -> bool {
    let (from, to): (IpAddr, IpAddr) =
        if v4 { (HOST4.into(), OURS4.into()) } else { (HOST6.into(), OURS6.into()) };
    let udp = &frame[if v4 { 34 } else { 54 }..];
    sum(&[&pseudo_sum(from, to, 17, udp.len()).to_be_bytes(), udp]) == 0xffff
}

#[test]
fn frames_of_the_host_arrive_with_what_the_kernel_says_of_them() {
    in_namespace("frames_of_the_host_arrive", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        let check = |tap: &mut Tap, v4, len: usize, buffer| {
            host_socket(v4).send_to(&vec![0xa5; len], ours(v4, 7)).unwrap();
            let frame = await_frame(tap, |frame| is_to_port(frame, 17, 7));
            let headers = if v4 { 42 } else { 62 };
            assert_eq!(frame.len(), headers + len);
            assert_eq!(&frame.data.bytes()[..6], &OUR_MAC.0);
            assert!(frame.data.bytes()[headers..].iter().all(|&byte| byte == 0xa5));
            assert_eq!(frame.data.held(), buffer, "{len} bytes");
            assert_eq!((frame.meta.checksum, frame.meta.segment_size), (ChecksumStatus::Good, 0));
            assert!(!udp_checksum_holds(frame.data.bytes(), v4), "a partial checksum was expected");
        };
        for v4 in [true, false] {
            for len in [0, 1, 1400, 100] {
                check(&mut tap, v4, len, 2 << 10);
            }
        }
        tap.enable(Capabilities::NONE).unwrap();
        for v4 in [true, false] {
            host_socket(v4).send_to(b"plain", ours(v4, 7)).unwrap();
            let frame = await_frame(&mut tap, |frame| is_to_port(frame, 17, 7));
            assert_eq!(frame.meta.checksum, ChecksumStatus::Unchecked);
            assert!(udp_checksum_holds(frame.data.bytes(), v4));
        }
        assert_eq!(tap.enabled(), Capabilities::NONE);
        tap.enable(Capabilities::ALL).unwrap();
        check(&mut tap, true, 10, 2 << 10);
    });
}

/// Plays a TCP peer just long enough that the kernel sends it `data` in one piece: answers its SYN, then its frames are
/// returned as they come.
fn tcp_from_host(tap: &mut Tap, port: u16, data: &'static [u8], mss: u16) -> Vec<Frame> {
    std::thread::scope(|scope| {
        // The scope's thread inherits the namespace of this one.
        let writer = scope.spawn(move || {
            let mut stream = TcpStream::connect(ours(true, port)).unwrap();
            std::io::Write::write_all(&mut stream, data).unwrap();
            stream
        });
        let syn = await_frame(tap, |frame| is_to_port(frame, 6, port));
        let tcp = &syn.data.bytes()[34..];
        let (from_port, sequence) =
            (u16::from_be_bytes([tcp[0], tcp[1]]), u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]));
        let packet = to_host(tap, true, 6, from_port);
        let packet = Packet { ports: (port, from_port), ..packet };
        send_one(tap, |slot| {
            // The options go where payload would: MSS and window scale 7, padded.
            let options: &'static [u8] = Box::leak(Box::new([2, 4, (mss >> 8) as u8, mss as u8, 3, 3, 7, 0]));
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
            slot.push_chunk(Chunk::Static(options)).unwrap();
        });
        let mut frames = Vec::new();
        let mut received = 0;
        while received < data.len() {
            let frame = await_frame(tap, |frame| is_to_port(frame, 6, port) && frame.len() > 66);
            let payload = &frame.data.bytes()[54..];
            assert!(payload == &data[received..received + payload.len()], "out of order at {received}");
            received += payload.len();
            frames.push(frame);
        }
        drop(writer.join().unwrap());
        frames
    })
}

/// Ten segments of 1,000 bytes: what the kernel's initial window lets out at once.
static DATA: [u8; 10_000] = {
    let mut data = [0; 10_000];
    let mut i = 0;
    while i < data.len() {
        data[i] = (i % 253) as u8;
        i += 1;
    }
    data
};

#[test]
fn the_hosts_super_segments_arrive_whole_or_split_as_switched() {
    in_namespace("the_hosts_super_segments", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        let frames = tcp_from_host(&mut tap, 9, &DATA, 1000);
        assert!(frames.iter().any(|frame| frame.meta.segment_size == 1000 && frame.len() > 4000));
        assert!(frames.iter().all(|frame| frame.meta.checksum == ChecksumStatus::Good));
        assert!(tap.stats().rx_super_frames > 0);
        drop(frames);
        tap.enable(Capabilities { rx_coalescing: false, ..Capabilities::ALL }).unwrap();
        let frames = tcp_from_host(&mut tap, 10, &DATA, 1000);
        assert!(frames.len() >= 10);
        assert!(frames.iter().all(|frame| frame.meta.segment_size == 0 && frame.len() <= 1054));
    });
}

#[test]
fn our_packets_reach_the_hosts_sockets_with_and_without_its_checksumming() {
    in_namespace("our_packets_reach_the_host", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        for v4 in [true, false] {
            let socket = host_socket(v4);
            let port = socket.local_addr().unwrap().port();
            for offload in [true, false] {
                let packet = to_host(&tap, v4, 17, port);
                send_one(&mut tap, |slot| packet.fill(slot, &[b"one ", b"", b"payload"], offload, 0));
                let mut got = [0; 64];
                let len = socket.recv(&mut got).unwrap();
                assert_eq!(&got[..len], b"one payload", "v4={v4} offload={offload}");
            }
        }
        assert_eq!((tap.stats().tx_frames, tap.stats().tx_super_frames), (4, 0));
    });
}

#[test]
fn our_super_segments_reach_the_host_whole() {
    static PAGE: [u8; 3600] = [0x5a; 3600];
    in_namespace("our_super_segments_reach_the_host", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        // 18 pieces of 3,600 bytes: 64,800 bytes behind one header. The host's TCP takes them as one segment, and answers
        // one that belongs to no connection with one RST.
        for (v4, headers, size) in [(true, 54, 1460), (false, 74, 1440)] {
            let packet = to_host(&tap, v4, 6, 12_345);
            send_one(&mut tap, |slot| packet.fill(slot, &[&PAGE[..]; 18], true, size));
            let reset = await_frame(&mut tap, |frame| is_to_port(frame, 6, 4000));
            let tcp = &reset.data.bytes()[headers - 20..];
            assert_eq!(tcp[13] & 0x04, 0x04, "RST");
            assert_eq!(tcp[4..8], [0, 0, 0, 1], "its sequence number is our acknowledgement number");
        }
        assert_eq!((tap.stats().tx_frames, tap.stats().tx_super_frames), (2, 2));
        assert_eq!(tap.stats().tx_bytes, 2 * 64_800 + 54 + 74);
        let received = std::fs::read_to_string(format!("/sys/class/net/{}/statistics/rx_bytes", tap.name()));
        // The sysfs mount may show another namespace: then the counter is not there to read.
        if let Ok(received) = received {
            assert_eq!(received.trim().parse::<u64>().unwrap(), tap.stats().tx_bytes);
        }
    });
}

#[test]
fn a_full_pool_stops_the_device_until_buffers_return() {
    in_namespace("a_full_pool_stops_the_device", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        let socket = host_socket(true);
        let mut held = Vec::new();
        for _ in 0..8 + 64 {
            socket.send_to(b"x", ours(true, 7)).unwrap();
            held.push(await_frame(&mut tap, |frame| is_to_port(frame, 17, 7)));
        }
        socket.send_to(b"x", ours(true, 7)).unwrap();
        let mut batch = RxBatch::with_limit(4);
        assert_eq!(tap.receive(Instant::ZERO, &mut batch), Ok(0));
        assert!(tap.starved());
        held.truncate(70);
        await_frame(&mut tap, |frame| is_to_port(frame, 17, 7));
        assert!(!tap.starved());
        assert!(tap.stats().rx_starved >= 1);
    });
}

#[test]
fn down_and_gone_are_told_apart() {
    in_namespace("down_and_gone", || {
        let (mut tap, mut host) = open(Capabilities::ALL);
        host.change(&LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
        let packet = to_host(&tap, true, 17, 7);
        send_one(&mut tap, |slot| packet.fill(slot, &[b"lost"], true, 0));
        assert_eq!(tap.stats().tx_link_down, 1);
        let mut batch = RxBatch::with_limit(4);
        assert_eq!(tap.receive(Instant::ZERO, &mut batch), Ok(0));
        Netlink::open().unwrap().delete_link(tap.index()).unwrap();
        assert_eq!(tap.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        let mut queue = TxQueue::with_capacity(1);
        packet.fill(queue.vacant().unwrap(), &[b"kept"], true, 0);
        queue.commit();
        assert_eq!(tap.transmit(Instant::ZERO, &mut queue), Err(DeviceError::Gone));
        assert_eq!(tap.enable(Capabilities::NONE), Err(DeviceError::Gone));
    });
}

#[test]
fn packets_the_kernel_refuses_are_dropped_and_counted() {
    in_namespace("packets_the_kernel_refuses", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        send_one(&mut tap, |slot| slot.header_mut(4).fill(0));
        let packet = to_host(&tap, true, 17, 7);
        send_one(&mut tap, |slot| {
            packet.fill(slot, &[b"checksum beyond the end"], true, 0);
            slot.meta.checksum.as_mut().unwrap().start = 60_000;
        });
        assert_eq!(tap.stats().tx_refused, 2);
    });
}

#[test]
fn the_interface_is_configured_and_disappears() {
    in_namespace("the_interface_disappears", || {
        let mut netlink = Netlink::open().unwrap();
        let config = TapConfig { mtu: Some(9000), ..TapConfig::new(RxPools::new(2, 2)) };
        let tap = Tap::open(config).unwrap();
        assert_eq!(tap.name(), "linerate0");
        assert_eq!(tap.mtu(), 9000);
        assert_ne!(tap.mac(), tap.host_mac());
        assert_eq!(tap.capabilities(), Capabilities::ALL);
        let link = netlink.link("linerate0").unwrap();
        assert_eq!((link.mtu, link.tx_queue_len, link.mac), (9000, TX_QUEUE_LEN, tap.host_mac()));
        drop(tap);
        assert!(matches!(netlink.link("linerate0"), Err(NetconfigError::NoSuchInterface(_))));
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    in_namespace("what_cannot_be_opened", || {
        let named =
            |name: &str| Tap::open(TapConfig { name: name.to_owned(), ..TapConfig::new(RxPools::new(1, 1)) });
        for name in ["", "a b", "seventeen-letters", "a%s", "%d%d", "a/b"] {
            assert!(matches!(named(name), Err(TapError::Name(bad)) if bad == name), "{name:?}");
        }
        assert!(matches!(named("lo"), Err(TapError::NotTap(name)) if name == "lo"));
        let first = named("linerate7").unwrap();
        assert!(matches!(named("linerate7"), Err(TapError::Busy(name)) if name == "linerate7"));
        drop(first);
        named("linerate7").unwrap();
        let pools = RxPools { large: Pool::new(1, 2048), small: Pool::new(1, 2048) };
        let small = Tap::open(TapConfig::new(pools));
        assert!(matches!(small, Err(TapError::BufferTooSmall { pool: "large", has: 2048, .. })));
    });
}

#[test]
fn a_tap_that_stays_is_attached_and_left() {
    in_namespace("a_tap_that_stays", || {
        // Made by the tool that administrators use, as the test is about interfaces that somebody else made.
        let made = std::process::Command::new("ip").args(["tuntap", "add", "lrkeep", "mode", "tap"]).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED the attaching: no `ip`");
            return;
        }
        let mut netlink = Netlink::open().unwrap();
        let before = netlink.link("lrkeep").unwrap();
        let config = TapConfig { name: "lrkeep".to_owned(), ..TapConfig::new(RxPools::new(1, 1)) };
        let tap = Tap::open(config).unwrap();
        assert_eq!(tap.index(), before.index);
        assert_eq!(netlink.link("lrkeep").unwrap().tx_queue_len, before.tx_queue_len);
        drop(tap);
        assert_eq!(netlink.link("lrkeep").unwrap().index, before.index);
    });
}

#[test]
fn switches_that_need_each_other() {
    let all = Capabilities::ALL;
    assert_eq!(offload_bits(all), Some(7));
    assert_eq!(offload_bits(Capabilities::NONE), Some(0));
    assert_eq!(offload_bits(Capabilities { rx_coalescing: false, ..all }), Some(1));
    assert_eq!(offload_bits(Capabilities { rx_checksum: false, ..all }), None);
    assert_eq!(offload_bits(Capabilities { tx_checksum4: false, ..all }), None);
    assert_eq!(offload_bits(Capabilities { tx_checksum6: false, ..all }), None);
    assert_eq!(offload_bits(Capabilities { tx_checksum6: false, tso6: false, ..all }), Some(7));
}
