//! `linerate serve --device uio:NAME` on an interface made of files, with a client's stack at the other end of its cable. Needs neither
//! root nor hardware.

#[path = "../../../linux/tests/uio/model.rs"]
mod model;

use linerate_linux::clock::MonotonicClock;
use linerate_nic::{Capabilities, Chunk, Link, Pool, Port, PortConfig, QueuePair as _, RxBatch, TxQueue};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{ConnId, ConnState, Engine as _, Owner, SocketOptions, Transport as _};
use model::{Folder, Nic};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the file that is served.
const LEN: usize = 3 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// The cable's other end: a stack with a connection, and the cable to the interface.
struct Client {
    node: Node<Link>,
    cable: Link,
    pool: Pool,
    out: TxQueue,
    batch: RxBatch,
    clock: MonotonicClock,
    conn: ConnId,
    /// What is to be sent once it is open.
    request: Option<Vec<u8>>,
    received: Vec<u8>,
}

impl Client {
    fn new(request: &[u8]) -> Client {
        let pool = Pool::new(2_048, 2_048);
        let (link, cable) = Link::pair(&pool, 1_500, Capabilities::NONE, 256);
        let port = Port::new(link, PortConfig::default()).expect("a port");
        let addresses = vec!["10.9.0.1/24".parse().expect("an address")];
        let config = StackConfig { addresses, dad_transmits: 0, ..StackConfig::default() };
        let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
        let mut node = Node::new(port, config, [1; 32], pools, NodeConfig::default());
        // The stack begins at the clock's time, which is not zero.
        let clock = MonotonicClock::new();
        node.input(clock.now()).expect("the link works");
        let server = "10.9.0.4:80".parse().expect("an address");
        let conn = node.stack.connect(Owner(1), None, server, &SocketOptions::default()).expect("a route");
        Client {
            node,
            cable,
            pool,
            out: TxQueue::with_capacity(256),
            batch: RxBatch::with_limit(256),
            clock,
            conn,
            request: Some(request.to_vec()),
            received: Vec::new(),
        }
    }

    /// Frames over the cable, and a turn of the stack; true once the server has said everything.
    fn turn(&mut self, nic: &mut Nic) -> bool {
        let now = self.clock.now();
        while let Some(packet) = self.out.vacant()
            && let Some((_, frame)) = nic.left.pop_front()
        {
            packet.header_mut(14).copy_from_slice(&frame[..14]);
            packet.push_chunk(Chunk::Shared(frame[14..].to_vec().into())).expect("one piece");
            self.out.commit();
        }
        self.cable.transmit(now, &mut self.out).expect("the cable holds");
        self.node.input(now).expect("the link works");
        while self.node.stack.poll_event().is_some() {}
        let stack = &mut self.node.stack;
        if matches!(stack.state(self.conn), ConnState::Open { .. })
            && let Some(request) = self.request.take()
        {
            stack.write(self.conn, &request).expect("room for a request");
        }
        while !stack.peek(self.conn).is_empty() {
            let len = stack.peek(self.conn).len();
            self.received.extend_from_slice(stack.peek(self.conn));
            stack.consume(self.conn, len);
        }
        self.node.output(now).expect("the link works");
        self.cable.receive(now, &mut self.batch).expect("the cable holds");
        while let Some(frame) = self.batch.pop() {
            // A frame for which there is no room is lost, as on a wire.
            nic.arrive(0, frame.data.bytes().to_vec());
        }
        assert!(self.pool.free() > 0, "buffers are lost");
        !matches!(
            self.node.stack.state(self.conn),
            ConnState::Connecting | ConnState::Open { finished: false }
        )
    }
}

fn serve(dir: &Path, device: &str, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("serve")
        .arg(dir)
        .args(["--device", device, "--address", "10.9.0.4/24", "--queues", "1"])
        .args(["--http-port", "80", "--ftp-port", "0", "--iperf3-port", "0"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// Waits for the end of the server while the hardware works.
fn end(mut server: Child, nic: &mut Nic) -> Output {
    let until = Instant::now() + PATIENCE;
    while server.try_wait().expect("it can be waited for").is_none() {
        assert!(Instant::now() < until, "it does not end");
        nic.step();
        std::thread::sleep(Duration::from_micros(50));
    }
    server.wait_with_output().expect("its output")
}

fn download(name: &str, more: &[&str]) {
    let folder = Folder::new(name, "linerate-nic", 16 << 20);
    let served = folder.path().join("served");
    fs::create_dir_all(&served).expect("a folder is made");
    let content: Vec<u8> = (0..LEN as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(served.join("file"), &content).expect("a file is written");
    let mut nic = Nic::new(&folder);
    let device = format!("uio:linerate-nic@{}", folder.path().display());
    let mut server = serve(&served, &device, more);
    let mut client = Client::new(b"GET /file HTTP/1.1\r\nHost: linerate\r\nConnection: close\r\n\r\n");
    let until = Instant::now() + PATIENCE;
    loop {
        let any = nic.step();
        if client.turn(&mut nic) && !client.received.is_empty() {
            break;
        }
        let has_ended = server.try_wait().expect("it can be waited for").is_some();
        if has_ended || Instant::now() > until {
            let state = client.node.stack.state(client.conn);
            let _ = server.kill();
            let output = server.wait_with_output().expect("its output");
            panic!("{} bytes came, {state:?}: {}", client.received.len(), text(&output));
        }
        if !any {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    let received = &client.received;
    let head = received.windows(4).position(|four| four == b"\r\n\r\n").expect("the end of the headers");
    let headers = String::from_utf8_lossy(&received[..head]);
    assert!(headers.starts_with("HTTP/1.1 200 "), "{headers}");
    assert!(received[head + 4..] == content, "{} bytes of {LEN}, or others", received.len() - head - 4);
    let pid = Pid::from_child(&server);
    kill_process(pid, Signal::TERM).expect("it is there");
    let output = end(server, &mut nic);
    assert!(output.status.success(), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("UIO device linerate-nic, address "), "{said}");
    assert!(nic.raised > 5, "it slept, and interrupts woke it: {}", nic.raised);
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_file_comes_over_http_byte_by_byte() {
    download("http", &[]);
}

#[test]
fn the_same_in_small_packets() {
    download("small", &["--mtu", "1280", "--offload", "none"]);
}

#[test]
fn what_is_missing_is_told() {
    let folder = Folder::new("missing-cli", "linerate-nic", 16 << 20);
    let mut nic = Nic::new(&folder);
    let at = folder.path().display().to_string();
    let output = end(serve(folder.path(), &format!("uio:other@{at}"), &[]), &mut nic);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no UIO device other in") && said.contains("linerate-nic"), "{said}");
    folder.write("sys/class/u-dma-buf/udmabuf0/size", "65536");
    let output = end(serve(folder.path(), &format!("uio:linerate-nic@{at}"), &[]), &mut nic);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the DMA buffer udmabuf0 has 65536 bytes: 1 queues need"), "{said}");
}
