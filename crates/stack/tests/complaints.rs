//! What users of other embedded stacks complain about over and over, each shown to be absent here by the tests that
//! [`COMPLAINTS`] names; those that were not shown elsewhere are in this file. Likewise the faults of the send side that
//! made another RTOS stack send 2 Mb/s where it received 80 Mb/s ([`SEND_SIDE_FAULTS`]).

mod common;

use common::frames::*;
use common::{Bench, OWNER, Setup, World, file_bytes, read_all, shown};
use core::time::Duration;
use linerate_nic::{Chunk, Frame, RxBatch, RxMeta, TxQueue, TxToken};
use linerate_stack::StackConfig;
use linerate_transport::{
    BufferSize, Bytes, ConnId, ConnState, DelayedAck, ListenAddr, ListenOptions, Payload, SocketOptions,
    Transport,
};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags, Options, SeqNumber};

const LIMITS: &str = include_str!("limits.rs");
const HERE: &str = include_str!("complaints.rs");
const ALLOCATIONS: &str = include_str!("allocations.rs");
const FAULTS: &str = include_str!("../src/tcp/tests/faults.rs");
const SENDING: &str = include_str!("../src/tcp/tests/sending.rs");
const RECEIVING: &str = include_str!("../src/tcp/tests/receiving.rs");
const POLICY: &str = include_str!("../src/tcp/tests/policy.rs");
const CLOSING: &str = include_str!("../src/tcp/tests/closing.rs");
const DEMUX: &str = include_str!("../src/demux.rs");

/// A complaint, and the tests that it does not apply here: the file, and the names in it.
type Answers = (&'static str, &'static [(&'static str, &'static [&'static str])]);

/// The complaints that recur.
const COMPLAINTS: &[Answers] = &[
    (
        "sockets are searched one by one",
        &[(DEMUX, &["a_flow_is_found_in_as_few_steps_among_many_as_among_few"])],
    ),
    ("there is no accept backlog", &[(LIMITS, &["a_full_accept_queue_drops_syns_until_somebody_accepts"])]),
    (
        "one unreachable peer clogs a socket",
        &[
            (LIMITS, &["an_unreachable_neighbour_does_not_disturb_others"]),
            (HERE, &["one_unreachable_peer_does_not_clog_a_datagram_socket"]),
        ],
    ),
    (
        "the wrap of a ring forces copies",
        &[
            (HERE, &["received_bytes_are_read_where_the_device_put_them"]),
            (ALLOCATIONS, &["a_transfer_allocates_nothing_per_packet"]),
            (SENDING, &["payload_goes_by_reference"]),
        ],
    ),
    (
        "an exhausted pool shows up as a silent stall",
        &[
            (HERE, &["an_exhausted_pool_is_counted_and_the_transfer_goes_on_when_buffers_return"]),
            (SENDING, &["an_application_that_found_no_memory_is_told_to_try_again"]),
            (RECEIVING, &["memory_that_runs_out_is_a_state_like_others"]),
        ],
    ),
    ("timers tick every 500 ms", &[(HERE, &["deadlines_are_met_to_the_nanosecond"])]),
    ("the timeout runs from queueing", &[(FAULTS, &["the_timeout_runs_from_transmission"])]),
    (
        "a zero window livelocks",
        &[
            (HERE, &["a_closed_window_costs_few_packets_and_ends_when_the_reader_reads"]),
            (SENDING, &["a_lost_window_update_does_not_stop_the_transfer"]),
        ],
    ),
    (
        "DMA and caches corrupt data",
        &[
            (HERE, &["what_the_device_may_still_read_is_never_written"]),
            (FAULTS, &["what_waits_in_the_device_is_not_sent_again"]),
        ],
    ),
    (
        "buffers that size themselves get slower",
        &[
            (POLICY, &["buffers_grow_to_fill_a_long_fat_path"]),
            (RECEIVING, &["the_receive_buffer_grows_with_the_rate", "a_slow_reader_keeps_the_buffer_small"]),
        ],
    ),
    (
        "a RST anywhere in the window kills",
        &[(FAULTS, &["an_in_window_reset_does_not_kill"]), (CLOSING, &["resets_must_hit_the_edge"])],
    ),
    (
        "a transfer stalls after the peer shrinks its window",
        &[(SENDING, &["a_window_that_shrinks_is_no_end"])],
    ),
    (
        "draining what comes in starves what goes out",
        &[(HERE, &["a_flood_that_comes_in_does_not_starve_what_goes_out"])],
    ),
];

/// The faults of FreeRTOS+TCP's send side, as its source shows them.
const SEND_SIDE_FAULTS: &[Answers] = &[
    ("only SACK leads to fast retransmit", &[(FAULTS, &["plain_duplicate_acks_trigger_fast_retransmit"])]),
    ("a duplicate is counted per SACK block", &[(FAULTS, &["one_ack_with_three_blocks_is_one_duplicate"])]),
    (
        "the counter is never cleared: a lost retransmission means a timeout",
        &[(
            FAULTS,
            &["a_lost_retransmission_is_repeated_without_a_timeout", "recoveries_can_follow_each_other"],
        )],
    ),
    ("a retransmission is measured (Karn)", &[(FAULTS, &["a_retransmitted_segment_is_not_measured"])]),
    (
        "the timeout has no variance, its floor is 100 ms",
        &[(FAULTS, &["the_timeout_has_a_variance_term_and_a_sane_floor"])],
    ),
    ("there is no congestion window", &[(FAULTS, &["there_is_a_congestion_window"])]),
    ("segments are never split", &[(FAULTS, &["segments_are_cut_when_they_are_sent"])]),
    ("a closed window is not probed", &[(FAULTS, &["a_closed_window_is_probed"])]),
    ("ghost sends", &[(FAULTS, &["no_ghost_sends"])]),
    ("8 segments a pass, then silence", &[(FAULTS, &["a_pass_sends_all_that_the_windows_allow"])]),
];

#[test]
fn every_complaint_is_answered_by_tests_that_exist() {
    for (complaint, answers) in COMPLAINTS.iter().chain(SEND_SIDE_FAULTS) {
        for (file, names) in *answers {
            for name in *names {
                assert!(file.contains(&format!("fn {name}(")), "{complaint}: {name}");
            }
        }
    }
}

#[test]
fn one_unreachable_peer_does_not_clog_a_datagram_socket() {
    let mut world = World::new(Setup::default());
    let sender = world.a.stack.udp_bind(OWNER, ListenAddr { ip: None, port: 9 }, 65_536).unwrap();
    let receiver = world.b.stack.udp_bind(OWNER, ListenAddr { ip: None, port: 7 }, 65_536).unwrap();
    let mut arrived = 0;
    for round in 0..200u32 {
        // Nobody is at 10.0.0.77: its datagrams wait for a neighbour that never answers.
        let _ = world.a.stack.udp_send(sender, None, "10.0.0.77:7".parse().unwrap(), &[0; 500]);
        let to = "10.0.0.2:7".parse().unwrap();
        assert_eq!(world.a.stack.udp_send(sender, None, to, &round.to_be_bytes()), Ok(()), "round {round}");
        world.exchange();
        while let Some(datagram) = world.b.stack.udp_peek(receiver) {
            assert_eq!(datagram.data, round.to_be_bytes(), "at once and in order");
            world.b.stack.udp_consume(receiver);
            arrived += 1;
        }
        world.pass(Duration::from_millis(10));
    }
    assert_eq!(arrived, 200);
    assert!(world.a.stack.counters().drop_neighbor_queue > 0, "{:?}", shown(world.a.stack.counters()));
}

/// A connection of the peer to port 80 of the bench, all numbers known.
struct Talk {
    bench: Bench,
    conn: ConnId,
    /// The peer's and our next sequence numbers.
    seq: SeqNumber,
    ack: SeqNumber,
}

impl Talk {
    fn new(socket: SocketOptions) -> Talk {
        let mut bench = Bench::acquainted();
        let options = ListenOptions { socket, ..ListenOptions::default() };
        let listener =
            bench.host.stack.listen(OWNER, ListenAddr { ip: None, port: 80 }, &options).expect("a listener");
        let mut syn = segment(SeqNumber(999), SeqNumber(0), Flags::SYN);
        syn.options = Options { mss: Some(1_460), ..Options::default() };
        let answers = payloads(&bench.ask(&tcp4(syn, &[])), Protocol::TCP);
        let ours = tcp::Header::parse(&answers[0]).unwrap().sequence() + 1;
        let mut talk = Talk { bench, conn: ConnId::new(0, 0), seq: SeqNumber(1_000), ack: ours };
        talk.say(&[]);
        talk.conn = talk.bench.host.stack.accept(listener).expect("established");
        talk
    }

    fn frame(&self, payload: &[u8]) -> Vec<u8> {
        tcp4(segment(self.seq, self.ack, Flags::ACK), payload)
    }

    /// Sends payload (or an ACK) and returns the TCP segments that come back.
    fn say(&mut self, payload: &[u8]) -> Vec<Vec<u8>> {
        let frame = self.frame(payload);
        self.seq += payload.len() as u32;
        payloads(&self.bench.ask(&frame), Protocol::TCP)
    }
}

fn segment(sequence: SeqNumber, acknowledgement: SeqNumber, flags: Flags) -> tcp::Builder {
    tcp::Builder {
        source_port: 5_000,
        destination_port: 80,
        sequence,
        acknowledgement,
        flags,
        window: 65_535,
        ..tcp::Builder::default()
    }
}

#[test]
fn received_bytes_are_read_where_the_device_put_them() {
    let mut talk = Talk::new(SocketOptions::default());
    let mut batch = RxBatch::with_limit(1);
    let (mut sent, mut read) = (0u64, 0u64);
    let mut places = Vec::new();
    // Reads that never end where a segment does, over many times the size of any buffer.
    while read < 4_000_000 {
        let frame = talk.frame(&file_bytes(sent, 1_460));
        talk.seq += 1_460;
        sent += 1_460;
        let mut buffer = talk.bench.pool.take().expect("a buffer");
        buffer.bytes_mut()[..frame.len()].copy_from_slice(&frame);
        places.push(buffer.bytes().as_ptr_range());
        let meta = RxMeta::default();
        batch.push(Frame::new(buffer.freeze(0..frame.len()), meta)).expect("room");
        talk.bench.host.stack.handle_frames(talk.bench.now, &mut batch);
        for _ in 0..2 {
            let piece = talk.bench.host.stack.peek(talk.conn);
            let len = piece.len().min(997);
            assert_eq!(piece[..len], file_bytes(read, len));
            let at = piece.as_ptr_range();
            let lies_there = places.iter().any(|place| place.start <= at.start && at.end <= place.end);
            assert!(piece.is_empty() || lies_there, "a copy at {read}");
            read += len as u64;
            talk.bench.host.stack.consume(talk.conn, len);
        }
        places.drain(..places.len().saturating_sub(64));
        talk.bench.receive();
    }
}

#[test]
fn an_exhausted_pool_is_counted_and_the_transfer_goes_on_when_buffers_return() {
    let mut world = World::new(Setup { receive_buffers: 256, ..Setup::default() });
    let (client, server) = world.connected("10.0.0.2:80");
    world.a.port.device().set_delay(Duration::from_millis(5));
    const TOTAL: usize = 8_000_000;
    let (mut sent, mut received) = (0, Vec::new());
    let mut step = move |world: &mut World, received: &mut Vec<u8>| {
        while sent < TOTAL {
            let data = Bytes::from(file_bytes(sent as u64, 50_000));
            match world.a.stack.send(client, Payload::Shared(data)) {
                Ok(()) => sent += 50_000,
                Err(_) => break,
            }
        }
        read_all(&mut world.b.stack, server, received);
    };
    world.run_for(Duration::from_secs(1), |world| {
        step(world, &mut received);
        received.len() >= TOTAL / 16
    });
    let mut hoard = Vec::new();
    let before = received.len();
    world.run_for(Duration::from_secs(5), |world| {
        step(world, &mut received);
        hoard.extend(core::iter::from_fn(|| world.pool.take()));
        false
    });
    let lost = world.a.port.device().stats().no_buffer + world.b.port.device().stats().no_buffer;
    assert!(lost > 0, "frames without a buffer are counted");
    assert!(world.pool.stats().exhausted > 0, "{:?}", world.pool.stats());
    assert!(received.len() < TOTAL / 2, "it stops: {before} bytes before, {} now", received.len());
    drop(hoard);
    let done = world.run_for(Duration::from_secs(30), |world| {
        step(world, &mut received);
        received.len() == TOTAL
    });
    assert!(done, "{} bytes, {:?}", received.len(), shown(world.b.stack.counters()));
    assert!(received == file_bytes(0, TOTAL));
}

#[test]
fn deadlines_are_met_to_the_nanosecond() {
    for timeout in [Duration::from_micros(7_300), Duration::from_nanos(1_234_567), Duration::from_millis(40)]
    {
        let delayed_ack = DelayedAck { segments: 2, timeout };
        let mut talk = Talk::new(SocketOptions { delayed_ack, ..SocketOptions::default() });
        talk.bench.now += Duration::from_nanos(777);
        // The first ones are not delayed.
        while !talk.say(b"one small segment").is_empty() {}
        talk.bench.pass(Duration::from_secs(1));
        let begin = talk.bench.now;
        assert!(talk.say(b"one small segment").is_empty());
        let answers = talk.bench.pass(Duration::from_millis(100));
        let [(at, _)] = &answers[..] else { panic!("{} frames", answers.len()) };
        assert_eq!(*at - begin, timeout);
    }
    // The retransmission timeout, which follows from measured times alone.
    let mut talk = Talk::new(SocketOptions::default());
    talk.bench.host.stack.write(talk.conn, b"lost").unwrap();
    talk.bench.receive();
    let begin = talk.bench.now;
    let rto = talk.bench.host.stack.info(talk.conn).unwrap().rto.unwrap();
    let times: Vec<Duration> =
        talk.bench.pass(rto).into_iter().map(|(at, _)| at - begin).filter(|at| *at == rto).collect();
    assert_eq!(times, [rto], "and not at a tick after it");
}

#[test]
fn a_closed_window_costs_few_packets_and_ends_when_the_reader_reads() {
    let mut world = World::new(Setup::default());
    let options = SocketOptions { receive_buffer: BufferSize::Fixed(16_384), ..SocketOptions::default() };
    let (client, server) = world.connected("10.0.0.2:80");
    world.b.stack.set_options(server, &options);
    const TOTAL: usize = 500_000;
    let (mut sent, mut received) = (0, Vec::new());
    let mut fill = move |world: &mut World| {
        while sent < TOTAL {
            let data = Bytes::from(file_bytes(sent as u64, 50_000));
            match world.a.stack.send(client, Payload::Shared(data)) {
                Ok(()) => sent += 50_000,
                Err(_) => break,
            }
        }
    };
    world.run_for(Duration::from_secs(2), |world| {
        fill(world);
        false
    });
    let frames = |world: &World| world.a.stack.counters().frames_out + world.b.stack.counters().frames_out;
    let before = frames(&world);
    // `exchange` fails when the two never come to rest.
    world.run_for(Duration::from_secs(50), |_| false);
    let cost = frames(&world) - before;
    assert!((4..=40).contains(&cost), "{cost} frames in 50 s");
    assert_eq!(world.a.stack.state(client), ConnState::Open { finished: false });
    let begin = world.now;
    let done = world.run_for(Duration::from_secs(120), |world| {
        fill(world);
        read_all(&mut world.b.stack, server, &mut received);
        received.len() == TOTAL
    });
    assert!(done && received == file_bytes(0, TOTAL), "{} bytes", received.len());
    assert!(world.now - begin < Duration::from_secs(5), "the update opens it, not the next probe");
}

/// A packet that a device reads at its leisure: what it said when it was handed over, and what it says now.
struct InDevice {
    token: TxToken,
    header: Vec<u8>,
    chunks: Vec<Chunk>,
    bytes: Vec<u8>,
}

impl InDevice {
    fn check(&self) {
        let now: Vec<u8> = self.chunks.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
        assert!(now == self.bytes, "a buffer was written while the device could read it");
    }
}

/// Takes all packets as a device does that has not read them yet.
fn take_packets(talk: &mut Talk, queue: &mut TxQueue, device: &mut Vec<InDevice>) {
    talk.bench.host.stack.poll_transmit(talk.bench.now, queue);
    while let Some(packet) = queue.front() {
        let chunks: Vec<Chunk> = packet.chunks().iter().map(|chunk| chunk.slice(0..chunk.len())).collect();
        let bytes = chunks.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
        device.push(InDevice { token: packet.meta.token, header: packet.header().to_vec(), chunks, bytes });
        queue.pop();
    }
}

#[test]
fn what_the_device_may_still_read_is_never_written() {
    let mut talk = Talk::new(SocketOptions::default());
    let mut queue = TxQueue::with_capacity(64);
    let (mut device, mut written) = (Vec::new(), 0u32);
    let start = talk.bench.host.stack.memory().pages;
    let mut feed = RxBatch::with_limit(1);
    for round in 0u32..40 {
        // Copies, so that pages of the stack's own pool are what the device reads.
        talk.bench.host.stack.write(talk.conn, &file_bytes(u64::from(round), 3_000)).unwrap();
        written += 3_000;
        take_packets(&mut talk, &mut queue, &mut device);
        device.iter().for_each(InDevice::check);
        // The peer acknowledges at once: the connection has no use for the pages, the device has.
        let ack = talk.ack + written;
        let frame = tcp4(segment(talk.seq, ack, Flags::ACK), &[]);
        let mut buffer = talk.bench.pool.take().unwrap();
        buffer.bytes_mut()[..frame.len()].copy_from_slice(&frame);
        feed.push(Frame::new(buffer.freeze(0..frame.len()), RxMeta::default())).unwrap();
        talk.bench.host.stack.handle_frames(talk.bench.now, &mut feed);
        assert_eq!(talk.bench.host.stack.unsent(talk.conn), 0, "round {round}");
    }
    assert!(talk.bench.host.stack.memory().pages.free + 30 <= start.free, "held pages are on no shelf");
    for packet in device.drain(..) {
        packet.check();
        talk.bench.host.stack.handle_completion(talk.bench.now, packet.token);
    }
    assert_eq!(
        talk.bench.host.stack.memory().pages.free,
        start.free,
        "and come back when the device is done"
    );
    // A retransmission has a header of its own, and the same bytes of payload.
    talk.bench.host.stack.write(talk.conn, &[7; 1_000]).unwrap();
    take_packets(&mut talk, &mut queue, &mut device);
    talk.bench.host.stack.handle_completion(talk.bench.now, device[0].token);
    let later = talk.bench.now + Duration::from_secs(3);
    while device.len() < 2 {
        let next = talk.bench.host.stack.poll_timeout().filter(|next| *next < later).expect("a timeout");
        talk.bench.now = talk.bench.now.max(next);
        talk.bench.host.stack.handle_timeout(talk.bench.now);
        take_packets(&mut talk, &mut queue, &mut device);
    }
    let [first, again] = &device[..] else { panic!("two packets") };
    assert_eq!(first.chunks[0].bytes().as_ptr(), again.chunks[0].bytes().as_ptr(), "no copy");
    assert_ne!(first.header.as_ptr(), again.header.as_ptr());
    device.iter().for_each(InDevice::check);
}

#[test]
fn a_flood_that_comes_in_does_not_starve_what_goes_out() {
    let setup = Setup::default();
    let budget = 32;
    let config = StackConfig { receive_budget: budget, ..setup.config[0].clone() };
    let mut bench = Bench::new(config);
    bench.receive();
    bench.ask(&arp(linerate_wire::arp::Operation::REQUEST, PEER4, HOST4));
    let echo = frame4(to_host4(Protocol::ICMPV4), &echo4(b"flood"));
    let mut batch = RxBatch::with_limit(512);
    let mut queue = TxQueue::with_capacity(64);
    for _ in 0..512 {
        let mut buffer = bench.pool.take().unwrap();
        buffer.bytes_mut()[..echo.len()].copy_from_slice(&echo);
        batch.push(Frame::new(buffer.freeze(0..echo.len()), RxMeta::default())).unwrap();
    }
    let (mut turns, mut answered) = (0, 0);
    while !batch.is_empty() {
        let before = batch.len();
        bench.host.stack.handle_frames(bench.now, &mut batch);
        assert!(before - batch.len() <= budget, "a call has its budget");
        bench.host.stack.poll_transmit(bench.now, &mut queue);
        let sent = queue.len();
        while !queue.is_empty() {
            queue.pop();
        }
        assert!(sent > 0, "every turn sends, however much waits to be received");
        answered += sent;
        turns += 1;
    }
    assert_eq!(turns, 512 / budget);
    assert!(answered >= 512 / 2, "{answered}");
}
