//! What a SYN of a flood costs: SYNs from forged addresses to a listener whose backlog is full, each answered with a
//! cookie. Prints ns per SYN and the rate that one core stands.
//!
//! `cargo run --release -p linerate-stack --example syn_flood`

use linerate_nic::{Frame, Pool, RxBatch, RxMeta, TxQueue};
use linerate_stack::{Stack, StackConfig, StackPools};
use linerate_transport::{AcceptBacklog, ListenAddr, ListenOptions, Owner, Transport};
use linerate_wire::ethernet::{self, EtherType};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags, Options, SeqNumber, Timestamps};
use linerate_wire::units::Instant;
use linerate_wire::{arp, ipv4};
use std::net::Ipv4Addr;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const BATCH: u32 = 128;
const BATCHES: u32 = 8_000;

fn ethernet(ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let router = linerate_nic::MacAddr([2, 0, 0, 0, 0, 9]);
    let header = ethernet::Builder {
        destination: StackConfig::default().mac,
        source: router,
        ether_type,
        ..Default::default()
    };
    let mut frame = vec![0; header.header_len()];
    header.emit(&mut frame).expect("room");
    frame.extend_from_slice(payload);
    frame
}

fn syn(number: u32) -> Vec<u8> {
    let source = Ipv4Addr::from(0x0b00_0000 + number.wrapping_mul(7_919) % 0x00ff_ffff);
    let segment = tcp::Builder {
        source_port: 1_024 + (number % 60_000) as u16,
        destination_port: 80,
        sequence: SeqNumber(number.wrapping_mul(0x9e37_79b9)),
        flags: Flags::SYN,
        window: 65_535,
        options: Options {
            mss: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: number, echo: 0 }),
            ..Options::default()
        },
        ..tcp::Builder::default()
    };
    let mut bytes = vec![0; segment.header_len()];
    segment.emit(&mut bytes).expect("room");
    let header = ipv4::Builder::new(source, HOST, Protocol::TCP, bytes.len());
    let mut sum = header.pseudo_header();
    sum.add(&bytes);
    tcp::set_checksum(&mut bytes, sum.finish()).expect("room");
    let mut packet = vec![0; header.header_len()];
    header.emit(&mut packet).expect("room");
    packet.extend_from_slice(&bytes);
    ethernet(EtherType::IPV4, &packet)
}

fn router_asks() -> Vec<u8> {
    let packet = arp::Builder {
        operation: arp::Operation::REQUEST,
        sender_mac: linerate_nic::MacAddr([2, 0, 0, 0, 0, 9]),
        sender_ip: ROUTER,
        target_mac: linerate_nic::MacAddr::default(),
        target_ip: HOST,
    };
    let mut bytes = [0; arp::PACKET_LEN];
    packet.emit(&mut bytes).expect("room");
    ethernet(EtherType::ARP, &bytes)
}

fn main() {
    let config = StackConfig {
        addresses: vec!["10.0.0.1/24".parse().expect("an address")],
        gateways: vec![ROUTER.into()],
        ..StackConfig::default()
    };
    let pools = StackPools::for_memory(config.memory);
    let mut stack = Stack::new(config, [7; 32], pools);
    let options = ListenOptions { backlog: AcceptBacklog(128), ..ListenOptions::default() };
    stack.listen(Owner(1), ListenAddr { ip: None, port: 80 }, &options).expect("the port is free");
    let pool = Pool::new(1_024, 2_048);
    let mut batch = RxBatch::with_limit(BATCH as usize);
    let mut queue = TxQueue::with_capacity(256);
    let feed = |batch: &mut RxBatch, frame: &[u8]| {
        let mut buffer = pool.take().expect("a buffer");
        buffer.bytes_mut()[..frame.len()].copy_from_slice(frame);
        let frame = Frame::new(buffer.freeze(0..frame.len()), RxMeta::default());
        assert!(batch.push(frame).is_ok());
    };
    let mut now = Instant::from_millis(1);
    feed(&mut batch, &router_asks());
    stack.handle_frames(now, &mut batch);
    let mut busy = std::time::Duration::ZERO;
    for round in 0..BATCHES {
        (0..BATCH).for_each(|n| feed(&mut batch, &syn(round * BATCH + n)));
        now += std::time::Duration::from_micros(640);
        let start = std::time::Instant::now();
        stack.handle_frames(now, &mut batch);
        stack.poll_transmit(now, &mut queue);
        busy += start.elapsed();
        (0..queue.len()).for_each(|_| queue.pop());
    }
    let counters = stack.counters();
    let syns = u128::from(BATCH) * u128::from(BATCHES);
    let ns = busy.as_nanos() / syns;
    println!("{syns} SYNs, {} cookies sent, {} dropped", counters.syn_cookies_sent, counters.drops());
    println!("{ns} ns a SYN, checksums included: one core stands {} SYN/s", 1_000_000_000 / ns.max(1));
    println!("200,000 SYN/s take {} % of a core", 200_000 * ns / 10_000_000);
}
