//! AF_XDP on a veth pair, in a namespace of its own; and its two halves over rings in a file, with hostile entries.

mod halves;

use super::*;
use crate::netconfig::{HostInterface, LinkChange, Netlink};
use crate::packet::{PacketConfig, PacketDevice, PacketOptions};
use crate::testing::{
    DATA, HOST4, HOST6, OUR_MAC, OURS4, OURS6, a_complete_checksum_is_left, await_frame, datagrams_arrive,
    host_socket, in_namespace, is_to_port, ours, send_one, tcp_from_host, to_host, wait_readable,
};
use linerate_nic::Frame;
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::process::Command;
use std::time::Duration;

const UP: LinkChange = LinkChange { up: Some(true), mtu: None, tx_queue_len: None, mac: None };
const DOWN: LinkChange = LinkChange { up: Some(false), mtu: None, tx_queue_len: None, mac: None };
const OTHER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

/// A veth pair: the host's end with its addresses, and the other end, which is ours.
struct Cable {
    host: HostInterface,
    netlink: Netlink,
    host_mac: MacAddr,
    index: u32,
}

fn cable() -> Cable {
    Netlink::open().unwrap().create_veth("lrhost", "lrours").unwrap();
    made(1_500)
}

/// The pair that is there, up and with addresses.
fn made(mtu: u32) -> Cable {
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.link("lrours").unwrap().index;
    netlink.change_link(index, &LinkChange { mtu: Some(mtu), ..UP }).unwrap();
    let mut host = HostInterface::open("lrhost").unwrap();
    let (host_mac, host_index) = (host.link().mac, host.link().index);
    netlink.change_link(host_index, &LinkChange { mtu: Some(mtu), ..UP }).unwrap();
    host.add_address(HOST4.into(), 24).unwrap();
    host.add_address(HOST6.into(), 64).unwrap();
    netlink.set_neighbour(host_index, OURS4.into(), OUR_MAC).unwrap();
    netlink.set_neighbour(host_index, OURS6.into(), OUR_MAC).unwrap();
    Cable { host, netlink, host_mac, index }
}

fn options() -> XdpOptions {
    XdpOptions { mac: Some(OUR_MAC), memory: 2 << 20, ..XdpOptions::new("lrours") }
}

fn open() -> XdpDevice {
    let mut queues = XdpQueue::open_all(&options()).unwrap();
    assert_eq!(queues.len(), 1);
    queues.remove(0).into_device(Capabilities::ALL)
}

/// A packet socket at one of the ends, with this address.
fn packet_socket(interface: &str, mac: MacAddr) -> PacketDevice {
    let options = PacketOptions { mac: Some(mac), ..PacketOptions::new(interface) };
    PacketDevice::open(PacketConfig { options, ..PacketConfig::new(interface, RxPools::new(0, 256)) })
        .unwrap()
}

#[test]
fn frames_to_us_arrive_in_the_shared_buffers() {
    in_namespace("xdp_frames_to_us_arrive", || {
        let _cable = cable();
        let mut device = open();
        let free = device.pools().small.free();
        datagrams_arrive(&mut device, |frame| {
            assert_eq!(frame.data.bytes().as_ptr().addr() % 4, 2, "the IP header is aligned");
        });
        assert_eq!(device.pools().small.free(), free, "every buffer came back");
    });
}

#[test]
fn complete_checksums_are_left_to_the_stack() {
    in_namespace("xdp_complete_checksums", || {
        let cable = cable();
        let mut device = open();
        // Another device sends what no kernel has touched.
        let mut peer = packet_socket("lrhost", cable.host_mac);
        a_complete_checksum_is_left(&mut device, &mut peer, cable.host_mac);
    });
}

#[test]
fn a_local_peer_sends_no_super_frames() {
    in_namespace("xdp_no_super_frames", || {
        let cable = cable();
        let mut device = open();
        let frames = tcp_from_host(&mut device, cable.host_mac, 9, &DATA, 1000);
        assert_eq!(frames.len(), 10);
        assert!(frames.iter().all(|frame| frame.len() == 1_054 && frame.meta.segment_size == 0));
    });
}

#[test]
fn our_packets_reach_the_host_more_than_the_ring_holds() {
    in_namespace("xdp_ours_reach_the_host", || {
        let cable = cable();
        let mut device = open();
        for v4 in [true, false] {
            let socket = host_socket(v4);
            rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
            let packet = to_host(cable.host_mac, v4, 17, socket.local_addr().unwrap().port());
            let mut queue = TxQueue::with_capacity(2_000);
            for i in 0..2_000u64 {
                let slot = queue.vacant().unwrap();
                packet.fill(slot, &[b"one ", b"", b"payload"], i % 2 == 0, 0);
                slot.meta.token = TxToken(i);
                queue.commit();
            }
            let mut left = 0;
            while !queue.is_empty() && left < 2_000 {
                left += device.transmit(Instant::ZERO, &mut queue).unwrap();
            }
            assert_eq!(left, 2_000);
            for i in 1..2_000 {
                assert_eq!(device.poll_completion(), Some(TxToken(i)));
            }
            for _ in 0..2_000 {
                let mut got = [0; 64];
                let len = socket.recv(&mut got).unwrap();
                assert_eq!(&got[..len], b"one payload");
            }
        }
        assert_eq!(device.stats().tx_frames, 4_000);
        assert_eq!(device.stats().tx_refused, 0);
    });
}

#[test]
fn frames_to_others_go_on_to_the_kernel() {
    in_namespace("xdp_others_pass", || {
        let mut cable = cable();
        let mut device = open();
        let mut kernel = packet_socket("lrours", OTHER_MAC);
        let socket = host_socket(true);
        socket.set_broadcast(true).unwrap();
        let other = std::net::Ipv4Addr::new(10, 77, 0, 9);
        let host_index = cable.host.link().index;
        cable.netlink.set_neighbour(host_index, other.into(), OTHER_MAC).unwrap();
        socket.send_to(b"to another", (other, 7)).unwrap();
        socket.send_to(b"to all", "10.77.0.255:7").unwrap();
        socket.send_to(b"to us", ours(true, 7)).unwrap();
        for wanted in [&b"to all"[..], b"to us"] {
            let frame = await_frame(&mut device, |frame| is_to_port(frame, 17, 7));
            assert_eq!(&frame.data.bytes()[42..], wanted);
        }
        let frame = await_frame(&mut kernel, |frame| is_to_port(frame, 17, 7));
        assert_eq!(&frame.data.bytes()[42..], b"to another");
    });
}

/// What takes three buffers.
static LONG: [u8; 8_900] = {
    let mut bytes = [0; 8_900];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % 251) as u8;
        at += 1;
    }
    bytes
};

#[test]
fn long_frames_lie_in_several_buffers() {
    in_namespace("xdp_long_frames", || {
        Netlink::open().unwrap().create_veth("lrhost", "lrours").unwrap();
        let cable = made(9_000);
        let mut queues = XdpQueue::open_all(&options()).unwrap();
        assert!(queues[0].has_pieces() && queues[0].mtu() == 9_000);
        let mut device = queues.remove(0).into_device(Capabilities::ALL);
        let bytes: &'static [u8] = &LONG;
        for _ in 0..50 {
            host_socket(true).send_to(bytes, ours(true, 7)).unwrap();
            let frame = await_frame(&mut device, |frame| is_to_port(frame, 17, 7));
            let whole: Vec<u8> = [frame.data.bytes()]
                .into_iter()
                .chain(frame.more.iter().map(|piece| piece.bytes()))
                .flatten()
                .copied()
                .collect();
            assert!(!frame.more.is_empty() && whole[42..] == *bytes);
            let socket = host_socket(true);
            let packet = to_host(cable.host_mac, true, 17, socket.local_addr().unwrap().port());
            send_one(&mut device, |slot| packet.fill(slot, &[&bytes[..5_000], &bytes[5_000..]], true, 0));
            let mut got = vec![0; 10_000];
            let len = socket.recv(&mut got).unwrap();
            assert!(got[..len] == *bytes);
        }
        assert!(device.stats().rx_frames >= 50 && device.stats().tx_frames == 50);
    });
}

#[test]
fn held_buffers_cost_frames_and_not_the_device() {
    in_namespace("xdp_held_buffers", || {
        let _cable = cable();
        let mut device = open();
        let socket = host_socket(true);
        let (mut held, mut batch) = (Vec::new(), RxBatch::with_limit(64));
        for _ in 0..4 * device.pools().small.len() {
            socket.send_to(b"x", ours(true, 7)).unwrap();
            device.receive(Instant::ZERO, &mut batch).unwrap();
            held.extend(std::iter::from_fn(|| batch.pop()));
        }
        let cut = device.stats().rx_cut;
        assert!(cut > 0 && device.pools().small.free() == 0);
        assert!(held.len() > device.pools().small.len() / 2, "{} held, {cut} cut", held.len());
        drop(held);
        socket.send_to(b"last", ours(true, 7)).unwrap();
        await_frame(&mut device, |frame| frame.data.bytes().ends_with(b"last"));
        assert_eq!(device.stats().rx_cut, cut);
    });
}

#[test]
fn what_the_kernel_drops_is_counted() {
    in_namespace("xdp_kernel_drops", || {
        let _cable = cable();
        let mut device = open();
        let socket = host_socket(true);
        for _ in 0..3 * device.queue_len() {
            socket.send_to(&[0; 1400], ours(true, 7)).unwrap();
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while device.stats().rx_kernel_dropped < device.queue_len() as u64
            && std::time::Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let dropped = device.stats().rx_kernel_dropped;
        assert!(dropped >= device.queue_len() as u64, "{dropped}");
        assert_eq!(device.stats().rx_kernel_dropped, dropped, "each is counted once");
        await_frame(&mut device, |frame| is_to_port(frame, 17, 7));
    });
}

#[test]
fn down_is_survived_and_gone_is_told() {
    in_namespace("xdp_down_and_gone", || {
        let mut cable = cable();
        let mut device = open();
        let packet = to_host(cable.host_mac, true, 17, 7);
        let mut batch = RxBatch::with_limit(64);
        cable.netlink.change_link(cable.index, &DOWN).unwrap();
        assert!(device.receive(Instant::ZERO, &mut batch).is_ok());
        send_one(&mut device, |slot| packet.fill(slot, &[b"late"], true, 0));
        cable.netlink.change_link(cable.index, &UP).unwrap();
        let socket = host_socket(true);
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        let is_again = |frame: Frame| frame.data.bytes().ends_with(b"again");
        while !std::iter::from_fn(|| batch.pop()).any(is_again) {
            assert!(std::time::Instant::now() < deadline, "nothing comes after the interface is up again");
            socket.send_to(b"again", ours(true, 7)).unwrap();
            wait_readable(&device, Duration::from_millis(20));
            device.receive(Instant::ZERO, &mut batch).unwrap();
        }
        assert!(!device.arm(Instant::ZERO) && !device.arm(Instant::ZERO), "nothing has happened");
        cable.netlink.delete_link(cable.index).unwrap();
        batch = RxBatch::with_limit(64);
        // The second sleep in which nothing came finds it out.
        let told = (0..3).any(|_| device.arm(Instant::ZERO));
        assert!(told);
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        assert_eq!(device.receive(Instant::ZERO, &mut batch), Err(DeviceError::Gone));
        let mut queue = TxQueue::with_capacity(2);
        for _ in 0..2 {
            packet.fill(queue.vacant().unwrap(), &[b"lost"], true, 0);
            queue.commit();
        }
        while !queue.is_empty() && device.transmit(Instant::ZERO, &mut queue).is_ok() {}
        assert_eq!(device.transmit(Instant::ZERO, &mut queue), Err(DeviceError::Gone));
    });
}

#[test]
fn too_long_a_packet_is_dropped_and_counted() {
    static LONG: [u8; 4000] = [0; 4000];
    in_namespace("xdp_too_long", || {
        let cable = cable();
        let mut device = open();
        let packet = to_host(cable.host_mac, true, 17, 7);
        send_one(&mut device, |slot| packet.fill(slot, &[&LONG], true, 0));
        assert_eq!((device.stats().tx_refused, device.stats().tx_frames), (1, 0));
    });
}

#[test]
fn what_can_be_switched() {
    in_namespace("xdp_switches", || {
        let _cable = cable();
        let mut device = open();
        let sums =
            Capabilities { tx_checksum4: true, tx_checksum6: true, gather: true, ..Capabilities::NONE };
        assert_eq!((device.capabilities(), device.enabled()), (sums, sums));
        device.enable(Capabilities::NONE).unwrap();
        assert_eq!(device.enabled(), Capabilities::NONE);
        assert_eq!(device.enable(Capabilities::ALL), Err(DeviceError::Unsupported));
        assert_eq!(device.enabled(), Capabilities::NONE);
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    in_namespace("xdp_what_cannot_be_opened", || {
        let named = |name: &str| XdpQueue::open_all(&XdpOptions { memory: 1 << 20, ..XdpOptions::new(name) });
        assert!(matches!(named("lrnone"), Err(XdpError::NoSuchInterface(name)) if name == "lrnone"));
        assert!(matches!(named("a/b"), Err(XdpError::NoSuchInterface(_))));
        assert!(matches!(named("lo"), Err(XdpError::NotEthernet(_))));
        let mut cable = cable();
        let with_mtu = |mtu| XdpQueue::open_all(&XdpOptions { mtu: Some(mtu), ..options() });
        assert!(matches!(with_mtu(9000), Err(XdpError::Mtu { wanted: 9000, has: 1500 })));
        assert_eq!(with_mtu(1400).unwrap()[0].mtu(), 1400);
        // The program went with the queue; while there is one, nobody else can have the interface.
        let device = open();
        let second = named("lrours");
        assert!(matches!(&second, Err(XdpError::InUse { name, .. }) if name == "lrours"), "{second:?}");
        drop(device);
        drop(open());
        cable.netlink.change_link(cable.index, &DOWN).unwrap();
        assert!(matches!(named("lrours"), Err(XdpError::Down(name)) if name == "lrours"));
        cable.netlink.change_link(cable.index, &UP).unwrap();
        // Only this thread gives its rights up.
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        rustix::thread::set_capabilities(None, none).unwrap();
        let refused = named("lrours").unwrap_err();
        assert!(matches!(refused, XdpError::Permission { .. }), "{refused}");
        assert!(refused.to_string().contains("CAP_NET_RAW"), "{refused}");
    });
}

#[test]
fn two_queues_have_each_frame_once() {
    in_namespace("xdp_two_queues", || {
        let two = ["numtxqueues", "2", "numrxqueues", "2"];
        let link = ["link", "add", "lrhost"]
            .into_iter()
            .chain(two)
            .chain(["type", "veth", "peer", "name", "lrours"]);
        assert!(Command::new("ip").args(link.chain(two)).status().unwrap().success());
        let cable = made(1_500);
        assert_eq!(XdpQueue::count("lrours").unwrap(), 2);
        let queues = XdpQueue::open_all(&options()).unwrap();
        let mut queues: Vec<XdpDevice> =
            queues.into_iter().map(|queue| queue.into_device(Capabilities::ALL)).collect();
        assert_eq!(queues.len(), 2);
        for number in 0..200u16 {
            let peer = std::net::UdpSocket::bind((HOST4, 20_000 + number)).unwrap();
            peer.send_to(&number.to_be_bytes(), ours(true, 80)).unwrap();
        }
        let mut came: Vec<Vec<u16>> = vec![Vec::new(); 2];
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while came.iter().map(Vec::len).sum::<usize>() < 200 && std::time::Instant::now() < deadline {
            for (device, came) in queues.iter_mut().zip(&mut came) {
                let mut batch = RxBatch::with_limit(64);
                device.receive(Instant::ZERO, &mut batch).unwrap();
                let to_us = std::iter::from_fn(|| batch.pop()).filter(|frame| is_to_port(frame, 17, 80));
                came.extend(
                    to_us.map(|frame| u16::from_be_bytes([frame.data.bytes()[42], frame.data.bytes()[43]])),
                );
            }
        }
        let mut all = came.concat();
        all.sort_unstable();
        assert_eq!(all, (0..200).collect::<Vec<u16>>());
        assert!(
            came.iter().all(|numbers| !numbers.is_empty()),
            "{:?}",
            came.iter().map(Vec::len).collect::<Vec<_>>()
        );
        // Both send.
        for device in &mut queues {
            let socket = host_socket(true);
            let packet = to_host(cable.host_mac, true, 17, socket.local_addr().unwrap().port());
            send_one(device, |slot| packet.fill(slot, &[b"from a queue"], true, 0));
            let mut got = [0; 64];
            let len = socket.recv(&mut got).unwrap();
            assert_eq!(&got[..len], b"from a queue");
        }
    });
}
