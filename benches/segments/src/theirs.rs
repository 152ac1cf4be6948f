//! Two smoltcp interfaces and a wire.

use crate::{BUFFER, MSS, Moved, RECEIVED, data};
use segments::WIRE;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Frames on their way, and spent buffers to be used again.
#[derive(Default)]
struct Frames {
    full: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

type Shared = Rc<RefCell<Frames>>;

struct Wire {
    sums: bool,
    /// Frames that it gives in one turn, and how many of them are left.
    batch: usize,
    left: usize,
    /// Frames that were sent.
    sent: Rc<Cell<u64>>,
    arriving: Shared,
    leaving: Shared,
}

struct Received {
    frame: Vec<u8>,
    from: Shared,
}

struct Room {
    to: Shared,
    sent: Rc<Cell<u64>>,
}

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(&self.frame);
        self.from.borrow_mut().spare.push(self.frame);
        result
    }
}

impl TxToken for Room {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut frame = self.to.borrow_mut().spare.pop().unwrap_or_else(|| Vec::with_capacity(2_048));
        frame.resize(len, 0);
        let result = f(&mut frame);
        self.to.borrow_mut().full.push_back(frame);
        self.sent.set(self.sent.get() + 1);
        result
    }
}

impl Wire {
    fn room(&self) -> Room {
        Room { to: Rc::clone(&self.leaving), sent: Rc::clone(&self.sent) }
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Room)> {
        if self.leaving.borrow().full.len() >= WIRE || self.left == 0 {
            return None;
        }
        let frame = self.arriving.borrow_mut().full.pop_front()?;
        self.left -= 1;
        Some((Received { frame, from: Rc::clone(&self.arriving) }, self.room()))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Room> {
        (self.leaving.borrow().full.len() < WIRE).then(|| self.room())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1_514;
        if !self.sums {
            let mut checksum = ChecksumCapabilities::ignored();
            // As ours: the IPv4 header is always summed by the stack.
            checksum.ipv4 = Checksum::Both;
            capabilities.checksum = checksum;
        }
        capabilities
    }
}

struct Host {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
}

impl Host {
    fn new(last: u8, sums: bool, arriving: &Shared, leaving: &Shared) -> Host {
        let batch = if last == 1 { WIRE } else { RECEIVED };
        let (arriving, leaving) = (Rc::clone(arriving), Rc::clone(leaving));
        let mut wire = Wire { sums, batch, left: batch, sent: Rc::default(), arriving, leaving };
        let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, last]).into());
        let mut interface = Interface::new(config, &mut wire, Instant::from_millis(1));
        interface.update_ip_addrs(|all| {
            all.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24)).expect("room");
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let handle = sockets.add(Socket::new(buffer(), buffer()));
        Host { wire, interface, sockets, handle }
    }

    fn poll(&mut self, now: Instant) {
        self.wire.left = self.wire.batch;
        self.interface.poll(now, &mut self.wire, &mut self.sockets);
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }
}

#[inline(never)]
fn sender(host: &mut Host, data: &[u8], sent: &mut usize, all: usize, now: Instant) {
    let socket = host.socket();
    while *sent < all && socket.can_send() {
        *sent += socket.send_slice(&data[..data.len().min(all - *sent)]).expect("it is open");
    }
    host.poll(now);
}

#[inline(never)]
fn receiver(host: &mut Host, received: &mut usize, now: Instant) {
    host.poll(now);
    let socket = host.socket();
    while socket.can_recv() {
        *received += socket.recv(|bytes| (bytes.len(), bytes.len())).expect("it is open");
    }
}

/// Moves `count` full segments.
pub fn run(sums: bool, count: usize) -> Moved {
    let (there, back) = (Shared::default(), Shared::default());
    let mut a = Host::new(1, sums, &back, &there);
    let mut b = Host::new(2, sums, &there, &back);
    b.socket().listen(80).expect("a free port");
    let handle = a.handle;
    a.sockets
        .get_mut::<Socket<'_>>(handle)
        .connect(a.interface.context(), (IpAddress::v4(10, 0, 0, 2), 80), 49_152)
        .expect("a route");
    let mut now = Instant::from_millis(1);
    let (mut sent, mut received) = (0, 0);
    let all = count * MSS;
    let data = data();
    while received < all {
        sender(&mut a, &data, &mut sent, all, now);
        while {
            receiver(&mut b, &mut received, now);
            !there.borrow().full.is_empty()
        } {}
        now += smoltcp::time::Duration::from_micros(100);
    }
    Moved { segments: a.wire.sent.get(), acks: b.wire.sent.get() }
}
