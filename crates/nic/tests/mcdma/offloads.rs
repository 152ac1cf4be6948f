//! Offloads one at a time: what is asked for arrives, and what was found out is told. All of them together pass the self-test
//! (`loopback`).

use super::*;
use linerate_nic::mcdma::nic_regs::register as nic_regs;
use linerate_nic::mcdma::regs::register;
use linerate_nic::mcdma::{AppWords, Bus as _, Seeding};
use linerate_nic::{
    ChecksumRequest, ChecksumStatus, DeviceError, Feature, PacingConfig, PacingMode, Place, Port, PortConfig,
    Reason, Segmentation, Steering,
};
use linerate_wire::toeplitz::{Input, MICROSOFT_KEY};

/// A TCP segment over IPv4 with this payload from port 80 to 5,301, its checksum field `field`.
fn tcp(seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&PEER.0[..], &MAC.0, &[8, 0]].concat();
    let len = (40 + payload.len()) as u16;
    frame.extend([0x45, 0]);
    frame.extend(len.to_be_bytes());
    frame.extend([0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let header = !sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame.extend([0, 80, 0x14, 0xB5]);
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

/// The sum of the pseudo-header for so many bytes of TCP.
fn pseudo(len: usize) -> u16 {
    sum(&[&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6], &(len as u16).to_be_bytes()])
}

/// The one's complement sum of pieces of even length, but for the last.
fn sum(pieces: &[&[u8]]) -> u16 {
    let words = pieces.iter().flat_map(|piece| piece.chunks(2));
    let total: u64 = words.map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0))).sum();
    let once = (total & 0xFFFF) + (total >> 16);
    ((once & 0xFFFF) + (once >> 16)) as u16
}

fn with_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    let total = !sum(&[&pseudo(frame.len() - 34).to_be_bytes(), &frame[34..]]);
    frame[50..52].copy_from_slice(&total.to_be_bytes());
    frame
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 13 + at / 256) as u8).collect()
}

fn bench(words: AppWords, seeding: Seeding) -> Bench {
    let board = Board::new(1);
    board.with(|hardware| hardware.words = words);
    let settings = Settings { transmit_ring: 64, receive_ring: 64, seeding, ..settings() };
    let mut bench = Bench::on(board, &settings, 256);
    bench.control.enable(Capabilities::ALL).expect("it has everything");
    bench
}

/// Sends a packet that leaves its checksum to the hardware, as it leaves the stack.
fn offer(bench: &mut Bench, seq: u32, payload: Vec<u8>, segmentation: Segmentation) {
    let mut header = tcp(seq, 0x18, &payload);
    header.truncate(54);
    header[50..52].copy_from_slice(&pseudo(20 + payload.len()).to_be_bytes());
    let packet = bench.out.vacant().expect("room");
    packet.header_mut(54).copy_from_slice(&header);
    for piece in payload.chunks(4_096) {
        packet.push_chunk(Chunk::Shared(piece.to_vec().into())).expect("room in the list");
    }
    packet.meta.header_len = 54;
    packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 16 });
    packet.meta.segmentation = segmentation;
    packet.meta.token = TxToken(u64::from(seq));
    bench.out.commit();
}

const KINDS: [(AppWords, Seeding); 4] = [
    (AppWords::TenGig, Seeding::Field),
    (AppWords::TenGig, Seeding::Word),
    (AppWords::AxiEthernet, Seeding::Field),
    (AppWords::AxiEthernet, Seeding::Word),
];

#[test]
fn checksums_are_filled_in() {
    for (words, seeding) in KINDS {
        let mut bench = bench(words, seeding);
        for len in [0, 1, 535, 1_460] {
            offer(&mut bench, 5, payload(len), Segmentation::None);
            bench.transmit();
            bench.pass_us(100);
            let mut expected = with_checksum(tcp(5, 0x18, &payload(len)));
            expected.resize(expected.len().max(60), 0);
            assert_eq!(bench.wire(), [expected], "{words:?} {seeding:?} {len}");
            assert_eq!(bench.completions(), [5]);
        }
    }
}

#[test]
fn super_segments_leave_in_segments() {
    for (words, seeding) in KINDS {
        for reaches_only_pools in [false, true] {
            let mut bench = bench(words, seeding);
            bench.board.with(|hardware| hardware.memory.reaches_only_pools = reaches_only_pools);
            let bytes = payload(65_000);
            offer(&mut bench, 1_000, bytes.clone(), Segmentation::Tcp4(1_448));
            assert_eq!(bench.transmit(), 1);
            bench.pass_us(1_000);
            let wire = bench.wire();
            assert_eq!(wire.len(), 65_000usize.div_ceil(1_448));
            let mut sent = Vec::new();
            for (at, frame) in wire.iter().enumerate() {
                let seq = 1_000 + at as u32 * 1_448;
                let is_last = at + 1 == wire.len();
                let mut expected = tcp(seq, if is_last { 0x18 } else { 0x10 }, &frame[54..]);
                expected[18..20].copy_from_slice(&(7 + at as u16).to_be_bytes());
                expected[24..26].fill(0);
                let header = !sum(&[&expected[14..34]]);
                expected[24..26].copy_from_slice(&header.to_be_bytes());
                assert!(*frame == with_checksum(expected), "{words:?} {seeding:?} segment {at}");
                sent.extend_from_slice(&frame[54..]);
            }
            assert!(sent == bytes);
            assert_eq!(bench.completions(), [1_000]);
            assert_eq!(bench.queue.stats().copied, u64::from(reaches_only_pools));
            assert_eq!(bench.transmit.free(), bench.transmit.len());
        }
    }
}

#[test]
fn what_cannot_be_split_is_refused() {
    let mut bench = bench(AppWords::TenGig, Seeding::Field);
    let mut refuse = |change: &dyn Fn(&mut linerate_nic::TxMeta)| {
        offer(&mut bench, 3, payload(5_000), Segmentation::Tcp4(1_448));
        change(&mut bench.out.front_mut().expect("it").meta);
        assert_eq!(bench.transmit(), 1, "taken all the same");
        bench.pass_us(100);
        assert_eq!((bench.wire().len(), bench.completions()), (0, vec![3]));
    };
    refuse(&|meta| meta.segmentation = Segmentation::Tcp4(0));
    refuse(&|meta| meta.checksum = None);
    refuse(&|meta| meta.header_len = 20);
    bench.control.enable(Capabilities { tso4: false, ..Capabilities::ALL }).expect("it can");
    offer(&mut bench, 4, payload(5_000), Segmentation::Tcp4(1_448));
    assert_eq!((bench.transmit(), bench.queue.stats().refused), (1, 4));
}

#[test]
fn received_checksums_are_told() {
    for (words, seeding) in KINDS {
        let mut bench = bench(words, seeding);
        let intact = with_checksum(tcp(1, 0x10, &payload(100)));
        let mut corrupted = intact.clone();
        corrupted[60] ^= 1;
        let mut bad_header = intact.clone();
        bad_header[22] ^= 1;
        let arp = [&MAC.0[..], &PEER.0, &[8, 6], &[0; 46]].concat();
        for (frame, expected) in [
            (intact.clone(), ChecksumStatus::Good),
            (corrupted, ChecksumStatus::Bad),
            (bad_header, ChecksumStatus::Bad),
            (arp, ChecksumStatus::Unchecked),
        ] {
            let mut frame = frame;
            frame[..6].copy_from_slice(&MAC.0);
            let raw = sum(&[&frame[14..]]);
            bench.arrive(frame);
            bench.pass_us(50);
            let frames = bench.receive();
            assert_eq!(frames.len(), 1);
            let raw = (expected == ChecksumStatus::Unchecked).then_some(raw);
            assert_eq!((frames[0].meta.checksum, frames[0].meta.raw_sum), (expected, raw));
        }
        // Switched off: as if nobody had looked.
        bench.control.enable(Capabilities::NONE).expect("it can");
        let mut frame = intact;
        frame[..6].copy_from_slice(&MAC.0);
        bench.arrive(frame);
        let meta = bench.receive()[0].meta;
        assert_eq!((meta.checksum, meta.raw_sum), (ChecksumStatus::Unchecked, None));
    }
}

/// A frame that is made of 40 comes in as many buffers as it takes, which all return.
#[test]
fn joined_segments_come_as_one_frame() {
    for (words, seeding) in KINDS {
        let mut bench = bench(words, seeding);
        bench.board.with(|hardware| hardware.access = Duration::ZERO);
        let bytes = payload(40 * 1_448);
        for (at, piece) in bytes.chunks(1_448).enumerate() {
            let mut frame = with_checksum(tcp(9 + at as u32 * 1_448, 0x10, piece));
            frame[..6].copy_from_slice(&MAC.0);
            bench.board.with(|hardware| hardware.arrive(bench.now, frame));
        }
        bench.pass_us(100);
        let mut frames = bench.receive();
        assert_eq!(frames.len(), 1, "{words:?}");
        let frame = frames.pop().expect("it");
        assert_eq!((frame.meta.segment_size, frame.meta.checksum), (1_448, ChecksumStatus::Good));
        assert_eq!(frame.meta.raw_sum, None, "no sum of one frame");
        let mut whole = frame.data.bytes().to_vec();
        frame.more.iter().for_each(|piece| whole.extend_from_slice(piece.bytes()));
        assert!(whole[54..] == bytes);
        assert_eq!(usize::from(u16::from_be_bytes([whole[16], whole[17]])), 40 + bytes.len());
        assert_eq!(frame.more.len() + 1, whole.len().div_ceil(2_048));
        drop(frame);
        assert_eq!(bench.receive.free(), 256 - 63, "all but what the ring has");
        assert_eq!(bench.queue.stats().received_joined, 1);
    }
}

/// Ring and pool are too small for the frame: it is cut off, thrown away and counted, and what comes next is whole.
#[test]
fn a_frame_for_which_there_is_no_room_is_dropped_alone() {
    let settings = Settings { receive_ring: 20, transmit_ring: 64, ..settings() };
    let mut bench = Bench::with(1, &settings, 24);
    bench.control.enable(Capabilities::ALL).expect("it has everything");
    let bytes = payload(40 * 1_448);
    for (at, piece) in bytes.chunks(1_448).enumerate() {
        let mut frame = with_checksum(tcp(9 + at as u32 * 1_448, 0x10, piece));
        frame[..6].copy_from_slice(&MAC.0);
        bench.board.with(|hardware| hardware.arrive(bench.now, frame));
    }
    bench.pass_us(100);
    assert!(bench.receive().is_empty());
    assert_eq!(bench.queue.stats().receive_length, 1, "19 descriptors without an end");
    bench.pass_us(2_000);
    bench.receive();
    bench.control.enable(Capabilities::NONE).expect("it can");
    for round in 0..100 {
        bench.arrive(frame(round, 100, MAC));
        let frames = bench.receive();
        assert_eq!(frames.iter().filter(|frame| frame.len() == 100).count(), 1, "{round}");
        bench.pass_us(10);
    }
}

/// Sends a frame that is made of 40 and takes 29 buffers.
fn arrive_joined(bench: &mut Bench) {
    for (at, piece) in payload(40 * 1_448).chunks(1_448).enumerate() {
        let mut frame = with_checksum(tcp(9 + at as u32 * 1_448, 0x10, piece));
        frame[..6].copy_from_slice(&MAC.0);
        bench.board.with(|hardware| hardware.arrive(bench.now, frame));
    }
    bench.pass_us(100);
}

/// With so many of 40 receive buffers in the stack's hands.
fn short_of_buffers(held: u64) -> (Bench, Vec<Frame>) {
    let settings = Settings { receive_ring: 48, ..settings() };
    let mut bench = Bench::with(1, &settings, 40);
    // A millisecond, as with other hardware or several queues.
    bench.board.write(register::S2MM_PATIENCE, 2_440);
    let mut frames = Vec::new();
    for round in 0..held {
        bench.arrive(frame(round, 100, MAC));
        frames.extend(bench.receive());
    }
    assert_eq!((frames.len() as u64, bench.receive.free()), (held, 0));
    bench.control.enable(Capabilities::ALL).expect("it has everything");
    (bench, frames)
}

#[test]
fn the_beginning_of_a_frame_that_was_cut_off_is_thrown_away_alone() {
    let (mut bench, held) = short_of_buffers(16);
    arrive_joined(&mut bench);
    // 24 of 29 pieces are there, and the engine loses its patience.
    bench.pass_us(2_000);
    drop(held);
    bench.board.with(|hardware| hardware.arrive(bench.now, frame(77, 100, MAC)));
    bench.pass_us(100);
    assert!(bench.receive().is_empty(), "nothing has its end yet");
    bench.pass_us(100);
    let frames = bench.receive();
    assert_eq!(frames.len(), 1);
    assert_eq!(number(frames[0].data.bytes(), 100), 77);
    assert_eq!((bench.queue.stats().receive_length, bench.queue.stats().stalls), (1, 0));
}

#[test]
fn a_frame_that_takes_all_buffers_and_more_does_not_stop_the_others() {
    let (mut bench, held) = short_of_buffers(16);
    arrive_joined(&mut bench);
    assert!(bench.receive().is_empty());
    assert_eq!(bench.queue.stats().receive_length, 1, "there is nothing that it could go on in");
    bench.pass_us(2_000);
    bench.receive();
    bench.control.enable(Capabilities::NONE).expect("it can");
    for round in 100..150 {
        bench.arrive(frame(round, 100, MAC));
        let frames = bench.receive();
        assert_eq!(frames.iter().filter(|frame| frame.len() == 100).count(), 1, "{round}");
    }
    drop(held);
}

#[test]
fn segments_are_joined_only_where_their_checksums_are_verified() {
    let mut port = Port::new(device(&Board::new(1), &settings()), PortConfig::default()).expect("a port");
    assert_eq!(port.place(Feature::RxCoalescing), Place::Device);
    let allowed = Capabilities { rx_checksum: false, ..Capabilities::ALL };
    let enabled = port.set_offloads(allowed).expect("it can");
    assert_eq!(enabled, Capabilities { rx_coalescing: false, ..allowed });
    assert_eq!(port.place(Feature::RxCoalescing), Place::Software(Reason::Refused));
}

#[test]
fn the_hash_spreads_and_is_told() {
    let board = Board::new(1);
    let settings = Settings { queues: 4, transmit_ring: 64, ..settings() };
    let (mut control, queues) = open(board.clone(), DESCRIPTORS, DESCRIPTORS_LEN, &settings).expect("opens");
    let start = |queue: linerate_nic::mcdma::StoppedQueue<Board>| {
        queue.start(board.pool(64, 2_048, true), board.pool(48, 1_536, false)).expect("starts")
    };
    let mut queues: Vec<Queue<Board>> = queues.into_iter().map(start).collect();
    let indirection = [0, 1, 2, 3, 3, 2, 1, 0];
    let ports = [(5_302, 2)];
    control
        .set_steering(&Steering { key: &MICROSOFT_KEY, indirection: &indirection, ports: &ports })
        .expect("it has a hash");
    let mut seen = [0; 4];
    for (at, port) in (5_300..5_340u16).enumerate() {
        let now = Instant::from_millis(1 + at as u64);
        let mut frame = tcp(1, 0x10, &payload(10));
        frame[..6].copy_from_slice(&MAC.0);
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        let address = |last| [10, 0, 0, last].into();
        let hash = Input::ipv4_ports(address(1), address(2), 80, port).hash(&MICROSOFT_KEY);
        let expected = if port == 5_302 { 2 } else { indirection[hash as usize % 8] };
        board.with(|hardware| {
            hardware.arrive(now, frame);
            hardware.step(now + Duration::from_micros(10));
        });
        for (index, queue) in queues.iter_mut().enumerate() {
            let mut batch = RxBatch::with_limit(4);
            queue.receive(now, &mut batch).expect("works");
            assert_eq!(batch.len(), usize::from(index == usize::from(expected)), "port {port} queue {index}");
            if let Some(frame) = batch.pop() {
                assert_eq!((frame.meta.rss_hash, frame.meta.queue), (Some(hash), expected));
                seen[index] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 2), "{seen:?}");
}

#[test]
fn steering_that_the_hardware_does_not_have_is_refused() {
    let key = &MICROSOFT_KEY;
    let refuse = |bench: &mut Bench, indirection: &[u16], ports: &[(u16, u16)]| {
        let result = bench.control.set_steering(&Steering { key, indirection, ports });
        assert_eq!(result, Err(DeviceError::Unsupported));
    };
    let settings = Settings { queues: 2, ..settings() };
    let mut bench = Bench::with(1, &settings, 64);
    refuse(&mut bench, &[0, 2], &[]);
    refuse(&mut bench, &[0, 1, 0], &[]);
    refuse(&mut bench, &[0; 256].map(|_: u16| 1), &[]);
    refuse(&mut bench, &[0], &[(80, 2)]);
    refuse(&mut bench, &[0], &[(80, 0); 17]);
    bench.control.set_steering(&Steering { key, indirection: &[0, 1], ports: &[(80, 1)] }).expect("it can");
    // Without a hash: by ports alone.
    let board = Board::new(1);
    board.with(|hardware| hardware.mac.features = nic_regs::FEATURES_FILTER);
    let mut bench = Bench::on(board, &settings, 64);
    refuse(&mut bench, &[0, 1], &[]);
    bench.control.set_steering(&Steering { key, indirection: &[0, 0], ports: &[(80, 1)] }).expect("it can");
}

#[test]
fn hardware_without_offloads_claims_none() {
    let board = Board::new(1);
    board.with(|hardware| hardware.mac.features = 0);
    let (control, _) = open(board, DESCRIPTORS, DESCRIPTORS_LEN, &settings()).expect("opens");
    assert_eq!(control.capabilities(), Capabilities { gather: true, ..Capabilities::NONE });
}

/// How many frames, 1 us apart, come before the interrupt; and whether it comes later without one more.
fn paced(bench: &mut Bench, pacing: PacingConfig) -> (Option<u64>, bool) {
    bench.queue.set_pacing(pacing).expect("it has this");
    // A reset does not change it.
    bench.queue.reset().expect("it works");
    assert!(!bench.arm());
    let count = (1..100).find(|at| {
        bench.arrive(frame(*at, 100, MAC));
        bench.is_interrupted()
    });
    bench.receive();
    bench.arm();
    bench.arrive(frame(1, 100, MAC));
    let at_once = bench.is_interrupted();
    bench.pass_us(60);
    let later = !at_once && bench.is_interrupted();
    bench.receive();
    (count, later)
}

#[test]
fn pacing_has_the_modes_that_the_hardware_has() {
    let pacing =
        |mode, timer_ticks, threshold| PacingConfig { mode, timer_ticks, threshold, tick_ns: 25_000 };
    let board = Board::new(1);
    board.with(|hardware| hardware.mac.features = 0);
    let mut engine = Bench::on(board, &settings(), 64);
    for refused in [
        pacing(PacingMode::FirstNewPacket, 2, 32),
        pacing(PacingMode::LastInterrupt, 2, 32),
        pacing(PacingMode::None, 0, 256),
        pacing(PacingMode::LastNewPacket, 100, 32),
    ] {
        assert_eq!(engine.queue.set_pacing(refused), Err(DeviceError::Unsupported));
    }
    for (accepted, expected) in [
        (pacing(PacingMode::None, 0, 4), (Some(4), false)),
        (pacing(PacingMode::LastNewPacket, 2, 4), (Some(4), true)),
        (pacing(PacingMode::LastNewPacket, 0, 4), (Some(1), false)),
    ] {
        assert_eq!(paced(&mut engine, accepted), expected, "{accepted:?}");
    }
    let mut pacer = Bench::new(1);
    for (accepted, expected) in [
        (pacing(PacingMode::None, 0, 4), (Some(4), false)),
        (pacing(PacingMode::LastNewPacket, 2, 4), (Some(4), true)),
        (pacing(PacingMode::FirstNewPacket, 2, 4), (Some(4), true)),
        (pacing(PacingMode::FirstNewPacket, 2, 400), (Some(51), true)),
        (pacing(PacingMode::LastInterrupt, 2, 400), (Some(51), true)),
    ] {
        assert_eq!(paced(&mut pacer, accepted), expected, "{accepted:?}");
    }
    let result = pacer.queue.set_pacing(pacing(PacingMode::None, 0, 70_000));
    assert_eq!(result, Err(DeviceError::Unsupported));
}
