//! Tests of frames' headers.

use super::*;
use core::net::Ipv4Addr;

#[test]
fn the_usual_headers_are_those_of_the_long_way() {
    let state = KeyedState::new(&[3; 32]);
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), "fd00::1".parse().unwrap());
    let mut usual = 0;
    let mut kept = Front::NONE;
    for (ip, vlan) in [(v4, None), (v4, Some(7)), (v6, None), (v6, Some(7))] {
        let egress = Egress::new(MacAddr([2; 6]), vlan, state, 0);
        let way = TcpWay { tos: 0x20, mac: MacAddr([4; 6]) };
        for ecn in [Ecn::NotCapable, Ecn::Capable0] {
            let mut front = Front::NONE;
            front.make(&egress.link, &way, ecn, (ip, ip));
            kept.make(&egress.link, &way, ecn, (ip, ip));
            for len in (20..3_000).chain(65_400..=65_515) {
                let (mut short, mut long) = ([7; 160], [7; 160]);
                front.write(&mut long, len);
                if front.write_usual(&mut short, len) {
                    assert_eq!(short, long, "{ip} {len}");
                    usual += 1;
                }
                let mut again = [7; 160];
                kept.write(&mut again, len);
                assert_eq!(again, long, "{ip} {len}: made where another one was");
            }
        }
    }
    assert_eq!(usual, 2 * (2_980 + 116), "IPv4 without tags alone");
}

#[test]
fn headers_of_another_connection_are_kept_only_where_they_are_the_same() {
    let mut egress = Egress::new(MacAddr([2; 6]), None, KeyedState::new(&[3; 32]), 0);
    let local = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    let remotes =
        [Ipv4Addr::new(10, 0, 0, 2).into(), Ipv4Addr::new(10, 0, 0, 3).into(), IpAddr::V6(1.into())];
    let mut state = 1_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for _ in 0..2_000 {
        let id = ConnId::new(random(3), 0);
        let way = TcpWay { tos: random(2) as u8 * 0x20, mac: MacAddr([4 + random(2) as u8 * 2; 6]) };
        let ecn = if random(2) == 0 { Ecn::NotCapable } else { Ecn::Capable0 };
        let remote = remotes[random(3) as usize];
        let local = if remote.is_ipv4() { local } else { IpAddr::V6(2.into()) };
        let end = |ip| SocketAddr::new(ip, 80);
        egress.turn_front_to(id, &way, ecn, (&end(local), &end(remote)));
        let mut fresh = Front::NONE;
        fresh.make(&egress.link, &way, ecn, (local, remote));
        let (mut kept, mut made) = ([7; 160], [7; 160]);
        egress.front.write(&mut kept, 100);
        fresh.write(&mut made, 100);
        assert_eq!(kept, made);
        assert_eq!((egress.front.l4, egress.front.is_v4, egress.front.ecn), (fresh.l4, fresh.is_v4, ecn));
    }
}
