//! The packet socket on a veth pair, in a namespace of its own.

use super::*;
use crate::netconfig::Netlink;
use crate::netconfig::{HostInterface, LinkChange, NetconfigError};
use crate::testing::{
    DATA, HOST4, HOST6, OUR_MAC, OURS4, OURS6, a_complete_checksum_is_left, await_frame, datagrams_arrive,
    host_socket, in_namespace, is_to_port, ours, send_one, tcp_from_host, to_host, wait_readable,
};
use linerate_nic::ChecksumStatus;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

const UP: LinkChange = LinkChange { up: Some(true), mtu: None, tx_queue_len: None, mac: None };
const DOWN: LinkChange = LinkChange { up: Some(false), mtu: None, tx_queue_len: None, mac: None };

/// A veth pair: the host's end with its addresses, and the other end, which is ours to share.
struct Cable {
    host: HostInterface,
    netlink: Netlink,
    host_mac: MacAddr,
    index: u32,
}

fn cable() -> Cable {
    let mut netlink = Netlink::open().unwrap();
    netlink.create_veth("lrhost", "lrours").unwrap();
    let index = netlink.link("lrours").unwrap().index;
    netlink.change_link(index, &UP).unwrap();
    let mut host = HostInterface::open("lrhost").unwrap();
    host.up().unwrap();
    host.add_address(HOST4.into(), 24).unwrap();
    host.add_address(HOST6.into(), 64).unwrap();
    let (host_mac, host_index) = (host.link().mac, host.link().index);
    netlink.set_neighbour(host_index, OURS4.into(), OUR_MAC).unwrap();
    netlink.set_neighbour(host_index, OURS6.into(), OUR_MAC).unwrap();
    Cable { host, netlink, host_mac, index }
}

fn options() -> PacketOptions {
    PacketOptions { mac: Some(OUR_MAC), ..PacketOptions::new("lrours") }
}

fn config() -> PacketConfig {
    with(options())
}

fn with(options: PacketOptions) -> PacketConfig {
    PacketConfig { options, ..PacketConfig::new("lrours", RxPools::new(0, 1_024)) }
}

fn ip(args: &[&str]) -> bool {
    std::process::Command::new("ip").args(args).status().is_ok_and(|status| status.success())
}

#[test]
fn frames_to_us_arrive_with_what_the_kernel_says_of_them() {
    in_namespace("packet_frames_to_us_arrive", || {
        let _cable = cable();
        for virtio_headers in [true, false] {
            for batch in [1, 16, 99] {
                let config = with(PacketOptions { virtio_headers, batch, ..options() });
                let mut device = PacketDevice::open(config).unwrap();
                datagrams_arrive(&mut device, |_| {});
            }
        }
    });
}

#[test]
fn complete_checksums_are_left_to_the_stack() {
    in_namespace("packet_complete_checksums", || {
        let cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        // Another device sends what no kernel has touched.
        let from_host = with(PacketOptions { mac: Some(cable.host_mac), ..PacketOptions::new("lrhost") });
        let mut peer = PacketDevice::open(from_host).unwrap();
        a_complete_checksum_is_left(&mut device, &mut peer, cable.host_mac);
    });
}

#[test]
fn super_segments_cross_whole_both_ways() {
    static PAGE: [u8; 3600] = [0x5a; 3600];
    in_namespace("packet_super_segments", || {
        let cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        let frames = tcp_from_host(&mut device, cable.host_mac, 9, &DATA, 1000);
        assert!(frames.iter().any(|frame| frame.meta.segment_size == 1000 && frame.len() > 2000));
        assert!(frames.iter().all(|frame| frame.meta.checksum == ChecksumStatus::Good));
        drop(frames);
        for (v4, size) in [(true, 1460), (false, 1440)] {
            let packet = to_host(cable.host_mac, v4, 6, 12_345);
            send_one(&mut device, |slot| packet.fill(slot, &[&PAGE[..]; 18], true, size));
            let reset = await_frame(&mut device, |frame| is_to_port(frame, 6, 4000));
            let tcp = &reset.data.bytes()[if v4 { 34 } else { 54 }..];
            assert_eq!(tcp[13] & 0x04, 0x04, "RST");
        }
        assert_eq!(device.stats().tx_super_frames, 2);
        assert!(device.stats().rx_super_frames > 0);
    });
}

#[test]
fn our_packets_reach_the_host_one_by_one_and_in_batches() {
    in_namespace("packet_ours_reach_the_host", || {
        let cable = cable();
        for (virtio_headers, batch) in [(true, 1), (true, 16), (false, 16)] {
            let config = with(PacketOptions { virtio_headers, batch, ..options() });
            let mut device = PacketDevice::open(config).unwrap();
            for v4 in [true, false] {
                let socket = host_socket(v4);
                let packet = to_host(cable.host_mac, v4, 17, socket.local_addr().unwrap().port());
                let mut queue = TxQueue::with_capacity(64);
                for i in 0..40u64 {
                    let slot = queue.vacant().unwrap();
                    packet.fill(slot, &[b"one ", b"", b"payload"], virtio_headers && i % 2 == 0, 0);
                    slot.meta.token = TxToken(i);
                    queue.commit();
                }
                assert_eq!(device.transmit(Instant::ZERO, &mut queue), Ok(40));
                for i in 1..40 {
                    assert_eq!(device.poll_completion(), Some(TxToken(i)));
                }
                for _ in 0..40 {
                    let mut got = [0; 64];
                    let len = socket.recv(&mut got).unwrap();
                    assert_eq!(&got[..len], b"one payload");
                }
            }
        }
    });
}

#[test]
fn only_frames_to_us_and_to_groups_come_and_none_of_the_machines_own() {
    in_namespace("packet_only_ours", || {
        let mut cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        let socket = host_socket(true);
        socket.set_broadcast(true).unwrap();
        let other = std::net::Ipv4Addr::new(10, 77, 0, 9);
        let host_index = cable.host.link().index;
        cable.netlink.set_neighbour(host_index, other.into(), MacAddr([2, 0, 0, 0, 0, 9])).unwrap();
        socket.send_to(b"to another", (other, 7)).unwrap();
        // The machine's own frames on our side of the cable.
        cable.netlink.add_address(cable.index, "10.79.0.1".parse().unwrap(), 24).unwrap();
        cable.netlink.set_neighbour(cable.index, "10.79.0.2".parse().unwrap(), OUR_MAC).unwrap();
        let own = std::net::UdpSocket::bind("10.79.0.1:0").unwrap();
        own.send_to(b"from the machine", "10.79.0.2:7").unwrap();
        socket.send_to(b"to all", "10.77.0.255:7").unwrap();
        socket.send_to(b"to us", ours(true, 7)).unwrap();
        for wanted in [&b"to all"[..], b"to us"] {
            let frame = await_frame(&mut device, |frame| is_to_port(frame, 17, 7));
            assert_eq!(&frame.data.bytes()[42..], wanted);
        }
    });
}

#[test]
fn vlan_tags_are_put_back() {
    in_namespace("packet_vlan_tags", || {
        let _cable = cable();
        let made = ip(&["link", "add", "link", "lrhost", "name", "lrvlan", "type", "vlan", "id", "77"])
            && ip(&["address", "add", "10.80.0.1/24", "dev", "lrvlan"])
            && ip(&["link", "set", "lrvlan", "up"])
            && ip(&["neighbour", "add", "10.80.0.4", "lladdr", "02:00:00:00:00:04", "dev", "lrvlan"]);
        if !made {
            eprintln!("SKIPPED vlan_tags_are_put_back: no `ip`, or no VLANs in this kernel");
            return;
        }
        let mut device = PacketDevice::open(config()).unwrap();
        let socket = std::net::UdpSocket::bind("10.80.0.1:0").unwrap();
        socket.send_to(b"tagged", "10.80.0.4:7").unwrap();
        let frame = await_frame(&mut device, |frame| frame.data.bytes().ends_with(b"tagged"));
        let bytes = frame.data.bytes();
        assert_eq!(bytes[..6], OUR_MAC.0);
        assert_eq!(bytes[12..18], [0x81, 0x00, 0, 77, 0x08, 0x00]);
        assert_eq!(bytes.len(), 18 + 28 + 6);
    });
}

#[test]
fn pools_that_run_dry_stop_the_device_until_buffers_return() {
    in_namespace("packet_pools_run_dry", || {
        let _cable = cable();
        let mut device = PacketDevice::open(PacketConfig {
            pools: RxPools::new(0, 36),
            ..with(PacketOptions { batch: 8, ..options() })
        })
        .unwrap();
        let socket = host_socket(true);
        let mut batch = RxBatch::with_limit(64);
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while batch.len() < 4 && std::time::Instant::now() < deadline {
            socket.send_to(b"x", ours(true, 7)).unwrap();
            device.receive(Instant::ZERO, &mut batch).unwrap();
        }
        assert_eq!(batch.len(), 4);
        // 32 buffers stay: one fewer than a super-frame needs.
        socket.send_to(b"kept", ours(true, 7)).unwrap();
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Ok(0));
        assert!(device.starved());
        // Nobody gave any back: one frame is taken with what is left.
        socket.send_to(b"last", ours(true, 7)).unwrap();
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Ok(1));
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Ok(0));
        drop(batch);
        await_frame(&mut device, |frame| frame.data.bytes().ends_with(b"last"));
    });
}

#[test]
fn what_the_kernel_drops_is_counted() {
    in_namespace("packet_kernel_drops", || {
        let _cable = cable();
        let mut device =
            PacketDevice::open(with(PacketOptions { receive_buffer: 4096, ..options() })).unwrap();
        let socket = host_socket(true);
        for _ in 0..100 {
            socket.send_to(&[0; 1400], ours(true, 7)).unwrap();
        }
        let dropped = device.stats().rx_kernel_dropped;
        assert!(dropped > 50, "{dropped}");
        assert_eq!(device.stats().rx_kernel_dropped, dropped, "each is counted once");
        await_frame(&mut device, |frame| is_to_port(frame, 17, 7));
    });
}

#[test]
fn down_is_survived_and_gone_is_told() {
    in_namespace("packet_down_and_gone", || {
        let mut cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        let packet = to_host(cable.host_mac, true, 17, 7);
        let mut batch = RxBatch::with_limit(64);
        cable.netlink.change_link(cable.index, &DOWN).unwrap();
        assert!(device.receive(Instant::ZERO, &mut batch).is_ok());
        send_one(&mut device, |slot| packet.fill(slot, &[b"lost"], true, 0));
        assert_eq!(device.stats().tx_link_down, 1);
        cable.netlink.change_link(cable.index, &UP).unwrap();
        let socket = host_socket(true);
        // The kernel tells the cable's other end a moment later that there is a carrier again.
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        let is_again = |frame: Frame| frame.data.bytes().ends_with(b"again");
        while !std::iter::from_fn(|| batch.pop()).any(is_again) {
            assert!(std::time::Instant::now() < deadline, "nothing comes after the interface is up again");
            socket.send_to(b"again", ours(true, 7)).unwrap();
            wait_readable(&device, Duration::from_millis(20));
            device.receive(Instant::ZERO, &mut batch).unwrap();
        }
        cable.netlink.delete_link(cable.index).unwrap();
        let mut queue = TxQueue::with_capacity(1);
        packet.fill(queue.vacant().unwrap(), &[b"kept"], true, 0);
        queue.commit();
        batch = RxBatch::with_limit(64);
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        assert_eq!(device.transmit(Instant::ZERO, &mut queue), Err(DeviceError::Gone));
    });
}

#[test]
fn the_removal_of_an_interface_that_is_down_is_noticed() {
    for (name, sends) in [("packet_removed_while_down", false), ("packet_removed_after_sending", true)] {
        in_namespace(name, move || {
            let mut cable = cable();
            let mut device = PacketDevice::open(config()).unwrap();
            let mut batch = RxBatch::with_limit(64);
            cable.netlink.change_link(cable.index, &DOWN).unwrap();
            if sends {
                let packet = to_host(cable.host_mac, true, 17, 7);
                send_one(&mut device, |slot| packet.fill(slot, &[b"lost"], true, 0));
            }
            assert!(device.receive(Instant::ZERO, &mut batch).is_ok());
            assert!(!device.arm(Instant::ZERO), "it may come up again");
            cable.netlink.delete_link(cable.index).unwrap();
            assert!(device.receive(Instant::ZERO, &mut batch).is_ok(), "the socket says nothing");
            assert!(device.arm(Instant::ZERO));
            batch = RxBatch::with_limit(64);
            assert_eq!(device.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        });
    }
}

#[test]
fn what_is_too_long_for_the_other_end_holds_up_the_others_for_a_moment() {
    static LONG: [u8; 1400] = [0; 1400];
    in_namespace("packet_too_long_for_the_peer", || {
        let mut cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        let host_index = cable.host.link().index;
        cable.netlink.change_link(host_index, &LinkChange { mtu: Some(1280), ..UP }).unwrap();
        let socket = host_socket(true);
        let packet = to_host(cable.host_mac, true, 17, socket.local_addr().unwrap().port());
        let mut queue = TxQueue::with_capacity(2);
        for payload in [&LONG[..], b"short"] {
            packet.fill(queue.vacant().unwrap(), &[payload], true, 0);
            queue.commit();
        }
        // Older kernels take the long one and drop it.
        if device.transmit(Instant::ZERO, &mut queue) == Ok(0) {
            assert!(device.jammed());
            assert_eq!(device.transmit(Instant::from_millis(10), &mut queue), Ok(2));
            assert_eq!((device.stats().tx_refused, device.stats().tx_frames), (1, 1));
        }
        assert!(queue.is_empty() && !device.jammed());
        let mut got = [0; 64];
        assert_eq!(socket.recv(&mut got).unwrap(), 5);
    });
}

#[test]
fn too_long_a_packet_is_dropped_and_counted() {
    static LONG: [u8; 4000] = [0; 4000];
    in_namespace("packet_too_long", || {
        let cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        let packet = to_host(cable.host_mac, true, 17, 7);
        send_one(&mut device, |slot| packet.fill(slot, &[&LONG], true, 0));
        assert_eq!((device.stats().tx_refused, device.stats().tx_frames), (1, 0));
    });
}

#[test]
fn what_can_be_switched() {
    in_namespace("packet_switches", || {
        let _cable = cable();
        let mut device = PacketDevice::open(config()).unwrap();
        assert_eq!((device.capabilities(), device.enabled()), (Capabilities::ALL, Capabilities::ALL));
        device.enable(Capabilities::NONE).unwrap();
        assert_eq!(device.enabled(), Capabilities { rx_coalescing: true, ..Capabilities::NONE });
        let orphan = Capabilities { tx_checksum4: false, ..Capabilities::ALL };
        assert_eq!(device.enable(orphan), Err(DeviceError::Unsupported));
        let mut plain =
            PacketDevice::open(with(PacketOptions { virtio_headers: false, ..options() })).unwrap();
        assert_eq!(plain.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
        assert_eq!(plain.enable(plain.capabilities()), Ok(()));
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    in_namespace("packet_what_cannot_be_opened", || {
        let named = |name: &str| PacketDevice::open(PacketConfig::new(name, RxPools::new(0, 64)));
        assert!(matches!(named("lrnone"), Err(PacketError::NoSuchInterface(name)) if name == "lrnone"));
        assert!(matches!(named("a/b"), Err(PacketError::NoSuchInterface(_))));
        assert!(matches!(named("lo"), Err(PacketError::NotEthernet(_))));
        let mut cable = cable();
        let wanted = PacketDevice::open(with(PacketOptions { mtu: Some(9000), ..options() }));
        assert!(matches!(wanted, Err(PacketError::Mtu { wanted: 9000, has: 1500 })));
        assert_eq!(
            PacketDevice::open(with(PacketOptions { mtu: Some(1400), ..options() })).unwrap().mtu(),
            1400
        );
        cable.netlink.change_link(cable.index, &DOWN).unwrap();
        assert!(matches!(named("lrours"), Err(PacketError::Down(name)) if name == "lrours"));
        cable.netlink.delete_link(cable.index).unwrap();
        assert!(matches!(cable.netlink.link("lrours"), Err(NetconfigError::NoSuchInterface(_))));
    });
}

/// What came in on each queue, until so many frames have, or for two seconds.
fn arrivals(queues: &mut [PacketDevice], until: usize) -> Vec<Vec<Frame>> {
    let mut came: Vec<Vec<Frame>> = queues.iter().map(|_| Vec::new()).collect();
    for _ in 0..2_000 {
        for (queue, came) in queues.iter_mut().zip(&mut came) {
            let mut batch = RxBatch::with_limit(64);
            queue.receive(Instant::ZERO, &mut batch).unwrap();
            came.extend(std::iter::from_fn(|| batch.pop()));
        }
        if came.iter().map(Vec::len).sum::<usize>() >= until {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    came
}

#[test]
fn queues_share_what_comes_in_by_port_and_by_peer() {
    in_namespace("packet_queues", || {
        // Nobody asks for neighbours, so that nothing else comes in.
        let _cable = cable();
        for count in [2, 3, 4] {
            let options = PacketOptions { queues: count, shared_ports: vec![80, 21], ..options() };
            let open =
                |queue: PacketQueue| queue.into_device(Capabilities::ALL, RxPools::new(0, 1_024)).unwrap();
            let mut queues: Vec<PacketDevice> =
                PacketQueue::open_all(&options).unwrap().into_iter().map(open).collect();
            assert_eq!(queues.len(), count);
            // What the host says of itself when a link comes up.
            arrivals(&mut queues, usize::MAX);
            for v4 in [true, false] {
                // Peers are spread, also those who use even ports only.
                let even = |number: u16| UdpSocket::bind((bind_ip(v4), 20_000 + 2 * number)).unwrap();
                let peers: Vec<UdpSocket> = (0..200).map(even).collect();
                for peer in &peers {
                    peer.send_to(b"shared", ours(v4, 80)).unwrap();
                }
                let of_80 = |frame: &&Frame| is_to_port(frame, 17, 80);
                let came = arrivals(&mut queues, 200);
                let spread: Vec<usize> =
                    came.iter().map(|frames| frames.iter().filter(of_80).count()).collect();
                assert_eq!(spread.iter().sum::<usize>(), 200, "each once: {spread:?}");
                assert!(spread.iter().all(|&n| n >= 200 / count / 2), "{spread:?}");
                // One peer stays where he is.
                for _ in 0..10 {
                    peers[3].send_to(b"again", ours(v4, 80)).unwrap();
                }
                let came = arrivals(&mut queues, 10);
                assert!(came.iter().any(|frames| frames.iter().filter(of_80).count() == 10));
                // Other ports are at home where they say.
                for port in [5_201, 49_152, 49_153, 49_154] {
                    peers[0].send_to(b"own", ours(v4, port)).unwrap();
                    let came = arrivals(&mut queues, 1);
                    let at =
                        came.iter().position(|frames| frames.iter().any(|frame| is_to_port(frame, 17, port)));
                    assert_eq!(at, Some(usize::from(port) % count), "port {port} of {count} queues");
                }
                // All fragments are in queue 0, the first one too.
                peers[1].send_to(&[7; 4_000], ours(v4, 49_153)).unwrap();
                let came = arrivals(&mut queues, 3);
                assert_eq!(came[0].len(), 3, "{count} queues, IPv4 {v4}");
            }
        }
    });
}

fn bind_ip(v4: bool) -> IpAddr {
    if v4 { HOST4.into() } else { HOST6.into() }
}
