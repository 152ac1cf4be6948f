//! The least device there can be: a controller that gives and takes one frame at a time, as over SPI or from a FIFO
//! (docs/driver.md). All that it needs from its board is [`Controller`].

use core::time::Duration;
use linerate_nic::{
    Capabilities, Device, DeviceError, Frame, MacAddr, Pool, Port, PortConfig, QueuePair, RxBatch, RxMeta,
    TxQueue, TxToken,
};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{
    ConnId, ConnState, Engine as _, ListenAddr, ListenOptions, Owner, SocketOptions, Transport as _,
};
use linerate_wire::units::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The longest frame: a packet of the MTU with its Ethernet header.
const MTU: usize = 1_500;
const LONGEST: usize = 14 + MTU;

/// What the board supplies.
trait Controller {
    /// Length of the frame that is next, if one waits.
    fn next(&mut self) -> Option<usize>;
    /// Reads that frame; with no room it is thrown away.
    fn read(&mut self, into: &mut [u8]);
    /// Sends a frame; false while there is no room.
    fn write(&mut self, frame: &[u8]) -> bool;
}

/// The driver.
struct Fifo<C> {
    controller: C,
    mac: MacAddr,
    pool: Pool,
    /// A frame in one piece, as the controller takes it.
    out: [u8; LONGEST],
    /// Packets that have left and of which the stack wants to hear.
    left: VecDeque<TxToken>,
    is_full: bool,
}

impl<C: Controller> Device for Fifo<C> {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        MTU
    }

    // Checksums and segmentation are the port's work then.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn enable(&mut self, _wanted: Capabilities) -> Result<(), DeviceError> {
        Ok(())
    }
}

impl<C: Controller> QueuePair for Fifo<C> {
    fn enabled(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn receive(&mut self, _now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        let mut count = 0;
        while !batch.is_full() {
            let Some(len) = self.controller.next() else { break };
            if len > LONGEST {
                self.controller.read(&mut []);
                continue;
            }
            // Without a buffer the frame waits where it is.
            let Some(mut buffer) = self.pool.take() else { break };
            self.controller.read(&mut buffer.bytes_mut()[..len]);
            // There was room: nothing comes back.
            let _ = batch.push(Frame::new(buffer.freeze(0..len), RxMeta::default()));
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut count = 0;
        self.is_full = false;
        while let Some(packet) = queue.front() {
            // Longer than the MTU is nothing that the stack sends.
            if let Some(len) = packet.linearise(&mut self.out)
                && !self.controller.write(&self.out[..len])
            {
                self.is_full = true;
                break;
            }
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

    // To be called with the interrupt let through: what came before it is seen here.
    fn arm(&mut self, _now: Instant) -> bool {
        let has_frame = self.controller.next().is_some() && self.pool.free() > 0;
        // A controller that interrupts when there is room again needs no asking for it.
        has_frame || self.is_full || !self.left.is_empty()
    }
}

/// Frames on their way.
type Cable = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// A controller on a cable, with room for a few frames.
struct Wire {
    from: Cable,
    to: Cable,
}

impl Controller for Wire {
    fn next(&mut self) -> Option<usize> {
        self.from.borrow().front().map(Vec::len)
    }

    fn read(&mut self, into: &mut [u8]) {
        let frame = self.from.borrow_mut().pop_front().expect("one waits");
        if !into.is_empty() {
            into.copy_from_slice(&frame);
        }
    }

    fn write(&mut self, frame: &[u8]) -> bool {
        let has_room = self.to.borrow().len() < 3;
        if has_room {
            self.to.borrow_mut().push_back(frame.to_vec());
        }
        has_room
    }
}

/// A host with few buffers.
fn host(last: u8, from: &Cable, to: &Cable) -> (Node<Fifo<Wire>>, Pool) {
    let pool = Pool::new(8, 2_048);
    let device = Fifo {
        controller: Wire { from: from.clone(), to: to.clone() },
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        pool: pool.clone(),
        out: [0; LONGEST],
        left: VecDeque::new(),
        is_full: false,
    };
    let address = format!("10.0.0.{last}/24").parse().expect("an address");
    let config = StackConfig { addresses: vec![address], ..StackConfig::default() };
    let pools = StackPools::for_memory(config.memory).with_receive(pool.clone());
    let port = Port::new(device, PortConfig::default()).expect("a port");
    (Node::new(port, config, [last; 32], pools, NodeConfig::default()), pool)
}

#[test]
fn a_transfer_over_a_fifo_arrives_whole_and_gives_every_buffer_back() {
    let (there, back) = (Cable::default(), Cable::default());
    let ((mut a, pool_a), (mut b, pool_b)) = (host(1, &back, &there), host(2, &there, &back));
    let options = ListenOptions::default();
    let listener =
        b.stack.listen(Owner(1), ListenAddr { ip: None, port: 80 }, &options).expect("a free port");
    let to = "10.0.0.2:80".parse().expect("an address");
    let client = a.stack.connect(Owner(1), None, to, &SocketOptions::default()).expect("a connection");

    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    let (mut sent, mut got, mut server): (usize, Vec<u8>, Option<ConnId>) = (0, Vec::new(), None);
    let mut now = Instant::ZERO;
    for turn in 0..20_000 {
        // Longer than any frame may be: thrown away.
        if turn == 10 {
            there.borrow_mut().push_back(vec![0; LONGEST + 1]);
        }
        for node in [&mut a, &mut b] {
            node.input(now).expect("a device");
            while node.stack.poll_event().is_some() {}
        }
        let room = a.stack.writable(client).min(bytes.len() - sent);
        if room > 0 {
            a.stack.write(client, &bytes[sent..sent + room]).expect("what is writable is written");
            sent += room;
        }
        server = server.or_else(|| b.stack.accept(listener));
        while let Some(server) = server.filter(|server| b.stack.readable(*server) > 0) {
            let piece = b.stack.peek(server);
            got.extend_from_slice(piece);
            let len = piece.len();
            b.stack.consume(server, len);
        }
        a.output(now).expect("a device");
        b.output(now).expect("a device");
        now += Duration::from_micros(100);
        if got.len() == bytes.len() {
            break;
        }
    }
    assert!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
    assert_eq!(a.stack.state(client), ConnState::Open { finished: false });
    assert_eq!((pool_a.free(), pool_b.free()), (8, 8));
}
