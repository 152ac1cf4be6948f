//! The GEM driver on QEMU's own model of the controller, over its test protocol: no processor runs, and the test is the board.
//!
//! `cargo test -p linerate-nic --test gem_qemu -- --ignored` wants `qemu-system-aarch64`.

use linerate_nic::gem::{Condition, Gem, Screener, ScreenerCounts, Settings, StoppedQueue, is_gem, open};
use linerate_nic::{
    Bus, Capabilities, ChecksumRequest, Chunk, Device as _, Dma, Pool, QueuePair as _, RxBatch, TxQueue,
    TxToken,
};
use linerate_wire::units::Instant;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The first of four controllers, and memory of the machine for descriptors and buffers.
const REGISTERS: u64 = 0xFF0B_0000;
const DESCRIPTORS: u64 = 0x0100_0000;
const DESCRIPTORS_LEN: usize = 0x1_0000;
const BUFFERS: u64 = 0x0200_0000;

/// Where the memory of pools lies: who looks for leaks finds it here.
static REGIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

struct Machine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Memory of the test, its length, and where the machine has it.
    regions: Vec<(u64, u64, u64)>,
}

impl Machine {
    fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").expect("it listens");
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("it answers") > 0, "{command}: it is gone");
            if let Some(answer) = line.strip_prefix("OK") {
                return answer.trim().to_owned();
            }
            assert!(!line.starts_with("FAIL"), "{command}: {line}");
        }
    }

    fn word(&mut self, address: u64) -> u32 {
        let answer = self.ask(&format!("readl {address:#x}"));
        u64::from_str_radix(answer.trim_start_matches("0x"), 16).expect("a number") as u32
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

#[derive(Clone)]
struct Board(Arc<Mutex<Machine>>);

impl Board {
    /// With a wire whose other end is the socket.
    fn new() -> (Board, UdpSocket) {
        let wire = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = |socket: &UdpSocket| socket.local_addr().expect("an address").port();
        // A port that was free a moment ago.
        let free = port(&UdpSocket::bind("127.0.0.1:0").expect("a port"));
        wire.connect(("127.0.0.1", free)).expect("a port");
        wire.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let end = |name, port| format!("{name}.type=inet,{name}.host=127.0.0.1,{name}.port={port}");
        let netdev = format!("dgram,id=n0,{},{}", end("local", free), end("remote", port(&wire)));
        let mut child = Command::new("qemu-system-aarch64")
            .args(["-M", "xlnx-zcu102", "-display", "none", "-qtest", "stdio", "-netdev", &netdev])
            .args(["-net", "nic,netdev=n0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("qemu-system-aarch64 is installed");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let machine = Machine { child, input, output: BufReader::new(output), regions: Vec::new() };
        (Board(Arc::new(Mutex::new(machine))), wire)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Machine) -> R) -> R {
        work(&mut self.0.lock().expect("nobody panicked while holding it"))
    }

    fn pool(&self, count: usize, size: usize) -> Pool {
        let len = count * size.next_multiple_of(64) + 64;
        let memory: &'static mut [u8] = Box::leak(vec![0; len].into_boxed_slice());
        let start = memory.as_ptr() as u64;
        REGIONS.lock().expect("nobody panicked while holding it").push(start as usize);
        // Lines lie as they do in the test's memory.
        self.with(|machine| {
            let there = BUFFERS + 0x100_0000 * machine.regions.len() as u64 + start % 64;
            machine.regions.push((start, len as u64, there));
        });
        Pool::over(memory, size, 64).expect("room for as many")
    }
}

impl Bus for Board {
    fn read(&self, register: u32) -> u32 {
        self.load(REGISTERS + u64::from(register))
    }

    fn write(&self, register: u32, value: u32) {
        self.store(REGISTERS + u64::from(register), value);
    }

    fn load(&self, address: u64) -> u32 {
        self.with(|machine| machine.word(address))
    }

    fn store(&self, address: u64, value: u32) {
        self.with(|machine| machine.ask(&format!("writel {address:#x} {value:#x}")));
    }
}

impl Dma for Board {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        let at = bytes.as_ptr() as u64;
        self.with(|machine| {
            let mut regions = machine.regions.iter();
            let region = regions.find(|(start, len, _)| (*start..start + len).contains(&at));
            region.map(|(start, _, there)| there + at - start)
        })
    }

    fn clean(&self, bytes: &[u8]) {
        let Some(address) = self.bus_address(bytes) else { return };
        let mut hex = String::new();
        bytes.iter().for_each(|byte| write!(hex, "{byte:02x}").expect("it is written"));
        self.with(|machine| machine.ask(&format!("write {address:#x} {} 0x{hex}", bytes.len())));
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        let Some(address) = self.bus_address(bytes) else { return };
        let answer = self.with(|machine| machine.ask(&format!("read {address:#x} {}", bytes.len())));
        let hex = answer.trim_start_matches("0x").as_bytes();
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
            let pair = std::str::from_utf8(pair).expect("digits");
            *byte = u8::from_str_radix(pair, 16).expect("digits");
        }
    }
}

fn settings() -> Settings {
    let screeners = Some(ScreenerCounts::ZYNQMP);
    Settings { receive_ring: 32, transmit_ring: 32, screeners, ..Settings::default() }
}

/// UDP over IPv4 to a port, without a checksum, and the checksum that it should have.
fn datagram(mac: [u8; 6], port: u16) -> Vec<u8> {
    let mut bytes =
        [&mac[..], &[2, 0, 0, 0, 0, 2], &[8, 0, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
    bytes.extend([10, 0, 0, 2, 10, 0, 0, 1, 0x10, 0, (port >> 8) as u8, port as u8, 0, 40, 0, 0]);
    bytes.resize(74, 0x5A);
    bytes
}

/// What has come to a queue, as soon as something has.
fn receive(queue: &mut impl linerate_nic::QueuePair) -> Vec<Vec<u8>> {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    let mut batch = RxBatch::with_limit(64);
    for _ in 0..100 {
        let now = Instant::ZERO + START.get_or_init(std::time::Instant::now).elapsed();
        if queue.receive(now, &mut batch).expect("it works") > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    core::iter::from_fn(|| batch.pop()).map(|frame| frame.data.bytes().to_vec()).collect()
}

fn send(device: &mut impl linerate_nic::QueuePair, frame: &[u8], payload: Option<Chunk>, checksum: bool) {
    let mut out = TxQueue::with_capacity(1);
    let packet = out.vacant().expect("room");
    packet.header_mut(frame.len()).copy_from_slice(frame);
    packet.meta.checksum = checksum.then_some(ChecksumRequest { start: 34, offset: 6 });
    packet.meta.token = TxToken(7);
    payload.into_iter().for_each(|chunk| packet.push_chunk(chunk).expect("room"));
    out.commit();
    assert_eq!(device.transmit(Instant::from_millis(1), &mut out), Ok(1));
    assert_eq!(device.poll_completion(), Some(TxToken(7)), "it works within the write");
}

#[test]
#[ignore = "starts an emulator"]
fn one_queue_sends_and_receives() {
    let (board, wire) = Board::new();
    assert!(is_gem(&board));
    let (received, headers, payload) = (board.pool(64, 1_600), board.pool(32, 192), board.pool(2, 1_408));
    let mut device =
        Gem::open(board.clone(), (DESCRIPTORS, DESCRIPTORS_LEN), received.clone(), &headers, &settings())
            .expect("it opens");
    assert!(device.link().is_up && device.link().is_full_duplex);
    assert_eq!(device.control().phy(), 23);
    let mac = device.mac().0;
    let mut bytes = [0; 2_048];
    for round in 0..100u8 {
        let mut buffer = payload.take().expect("it came back");
        buffer.bytes_mut().fill(round);
        let chunk = Chunk::Pool(buffer.freeze(0..1_400));
        send(&mut device, &datagram([0xFF; 6], 9)[..42], Some(chunk), false);
        let len = wire.recv(&mut bytes).expect("a frame");
        assert_eq!((len, bytes[42], bytes[1_441]), (1_442, round, round), "{round}");
        let mut sent = datagram(mac, 9);
        sent[73] = round;
        wire.send(&sent).expect("it listens");
        assert_eq!(receive(&mut device), [sent], "{round}");
    }
    // A checksum that the device fills in: 0x1000 + 9 + 2 * 40 + 17 + 0x5A5A * 16 + 10.0.0.2 + 10.0.0.1, complemented.
    send(&mut device, &datagram([0xFF; 6], 9), None, true);
    wire.recv(&mut bytes).expect("a frame");
    let words = [0x1000u32, 9, 40, 40, 17, 0x0A00, 2, 0x0A00, 1].into_iter().chain([0x5A5A; 16]);
    let sum = words.sum::<u32>();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    assert_eq!(u16::from_be_bytes([bytes[40], bytes[41]]), !((sum & 0xFFFF) + (sum >> 16)) as u16);
    let off = Capabilities { gather: true, ..Capabilities::NONE };
    device.enable(off).expect("it can");
    drop(device);
    assert_eq!((received.free(), headers.free()), (64, 32));
}

#[test]
#[ignore = "starts an emulator"]
fn an_interrupt_comes_and_goes_and_a_full_ring_fills_again() {
    let (board, wire) = Board::new();
    let (received, headers) = (board.pool(128, 1_600), board.pool(32, 192));
    let memory = (DESCRIPTORS, DESCRIPTORS_LEN);
    let mut device = Gem::open(board, memory, received, &headers, &settings()).expect("it opens");
    let (interrupt, mac) = (device.interrupt(), device.mac().0);
    device.receive(Instant::from_millis(1), &mut RxBatch::with_limit(1)).expect("it works");
    assert!(!interrupt.handle() && !device.arm(Instant::from_millis(1)));
    // More than the ring holds: the others wait in the emulator until there are buffers again.
    for number in 0..80u8 {
        let mut sent = datagram(mac, 9);
        sent[73] = number;
        wire.send(&sent).expect("it listens");
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(interrupt.handle() && !interrupt.handle());
    let mut came = Vec::new();
    while came.len() < 80 {
        let more = receive(&mut device);
        assert!(!more.is_empty(), "{} of 80", came.len());
        came.extend(more);
    }
    let numbers: Vec<u8> = came.iter().map(|frame| frame[73]).collect();
    assert_eq!(numbers, (0..80).collect::<Vec<_>>());
    assert!(device.stats().rx_no_buffer > 0 && device.stats().rx_resets == 0);
}

#[test]
#[ignore = "starts an emulator"]
fn screeners_choose_between_two_queues() {
    let (board, wire) = Board::new();
    let settings = Settings { queues: 2, priority_poll: Some(Duration::from_millis(1)), ..settings() };
    let (mut control, queues) =
        open(board.clone(), (DESCRIPTORS, DESCRIPTORS_LEN), &settings).expect("it opens");
    let start = |queue: StoppedQueue<Board>| {
        queue.start(board.pool(64, 1_600), &board.pool(32, 192)).expect("it starts")
    };
    let mut queues = queues.into_iter().map(start);
    let (mut first, mut second) = (queues.next().expect("one"), queues.next().expect("two"));
    let mac = control.mac().0;
    for condition in [Condition::UdpPort(5_001), Condition::EtherType(0x88B5), Condition::TrafficClass(184)] {
        control.set_screeners(&[Screener { condition, queue: 1 }]).expect("it can");
        let mut sent = datagram(mac, 5_001);
        match condition {
            Condition::EtherType(_) => sent[12..14].copy_from_slice(&[0x88, 0xB5]),
            Condition::TrafficClass(class) => (sent[15], sent[37]) = (class, 2),
            _ => {}
        }
        wire.send(&sent).expect("it listens");
        assert_eq!(receive(&mut second), [sent], "{condition:?}");
        let other = datagram(mac, 80);
        wire.send(&other).expect("it listens");
        assert_eq!(receive(&mut first), [other], "{condition:?}");
    }
    let mut bytes = [0; 2_048];
    for queue in [&mut first, &mut second] {
        send(queue, &datagram([0xFF; 6], 9), None, false);
        assert_eq!(wire.recv(&mut bytes).expect("a frame"), 74);
    }
    // Queue 0 is full, queue 1 is not: the emulator goes on into descriptors that are not its own, which the driver finds out.
    for number in 0..40u8 {
        let mut sent = datagram(mac, 80);
        sent[73] = number;
        wire.send(&sent).expect("it listens");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!((1..=32).contains(&receive(&mut first).len()));
    let other = datagram(mac, 81);
    let lives = (0..20).any(|_| {
        wire.send(&other).expect("it listens");
        receive(&mut first) == [other.clone()]
    });
    assert!(lives && first.stats().rx_resets > 0, "{:?}", first.stats());
}
