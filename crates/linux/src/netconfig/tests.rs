//! Netlink against a real kernel, in a namespace of its own.

use super::*;
use crate::testing::{HOST4, HOST6, in_namespace};
use std::net::UdpSocket;

fn veth(netlink: &mut Netlink) -> (Link, Link) {
    netlink.create_veth("lr0", "lr1").unwrap();
    (netlink.link("lr0").unwrap(), netlink.link("lr1").unwrap())
}

#[test]
fn names_are_judged_before_the_kernel_sees_them() {
    for good in ["lo", "eth0", "linerate%d", "a-very-long-one", "é"] {
        assert!(is_interface_name(good), "{good}");
    }
    for bad in ["", ".", "..", "a b", "a/b", "a:b", "a\tb", "sixteen-letters-", "nul\0"] {
        assert!(!is_interface_name(bad), "{bad:?}");
    }
}

#[test]
fn an_interface_is_found_and_changed() {
    in_namespace("an_interface_is_found_and_changed", || {
        let mut netlink = Netlink::open().unwrap();
        assert!(matches!(netlink.link("lr0"), Err(NetconfigError::NoSuchInterface(name)) if name == "lr0"));
        assert!(matches!(netlink.link("a/b"), Err(NetconfigError::Name(_))));
        let (a, b) = veth(&mut netlink);
        assert_ne!(a.index, b.index);
        assert_eq!((a.mtu, a.up, a.hardware, a.name.as_str()), (1500, false, 1, "lr0"));
        let mac = MacAddr([2, 0, 0, 0, 0, 7]);
        let change = LinkChange { up: Some(true), mtu: Some(9000), tx_queue_len: Some(77), mac: Some(mac) };
        netlink.change_link(a.index, &change).unwrap();
        let changed = netlink.link("lr0").unwrap();
        assert_eq!((changed.mtu, changed.up, changed.tx_queue_len, changed.mac), (9000, true, 77, mac));
        netlink.change_link(a.index, &LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
        assert!(!netlink.link("lr0").unwrap().up);
        netlink.delete_link(a.index).unwrap();
        assert!(matches!(netlink.delete_link(a.index), Err(NetconfigError::NoSuchInterface(_))));
        assert!(matches!(netlink.link("lr1"), Err(NetconfigError::NoSuchInterface(_))));
    });
}

#[test]
fn addresses_are_usable_at_once_and_gone_in_the_end() {
    in_namespace("addresses_are_usable_at_once_and_gone_in_the_end", || {
        let mut netlink = Netlink::open().unwrap();
        let (a, b) = veth(&mut netlink);
        netlink.change_link(b.index, &LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
        let bind = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
        let kept: IpAddr = "10.78.0.1".parse().unwrap();
        assert!(netlink.add_address(a.index, kept, 31).unwrap());
        let mut host = HostInterface::open("lr0").unwrap();
        host.up().unwrap();
        for (address, prefix_len) in [(HOST4.into(), 24), (HOST6.into(), 64), (kept, 31)] {
            host.add_address(address, prefix_len).unwrap();
            assert!(bind(address), "{address} is not usable");
            assert!(netlink.is_local(address).unwrap(), "{address} has no route");
        }
        drop(host);
        assert!(!bind(HOST4.into()) && !bind(HOST6.into()));
        assert!(bind(kept), "what was there before stays");
        assert!(!netlink.is_local(HOST4.into()).unwrap() && !netlink.is_local(HOST6.into()).unwrap());
        assert!(netlink.delete_address(a.index, kept, 31).unwrap());
        assert!(!netlink.delete_address(a.index, kept, 31).unwrap());
    });
}

#[test]
fn addresses_given_before_the_interface_is_up_are_usable_after() {
    in_namespace("addresses_given_before_up", || {
        let mut netlink = Netlink::open().unwrap();
        let (_, b) = veth(&mut netlink);
        netlink.change_link(b.index, &LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
        let mut host = HostInterface::open("lr0").unwrap();
        host.add_address(HOST6.into(), 64).unwrap();
        host.up().unwrap();
        assert!(netlink.is_local(HOST6.into()).unwrap());
    });
}

#[test]
fn refusals_say_why() {
    in_namespace("refusals_say_why", || {
        let mut netlink = Netlink::open().unwrap();
        let (a, _) = veth(&mut netlink);
        let long = netlink.add_address(a.index, HOST4.into(), 33);
        assert!(matches!(long, Err(NetconfigError::Prefix(_, 33))));
        let missing = netlink.add_address(9999, HOST4.into(), 24);
        assert!(matches!(missing, Err(NetconfigError::NoSuchInterface(_))), "{missing:?}");
        std::fs::write("/proc/sys/net/ipv6/conf/lr0/disable_ipv6", "1").unwrap();
        let off = netlink.add_address(a.index, HOST6.into(), 64);
        assert!(matches!(off, Err(NetconfigError::NoIpv6)), "{off:?}");
        let mtu = netlink.change_link(a.index, &LinkChange { mtu: Some(1), ..LinkChange::default() });
        assert!(matches!(mtu, Err(NetconfigError::Refused { .. })), "{mtu:?}");
        assert!(matches!(netlink.create_veth("lr0", "lr2"), Err(NetconfigError::Refused { .. })));
    });
}

#[test]
fn a_watch_sees_an_interface_go_down_up_and_away() {
    in_namespace("a_watch_sees_an_interface_go_down_up_and_away", || {
        let mut netlink = Netlink::open().unwrap();
        let (a, b) = veth(&mut netlink);
        let set = |netlink: &mut Netlink, index, on| {
            netlink.change_link(index, &LinkChange { up: Some(on), ..LinkChange::default() }).unwrap();
        };
        let watch = LinkWatch::open("lr0").unwrap();
        let look = |expected: bool| {
            // A carrier is told of by a work queue.
            for _ in 0..2_000 {
                watch.look();
                if watch.is_up() == expected {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("it is not seen that up is {expected}");
        };
        assert!(!watch.is_up());
        set(&mut netlink, a.index, true);
        set(&mut netlink, b.index, true);
        look(true);
        set(&mut netlink, b.index, false);
        look(false);
        set(&mut netlink, b.index, true);
        look(true);
        netlink.delete_link(a.index).unwrap();
        look(false);
    });
}
