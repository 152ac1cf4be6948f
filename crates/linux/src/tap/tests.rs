//! The TAP device against the real kernel at its other end.

use super::*;
use crate::netconfig::{HostInterface, LinkChange, NetconfigError, Netlink};
use crate::testing::{
    DATA, HOST4, HOST6, OUR_MAC, OURS4, OURS6, await_frame, host_socket, in_namespace, is_to_port, ours,
    send_one, tcp_from_host, to_host, udp_checksum_holds,
};
use linerate_nic::{ChecksumStatus, Pool};

/// A TAP with addresses on the host's side, up, with us as static neighbour.
fn open(enabled: Capabilities) -> (Tap, HostInterface) {
    let config = TapConfig { mac: Some(OUR_MAC), enabled, ..TapConfig::new(RxPools::new(0, 104)) };
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

#[test]
fn single_frames_are_a_habit_until_two_come_together() {
    let mut singles = Singles::default();
    for _ in 0..=Singles::HABIT {
        assert!(!singles.are_certain());
        singles.note(1);
    }
    let mut looks = 0;
    for _ in 0..90 {
        looks += u32::from(!singles.are_certain());
        singles.note(0);
        singles.note(1);
    }
    assert_eq!(looks, 10, "now and then a second frame is asked for");
    singles.note(2);
    assert!(!singles.are_certain());
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

#[test]
fn the_hosts_super_segments_arrive_whole_or_split_as_switched() {
    in_namespace("the_hosts_super_segments", || {
        let (mut tap, _host) = open(Capabilities::ALL);
        let host_mac = tap.host_mac();
        let frames = tcp_from_host(&mut tap, host_mac, 9, &DATA, 1000);
        assert!(frames.iter().any(|frame| frame.meta.segment_size == 1000 && frame.len() > 2000));
        assert!(frames.iter().all(|frame| frame.meta.checksum == ChecksumStatus::Good));
        assert!(tap.stats().rx_super_frames > 0);
        drop(frames);
        tap.enable(Capabilities { rx_coalescing: false, ..Capabilities::ALL }).unwrap();
        let frames = tcp_from_host(&mut tap, host_mac, 10, &DATA, 1000);
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
                let packet = to_host(tap.host_mac(), v4, 17, port);
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
            let packet = to_host(tap.host_mac(), v4, 6, 12_345);
            send_one(&mut tap, |slot| packet.fill(slot, &[&PAGE[..]; 18], true, size));
            let reset = await_frame(&mut tap, |frame| is_to_port(frame, 6, 4000));
            let tcp = &reset.data.bytes()[headers - 20..];
            assert_eq!(tcp[13] & 0x04, 0x04, "RST, v4={v4}");
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
        // 32 buffers stay: one fewer than a super-frame needs.
        for _ in 0..72 {
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
fn acknowledgements_pass_when_buffers_are_short() {
    in_namespace("acknowledgements_pass", || {
        let pools = RxPools::new(0, 64);
        let config = TapConfig {
            name: "lrdry".to_owned(),
            mtu: Some(9000),
            mac: Some(OUR_MAC),
            ..TapConfig::new(pools.clone())
        };
        let mut tap = Tap::open(config).unwrap();
        let mut host = HostInterface::open("lrdry").unwrap();
        host.up().unwrap();
        host.add_address(HOST4.into(), 24).unwrap();
        Netlink::open().unwrap().set_neighbour(tap.index(), OURS4.into(), OUR_MAC).unwrap();
        let socket = host_socket(true);
        socket.send_to(&[1; 5000], ours(true, 7)).unwrap();
        let large = await_frame(&mut tap, |frame| is_to_port(frame, 17, 7));
        assert_eq!((large.len(), large.more.len()), (5042, 2));
        drop(large);
        let mut held: Vec<_> = std::iter::from_fn(|| pools.small.take()).collect();
        held.truncate(held.len() - 2);
        socket.send_to(&[2; 5000], ours(true, 7)).unwrap();
        socket.send_to(&[3; 100], ours(true, 7)).unwrap();
        let small = await_frame(&mut tap, |frame| is_to_port(frame, 17, 7));
        assert_eq!(small.len(), 142);
        assert_eq!(tap.stats().rx_cut, 1);
        drop(held);
        socket.send_to(&[4; 5000], ours(true, 7)).unwrap();
        let frame = await_frame(&mut tap, |frame| is_to_port(frame, 17, 7));
        let bytes = frame.data.bytes()[42..].iter().chain(frame.more.iter().flat_map(|piece| piece.bytes()));
        assert!(frame.len() == 5042 && bytes.into_iter().all(|&byte| byte == 4));
    });
}

#[test]
fn down_and_gone_are_told_apart() {
    in_namespace("down_and_gone", || {
        let (mut tap, mut host) = open(Capabilities::ALL);
        host.change(&LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
        let packet = to_host(tap.host_mac(), true, 17, 7);
        send_one(&mut tap, |slot| packet.fill(slot, &[b"lost"], true, 0));
        assert_eq!(tap.stats().tx_link_down, 1);
        let mut batch = RxBatch::with_limit(4);
        // What the host had sent before it went down (IPv6 announces itself) still comes, and then nothing.
        while tap.receive(Instant::ZERO, &mut batch).unwrap() > 0 {
            batch = RxBatch::with_limit(4);
        }
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
        let packet = to_host(tap.host_mac(), true, 17, 7);
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
        let config = TapConfig { mtu: Some(9000), ..TapConfig::new(RxPools::new(0, 20_000)) };
        let tap = Tap::open(config).unwrap();
        assert_eq!(tap.name(), "linerate0");
        assert_eq!(tap.mtu(), 9000);
        assert_ne!(tap.mac(), tap.host_mac());
        assert_eq!(tap.capabilities(), Capabilities::ALL);
        let link = netlink.link("linerate0").unwrap();
        assert_eq!((link.mtu, link.tx_queue_len, link.mac), (9000, 20_000, tap.host_mac()));
        drop(tap);
        assert!(matches!(netlink.link("linerate0"), Err(NetconfigError::NoSuchInterface(_))));
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    in_namespace("what_cannot_be_opened", || {
        let named = |name: &str| {
            Tap::open(TapConfig { name: name.to_owned(), ..TapConfig::new(RxPools::new(0, 64)) })
        };
        for name in ["", "a b", "seventeen-letters", "a%s", "%d%d", "a/b"] {
            assert!(matches!(named(name), Err(TapError::Name(bad)) if bad == name), "{name:?}");
        }
        assert!(matches!(named("lo"), Err(TapError::NotTap(name)) if name == "lo"));
        let first = named("linerate7").unwrap();
        assert!(matches!(named("linerate7"), Err(TapError::Busy(name)) if name == "linerate7"));
        drop(first);
        named("linerate7").unwrap();
        // The kernel gives queues of one for several to anybody.
        let several = |name: &str| {
            let options = TapOptions { name: name.to_owned(), mtu: None, mac: None, frames: 64, queues: 2 };
            TapQueue::open_all(&options)
        };
        let first = several("linerate8").unwrap();
        assert!(matches!(several("linerate8"), Err(TapError::Busy(name)) if name == "linerate8"));
        assert!(matches!(named("linerate8"), Err(TapError::Busy(name)) if name == "linerate8"));
        drop(first);
        assert_eq!(several("linerate8").unwrap().len(), 2);
        let pools = RxPools { small: Pool::new(64, 2047), ..RxPools::new(1, 1) };
        let small = Tap::open(TapConfig::new(pools));
        assert!(matches!(small, Err(TapError::BufferTooSmall { pool: "small", has: 2047, needs: 2048 })));
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
        let config = TapConfig { name: "lrkeep".to_owned(), ..TapConfig::new(RxPools::new(0, 64)) };
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

#[test]
fn queues_of_one_tap_share_its_frames_and_flows_follow_our_answers() {
    in_namespace("tap_queues", || {
        let options = TapOptions {
            name: DEFAULT_NAME.to_owned(),
            mtu: None,
            mac: Some(OUR_MAC),
            frames: 256,
            queues: 3,
        };
        let open = |queue: TapQueue| queue.into_device(Capabilities::ALL, RxPools::new(0, 256)).unwrap();
        let mut queues: Vec<Tap> = TapQueue::open_all(&options).unwrap().into_iter().map(open).collect();
        assert_eq!(queues.len(), 3);
        assert!(queues.iter().all(|tap| tap.name() == queues[0].name() && tap.mac() == OUR_MAC));
        let mut host = HostInterface::open(queues[0].name()).unwrap();
        host.up().unwrap();
        host.add_address(HOST4.into(), 24).unwrap();
        Netlink::open().unwrap().set_neighbour(queues[0].index(), OURS4.into(), OUR_MAC).unwrap();
        let peer = host_socket(true);
        let port = peer.local_addr().unwrap().port();
        let host_mac = queues[0].host_mac();
        for home in [0, 2, 1, 2] {
            // Our answer leaves by one queue, and what comes then comes in there.
            let mut packet = to_host(host_mac, true, 17, port);
            packet.ports.0 = 7;
            send_one(&mut queues[home], |slot| packet.fill(slot, &[b"answer"], false, 0));
            let mut answer = [0; 16];
            assert_eq!(peer.recv(&mut answer).unwrap(), 6);
            peer.send_to(b"next", ours(true, 7)).unwrap();
            await_frame(&mut queues[home], |frame| is_to_port(frame, 17, 7));
        }
    });
}

#[test]
fn a_tap_made_for_one_queue_gives_one_and_one_made_for_several_serves_one() {
    in_namespace("tap_one_queue", || {
        let ip = |args: &[&str]| {
            assert!(std::process::Command::new("ip").args(args).status().unwrap().success());
        };
        ip(&["tuntap", "add", "lrone", "mode", "tap"]);
        ip(&["tuntap", "add", "lrmany", "mode", "tap", "multi_queue"]);
        for (name, queues, given) in [("lrone", 2, 1), ("lrone", 1, 1), ("lrmany", 1, 1), ("lrmany", 2, 2)] {
            let name = name.to_owned();
            let options = TapOptions { name, mtu: None, mac: None, frames: 1, queues };
            let opened = TapQueue::open_all(&options).unwrap();
            assert_eq!((opened.len(), opened[0].existed()), (given, true), "{options:?}");
        }
        let options = TapOptions { name: "lo".to_owned(), mtu: None, mac: None, frames: 1, queues: 2 };
        assert!(matches!(TapQueue::open_all(&options), Err(TapError::NotTap(_))));
    });
}
