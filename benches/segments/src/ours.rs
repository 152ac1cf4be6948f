//! Two of our nodes and a wire.

use crate::{BUFFER, MSS, WIRE};
use linerate_nic::{
    Capabilities, ChecksumStatus, Device, DeviceError, Frame, MacAddr, Pool, Port, PortConfig, QueuePair,
    RxBatch, RxMeta, TxQueue, TxToken,
};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{
    BufferSize, ConnId, Engine as _, ListenAddr, ListenOptions, Owner, Payload, SendError, SocketOptions,
    Transport as _,
};
use linerate_wire::units::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

type Frames = Rc<RefCell<VecDeque<Frame>>>;

static DATA: [u8; 32 << 10] = [0x5a; 32 << 10];

/// One end of the wire.
struct Wire {
    last: u8,
    sums: bool,
    pool: Pool,
    arriving: Frames,
    leaving: Frames,
    left: VecDeque<TxToken>,
}

impl Device for Wire {
    fn mac(&self) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, self.last])
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        let has = !self.sums;
        Capabilities { tx_checksum4: has, tx_checksum6: has, rx_checksum: has, ..Capabilities::NONE }
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl QueuePair for Wire {
    fn enabled(&self) -> Capabilities {
        self.capabilities()
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut arriving = self.arriving.borrow_mut();
        let mut count = 0;
        while !batch.is_full()
            && let Some(frame) = arriving.pop_front()
        {
            batch.push(frame).expect("room");
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut leaving = self.leaving.borrow_mut();
        let mut count = 0;
        while leaving.len() < WIRE
            && let Some(packet) = queue.front()
        {
            let Some(mut buffer) = self.pool.take() else { break };
            let len = packet.linearise(buffer.bytes_mut()).expect("it fits");
            let checksum = if self.sums { ChecksumStatus::Unchecked } else { ChecksumStatus::Good };
            let meta = RxMeta { checksum, ..RxMeta::default() };
            leaving.push_back(Frame::new(buffer.freeze(0..len), meta));
            if packet.meta.token != TxToken(0) {
                self.left.push_back(packet.meta.token);
            }
            queue.pop();
            count += 1;
        }
        Ok(count)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.left.pop_front()
    }
}

fn node(last: u8, sums: bool, pool: &Pool, arriving: &Frames, leaving: &Frames) -> Node<Wire> {
    let device = Wire {
        last,
        sums,
        pool: pool.clone(),
        arriving: Rc::clone(arriving),
        leaving: Rc::clone(leaving),
        left: VecDeque::with_capacity(WIRE),
    };
    let mut port = Port::new(device, PortConfig::default()).expect("a port");
    // Segments arrive one by one, as at the other stack.
    port.set_offloads(Capabilities { rx_coalescing: false, ..Capabilities::ALL }).expect("switches");
    let config = StackConfig {
        addresses: vec![format!("10.0.0.{last}/24").parse().expect("an address")],
        dad_transmits: 0,
        ipv6: false,
        max_super_segment: 1_500,
        ..StackConfig::default()
    };
    let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
    Node::new(port, config, [last; 32], pools, NodeConfig::default())
}

/// Moves `count` full segments; returns how many the receiver counted.
pub fn run(sums: bool, count: usize) -> u64 {
    let pool = Pool::new(1_024, 2_048);
    let (there, back) = (Frames::default(), Frames::default());
    let mut a = node(1, sums, &pool, &back, &there);
    let mut b = node(2, sums, &pool, &there, &back);
    let socket = SocketOptions {
        send_buffer: BufferSize::Fixed(BUFFER),
        receive_buffer: BufferSize::Fixed(BUFFER),
        ..SocketOptions::default()
    };
    let options = ListenOptions { socket: socket.clone(), ..ListenOptions::default() };
    let listener =
        b.stack.listen(Owner(1), ListenAddr { ip: None, port: 80 }, &options).expect("a free port");
    let to = "10.0.0.2:80".parse().expect("an address");
    let client = a.stack.connect(Owner(1), None, to, &socket).expect("a route");
    let mut server: Option<ConnId> = None;
    let mut now = Instant::from_millis(1);
    let (mut sent, mut received) = (0, 0);
    let all = count * MSS;
    while received < all {
        for node in [&mut a, &mut b] {
            node.input(now).expect("the wire is there");
            while node.stack.poll_event().is_some() {}
        }
        server = server.or_else(|| b.stack.accept(listener));
        while server.is_some() && sent < all {
            let payload = Payload::Static(&DATA[..DATA.len().min(all - sent)]);
            let len = payload.len() as usize;
            match a.stack.send(client, payload) {
                Ok(()) => sent += len,
                Err(SendError::Full) => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        while let Some(server) = server {
            let len = b.stack.peek(server).len();
            if len == 0 {
                break;
            }
            b.stack.consume(server, len);
            received += len;
        }
        for node in [&mut a, &mut b] {
            node.output(now).expect("the wire is there");
        }
        // 64 segments in 0.75 ms are 1 Gb/s.
        now += std::time::Duration::from_micros(100);
    }
    b.stack.counters().tcp_in
}
