//! Random events: nothing panics, nothing leaks, nothing is sent that must not be.

use super::solo::{ISS, Solo, offer};
use super::world::Random;
use super::{Wire, config};
use crate::tcp::{Config, State, TxLimits};
use core::time::Duration;
use linerate_transport::{
    BufferSize, Bytes, CloseReason, FileError, FileId, FileRange, Payload, SocketOptions,
};
use linerate_wire::tcp::{Flags, Options, SackBlock, SeqNumber, Timestamps};
use proptest::prelude::*;

fn random_options(random: &mut Random) -> Options {
    let mut options = Options::default();
    if random.per_mille(100) {
        options.mss = Some(random.next() as u16);
    }
    if random.per_mille(100) {
        options.window_scale = Some(random.below(15) as u8);
    }
    options.sack_permitted = random.per_mille(100);
    if random.per_mille(500) {
        let value = 1_000u32.wrapping_add(random.below(100_000) as u32);
        options.timestamps = Some(Timestamps { value, echo: random.next() as u32 });
    }
    for _ in 0..random.below(5) {
        let left = SeqNumber(ISS.wrapping_add(random.below(40_000) as u32));
        let right = left + random.below(5_000) as u32;
        options.sack_blocks.push(SackBlock { left, right });
    }
    options
}

fn random_segment(solo: &Solo, random: &mut Random) -> Wire {
    let near = |base: u32, random: &mut Random| match random.below(10) {
        0 => random.next() as u32,
        1 => base.wrapping_sub(random.below(2_000) as u32),
        _ => base.wrapping_add(random.below(30_000) as u32),
    };
    let flags = match random.below(12) {
        0 => Flags(random.next() as u8),
        1 => Flags::FIN | Flags::ACK,
        2 if random.per_mille(100) => Flags::RST,
        3 => Flags::SYN | Flags::ACK,
        _ => Flags::ACK,
    };
    let len = if random.per_mille(500) { random.below(1_461) } else { 0 };
    let exact = random.per_mille(400);
    let next =
        super::solo::IRS.wrapping_add(1).wrapping_add(solo.connection.info(solo.now).bytes_received as u32);
    Wire {
        seq: SeqNumber(if exact { next } else { near(super::solo::IRS, random) }),
        ack: SeqNumber(near(ISS, random)),
        flags,
        ecn: Default::default(),
        window: if random.per_mille(200) { 0 } else { random.next() as u16 },
        options: random_options(random),
        payload: super::stream(0..len),
    }
}

fn act(solo: &mut Solo, random: &mut Random, reads: &mut alloc::vec::Vec<u64>) {
    let now = solo.now;
    match random.below(16) {
        0..=5 => {
            let segment = random_segment(solo, random).to_segment(&solo.rx);
            let _ = solo.connection.handle_segment(now, segment);
        }
        6 | 7 => {
            let _ = solo.connection.write(now, &super::stream(0..random.below(5_000)));
        }
        8 => {
            let bytes = super::stream(0..random.below(20_000));
            let _ = solo.connection.send(now, Payload::Shared(Bytes::from(bytes)));
        }
        9 => {
            let range = FileRange {
                file: FileId::new(0, 0),
                offset: random.next() >> 20,
                len: random.below(400_000),
            };
            let _ = solo.connection.send(now, Payload::File(range));
            while let Some(read) = solo.connection.next_file_read() {
                solo.connection.file_read_started(&read);
                reads.push(read.index);
            }
        }
        10 => {
            if let Some(index) = reads.pop() {
                let data = if random.per_mille(50) {
                    Err(FileError::Io)
                } else {
                    Ok(Bytes::from(alloc::vec![0; 300_000]))
                };
                solo.connection.handle_file_data(now, index, data);
            }
        }
        11 => solo.connection.consume(now, random.below(5_000) as usize),
        12 => solo.pass(Duration::from_micros(random.below(3_000_000))),
        13 => {
            let tag = random.below(200) as u32;
            solo.connection.handle_transmitted(now, tag);
            solo.connection.handle_link_full(now);
        }
        14 => match random.below(12) {
            0 => solo.connection.shutdown(now),
            1 if random.per_mille(200) => solo.connection.close(now),
            2 if random.per_mille(100) => solo.connection.abort(now, CloseReason::NoMemory),
            3 => {
                let about =
                    random.per_mille(900).then(|| SeqNumber(ISS.wrapping_add(random.below(30_000) as u32)));
                solo.connection.handle_path_mss(now, random.next() as u16, about);
            }
            4 => {
                solo.connection.handle_icmp_error(now, SeqNumber(ISS), true, CloseReason::Unreachable);
            }
            _ => {
                let size = BufferSize::Auto { max: random.below(1 << 20) as usize };
                let socket =
                    SocketOptions { receive_buffer: size, send_buffer: size, ..SocketOptions::default() };
                solo.connection.set_options(now, &socket);
            }
        },
        _ => {
            solo.limits =
                TxLimits { max_payload: random.below(70_000) as usize, completions: random.per_mille(300) };
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_events_do_no_harm(seed: u64, sack: bool, timestamps: bool, steps in 50usize..400) {
        let mut random = Random::new(seed);
        let options = Config { sack, timestamps, ..config() };
        let mut solo = if random.per_mille(200) {
            Solo::active(options)
        } else {
            Solo::established_with(options, offer(sack, timestamps))
        };
        let mut reads = alloc::vec::Vec::new();
        for _ in 0..steps {
            act(&mut solo, &mut random, &mut reads);
            solo.connection.poll_ready();
            for segment in solo.output() {
                prop_assert!(segment.len <= 1_460);
                prop_assert!(segment.flags.contains(Flags::ACK) || segment.flags.intersects(Flags::SYN | Flags::RST));
            }
            let info = solo.connection.info(solo.now);
            prop_assert!(u64::from(info.in_flight) <= solo.connection.unsent() + 2);
            prop_assert!(solo.connection.peek().len() <= solo.connection.readable());
            if solo.connection.tcp_state() == State::Closed {
                prop_assert_eq!(solo.connection.poll_timeout(), None);
            }
        }
        let (budget, pages, rx) = (solo.resources.budget.clone(), solo.resources.pages.clone(), solo.rx.clone());
        drop(solo);
        prop_assert_eq!(budget.used(), 0);
        prop_assert_eq!(pages.free(), pages.stats().total);
        prop_assert_eq!(rx.free(), rx.stats().total);
    }
}
