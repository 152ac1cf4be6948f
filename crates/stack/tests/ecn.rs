//! Which packets say that the network may mark them (RFC 3168 section 6.1.5): new data, and not what is sent again.

mod common;

use common::frames::*;
use common::peer::{Peer, modern};
use common::{Bench, OWNER, Setup, file_bytes};
use core::time::Duration;
use linerate_transport::{Bytes, ListenAddr, ListenOptions, Payload, Transport};
use linerate_wire::arp::Operation;
use linerate_wire::ip::{Ecn, Protocol};
use linerate_wire::tcp::{Builder, Flags, Header, SackBlock, SeqNumber};
use linerate_wire::{ethernet, ipv4};

/// Sequence number, length and mark of each segment with payload.
fn data(frames: &[Vec<u8>]) -> Vec<(SeqNumber, usize, Ecn)> {
    let read = |frame: &Vec<u8>| {
        let link = ethernet::Header::parse(frame).ok()?;
        let packet = ipv4::Header::parse(link.payload()).ok()?;
        if packet.protocol() != Protocol::TCP {
            return None;
        }
        let segment = Header::parse(packet.payload()).ok()?;
        Some((segment.sequence(), segment.payload().len(), packet.ecn()))
    };
    frames.iter().filter_map(read).filter(|(_, len, _)| *len > 0).collect()
}

#[test]
fn a_segment_sent_again_beside_new_data_carries_no_mark_and_the_new_data_does() {
    let mut bench = Bench::new(Setup::default().config[0].clone());
    bench.receive();
    bench.ask(&arp(Operation::REQUEST, PEER4, HOST4));
    let listen = ListenAddr { ip: None, port: 80 };
    let listener = bench.host.stack.listen(OWNER, listen, &ListenOptions::default()).unwrap();
    let mut peer = Peer::new(20_000, modern());
    // Timestamps out of the way.
    peer.options.timestamps = None;
    let syn = Builder { flags: Flags::SYN | Flags::ECE | Flags::CWR, ..peer.syn() };
    let answer = common::peer::answers(&bench.ask(&tcp4(syn, &[]))).remove(0);
    assert!(answer.flags.contains(Flags::ECE), "it agrees");
    (peer.next, peer.ack) = (peer.next + 1, answer.seq + 1);
    peer.send(&mut bench, &[]);
    let conn = bench.host.stack.accept(listener).unwrap();
    bench.host.stack.send(conn, Payload::Shared(Bytes::from(file_bytes(0, 60_000)))).unwrap();
    let first = data(&bench.receive());
    assert!(first.len() >= 10 && first.iter().all(|(_, _, ecn)| *ecn == Ecn::Capable0), "{first:?}");
    // All but the first have arrived.
    bench.now += Duration::from_millis(10);
    let (seq, len, _) = first[0];
    let (last, last_len, _) = first[first.len() - 1];
    let mut ack = peer.segment(Flags::ACK);
    assert!(
        ack.options.sack_blocks.push(SackBlock { left: seq + len as u32, right: last + last_len as u32 })
    );
    let next = data(&bench.ask(&tcp4(ack, &[])));
    let again: Vec<_> = next.iter().filter(|(at, _, _)| *at == seq).collect();
    let new: Vec<_> = next.iter().filter(|(at, _, _)| *at != seq).collect();
    assert!(!again.is_empty() && !new.is_empty(), "{next:?}");
    assert!(again.iter().all(|(_, _, ecn)| *ecn == Ecn::NotCapable), "{next:?}");
    assert!(new.iter().all(|(_, _, ecn)| *ecn == Ecn::Capable0), "{next:?}");
}
