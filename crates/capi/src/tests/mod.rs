//! Tests of the C functions, called as C calls them: two stacks joined by callbacks, in virtual time.

mod datagrams;
mod device;
mod families;
mod misuse;
mod options;
mod streams;

use crate::*;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use libc::{iovec, pollfd, sockaddr, sockaddr_in, socklen_t, ssize_t};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

/// Frames that one direction of the cable holds.
const CABLE: usize = 64;
/// Virtual time of one step of the world.
const STEP_NS: u64 = 100_000;

/// Frames on their way, with what was asked of the device for them.
type Frames = Rc<RefCell<VecDeque<(Vec<u8>, lr_tx_meta)>>>;

/// One end of the cable: what a driver's `user` points to.
struct End {
    /// LR_DEVICE_... bits of the device.
    capabilities: u32,
    incoming: Frames,
    outgoing: Frames,
    /// Packets sent and not yet counted as completed.
    uncounted: usize,
    /// The stack that calls, to see that it refuses to be called.
    stack: *mut lr_stack,
    /// What that call returned.
    reentered: Option<c_int>,
    /// Frames to lose next.
    lose: usize,
    /// What transmit and receive answer instead of doing anything, if not 0.
    answers: (c_int, ssize_t),
}

unsafe extern "C" fn transmit(
    user: *mut c_void,
    pieces: *const iovec,
    count: usize,
    meta: *const lr_tx_meta,
) -> c_int {
    // SAFETY: `user` is the `End` that the device was made with; nothing else refers to it during a turn.
    let end = unsafe { &mut *user.cast::<End>() };
    if !end.stack.is_null() {
        // SAFETY: the live stack whose turn this is.
        end.reentered = Some(unsafe { lr_stack_turn(end.stack, 0) });
    }
    if end.answers.0 != 0 {
        return end.answers.0;
    }
    // SAFETY: the stack's live structure.
    let meta = unsafe { *meta };
    let may = |bit| end.capabilities & bit != 0;
    assert!(may(LR_DEVICE_TSO) || meta.segmentation == LR_SEGMENT_NONE, "this device cannot segment");
    assert!(may(LR_DEVICE_TX_CHECKSUM) || meta.checksum_offset == 0, "this device cannot sum");
    let mut frame = Vec::new();
    for index in 0..count {
        // SAFETY: the stack hands over `count` pieces with as many bytes as they say.
        let bytes = unsafe {
            let piece = &*pieces.add(index);
            core::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len)
        };
        frame.extend_from_slice(bytes);
    }
    if end.outgoing.borrow().len() >= CABLE {
        return -libc::EAGAIN;
    }
    end.uncounted += 1;
    if end.lose > 0 {
        end.lose -= 1;
    } else {
        end.outgoing.borrow_mut().push_back((frame, meta));
    }
    0
}

unsafe extern "C" fn receive(
    user: *mut c_void,
    buffer: *mut c_void,
    capacity: usize,
    meta: *mut lr_rx_meta,
) -> ssize_t {
    // SAFETY: as in `transmit`.
    let end = unsafe { &mut *user.cast::<End>() };
    if end.answers.1 != 0 {
        return end.answers.1;
    }
    let Some((frame, asked)) = end.incoming.borrow_mut().pop_front() else { return 0 };
    assert!(frame.len() <= capacity);
    // What no device summed never left memory: it is right.
    let checksum = if asked.checksum_offset == 0 { LR_CHECKSUM_UNKNOWN } else { LR_CHECKSUM_GOOD };
    // SAFETY: the buffer has `capacity` writable bytes, and the structure is the stack's.
    unsafe {
        core::ptr::copy_nonoverlapping(frame.as_ptr(), buffer.cast(), frame.len());
        *meta = lr_rx_meta { checksum, segment_size: asked.segment_size };
    }
    frame.len() as ssize_t
}

unsafe extern "C" fn completed(user: *mut c_void) -> usize {
    // SAFETY: as in `transmit`.
    core::mem::take(unsafe { &mut (*user.cast::<End>()).uncounted })
}

/// A stack and its end of the cable.
struct Node {
    stack: *mut lr_stack,
    end: *mut End,
}

impl Drop for Node {
    fn drop(&mut self) {
        // SAFETY: both came from `new` and are dropped once.
        unsafe {
            assert_eq!(lr_stack_free(self.stack), 0);
            drop(Box::from_raw(self.end));
        }
    }
}

/// How a world's devices are.
#[derive(Clone, Copy)]
struct Shape {
    /// LR_DEVICE_... bits.
    capabilities: u32,
    /// Whether packets are held until they are counted.
    completions: bool,
    /// Not the default.
    memory: Option<usize>,
}

/// Two hosts, 10.0.0.1 (fd00::1) and 10.0.0.2 (fd00::2).
struct World {
    a: Node,
    b: Node,
    now_ns: u64,
}

fn node(last: u8, shape: Shape, incoming: &Frames, outgoing: &Frames) -> Node {
    let end = Box::into_raw(Box::new(End {
        capabilities: shape.capabilities,
        incoming: Rc::clone(incoming),
        outgoing: Rc::clone(outgoing),
        uncounted: 0,
        stack: null_mut(),
        reentered: None,
        lose: 0,
        answers: (0, 0),
    }));
    let addresses = std::ffi::CString::new(format!("10.0.0.{last}/24, fd00::{last}/64")).unwrap();
    let mut config = lr_stack_config::defaults();
    // SAFETY: live locals.
    unsafe { assert_eq!(lr_stack_config_init(&mut config), 0) };
    config.addresses = addresses.as_ptr();
    config.dad_transmits = 0;
    config.seed = [last; 32];
    config.max_sockets = 16;
    config.memory = shape.memory.unwrap_or(config.memory);
    let device = lr_device {
        user: end.cast(),
        transmit: Some(transmit),
        receive: Some(receive),
        completed: shape.completions.then_some(completed as _),
        mac: [2, 0, 0, 0, 1, last],
        mtu: 1500,
        capabilities: shape.capabilities,
    };
    let mut stack = null_mut();
    // SAFETY: live locals; `end` lives until after `lr_stack_free`.
    unsafe { assert_eq!(lr_stack_new(&config, &device, 0, &mut stack), 0) };
    Node { stack, end }
}

impl World {
    fn new() -> World {
        World::shaped(Shape { capabilities: 0, completions: false, memory: None })
    }

    fn shaped(shape: Shape) -> World {
        let (ab, ba) = (Frames::default(), Frames::default());
        World { a: node(1, shape, &ba, &ab), b: node(2, shape, &ab, &ba), now_ns: 0 }
    }

    /// One turn of each stack.
    fn step(&mut self) {
        self.now_ns += STEP_NS;
        for node in [&self.a, &self.b] {
            // SAFETY: live stacks.
            let bits = unsafe { lr_stack_turn(node.stack, self.now_ns) };
            assert!(bits >= 0, "{bits}");
        }
    }

    /// Turns for so long.
    fn pass(&mut self, ms: u64) {
        for _ in 0..ms * 1_000_000 / STEP_NS {
            self.step();
        }
    }

    /// Turns until `done`, at most ten virtual seconds.
    fn until(&mut self, mut done: impl FnMut(&World) -> bool) {
        for _ in 0..10_000_000_000 / STEP_NS {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("it did not happen");
    }

    /// A listener of `b` on this port.
    fn listener(&self, port: u16) -> c_int {
        let fd = self.b.socket(libc::SOCK_STREAM);
        assert_eq!(self.b.bind(fd, "0.0.0.0", port), 0);
        assert_eq!(self.b.listen(fd, 8), 0);
        fd
    }

    /// A connection from `a` to `b`: the descriptors on both sides.
    fn connected(&mut self, port: u16) -> (c_int, c_int) {
        let listener = self.listener(port);
        let client = self.a.socket(libc::SOCK_STREAM);
        assert_eq!(self.a.connect(client, "10.0.0.2", port), -libc::EINPROGRESS);
        self.until(|world| world.b.poll(listener, libc::POLLIN) != 0);
        let server = self.b.accept(listener);
        assert!(server >= 0, "{server}");
        self.until(|world| world.a.poll(client, libc::POLLOUT) == libc::POLLOUT);
        assert_eq!(self.b.close(listener), 0);
        (client, server)
    }
}

fn inet(ip: &str, port: u16) -> sockaddr_in {
    let address = SocketAddrV4::new(ip.parse().unwrap(), port);
    sockaddr_in {
        sin_family: libc::AF_INET as _,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

fn text(address: &sockaddr_in) -> String {
    let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
    format!("{ip}:{}", u16::from_be(address.sin_port))
}

const INET: socklen_t = size_of::<sockaddr_in>() as socklen_t;

/// The functions with Rust's types around them. Every one passes live locals of the right sizes.
impl Node {
    fn socket(&self, kind: c_int) -> c_int {
        // SAFETY: a live stack, as in all that follow.
        let fd = unsafe { lr_socket(self.stack, libc::AF_INET, kind, 0) };
        assert!(fd >= 0, "{fd}");
        fd
    }

    fn bind(&self, fd: c_int, ip: &str, port: u16) -> c_int {
        let address = inet(ip, port);
        // SAFETY: a live address of that length.
        unsafe { lr_bind(self.stack, fd, (&raw const address).cast(), INET) }
    }

    fn listen(&self, fd: c_int, backlog: c_int) -> c_int {
        // SAFETY: a live stack.
        unsafe { lr_listen(self.stack, fd, backlog) }
    }

    fn accept(&self, fd: c_int) -> c_int {
        // SAFETY: a live stack; the address is not asked for.
        unsafe { lr_accept(self.stack, fd, null_mut(), null_mut()) }
    }

    fn connect(&self, fd: c_int, ip: &str, port: u16) -> c_int {
        let address = inet(ip, port);
        // SAFETY: a live address of that length.
        unsafe { lr_connect(self.stack, fd, (&raw const address).cast(), INET) }
    }

    fn close(&self, fd: c_int) -> c_int {
        // SAFETY: a live stack.
        unsafe { lr_close(self.stack, fd) }
    }

    fn shutdown(&self, fd: c_int, how: c_int) -> c_int {
        // SAFETY: a live stack.
        unsafe { lr_shutdown(self.stack, fd, how) }
    }

    /// `revents` of one descriptor.
    fn poll(&self, fd: c_int, events: i16) -> i16 {
        let mut entry = pollfd { fd, events, revents: -1 };
        // SAFETY: one live entry.
        let count = unsafe { lr_poll(self.stack, &mut entry, 1) };
        assert_eq!(count, c_int::from(entry.revents != 0));
        entry.revents
    }

    fn write(&self, fd: c_int, bytes: &[u8]) -> ssize_t {
        // SAFETY: live bytes of that length.
        unsafe { lr_write(self.stack, fd, bytes.as_ptr().cast(), bytes.len()) }
    }

    fn recv(&self, fd: c_int, room: usize, flags: c_int) -> Result<Vec<u8>, ssize_t> {
        let mut bytes = vec![0; room];
        // SAFETY: live bytes of that length.
        let len = unsafe { lr_recv(self.stack, fd, bytes.as_mut_ptr().cast(), room, flags) };
        bytes.truncate(usize::try_from(len).map_err(|_| len)?);
        Ok(bytes)
    }

    fn read(&self, fd: c_int, room: usize) -> Result<Vec<u8>, ssize_t> {
        self.recv(fd, room, 0)
    }

    fn get<T: Copy>(&self, fd: c_int, level: c_int, name: c_int, start: T) -> Result<T, c_int> {
        let mut value = start;
        let mut len = size_of::<T>() as socklen_t;
        // SAFETY: a live value of that length, and every option is one of plain numbers.
        let code = unsafe { lr_getsockopt(self.stack, fd, level, name, (&raw mut value).cast(), &mut len) };
        if code == 0 { Ok(value) } else { Err(code) }
    }

    fn get_int(&self, fd: c_int, level: c_int, name: c_int) -> Result<c_int, c_int> {
        self.get(fd, level, name, -1)
    }

    fn set<T>(&self, fd: c_int, level: c_int, name: c_int, value: &T) -> c_int {
        let len = size_of::<T>() as socklen_t;
        // SAFETY: a live value of that length.
        unsafe { lr_setsockopt(self.stack, fd, level, name, core::ptr::from_ref(value).cast(), len) }
    }

    fn error(&self, fd: c_int) -> c_int {
        self.get_int(fd, libc::SOL_SOCKET, libc::SO_ERROR).unwrap()
    }

    fn name(&self, fd: c_int) -> String {
        let (mut address, mut len) = (inet("0.0.0.0", 0), INET);
        // SAFETY: a live address of that length.
        assert_eq!(unsafe { lr_getsockname(self.stack, fd, (&raw mut address).cast(), &mut len) }, 0);
        assert_eq!(len, INET);
        text(&address)
    }

    fn peer(&self, fd: c_int) -> Result<String, c_int> {
        let (mut address, mut len) = (inet("0.0.0.0", 0), INET);
        // SAFETY: a live address of that length.
        let code = unsafe { lr_getpeername(self.stack, fd, (&raw mut address).cast(), &mut len) };
        if code == 0 { Ok(text(&address)) } else { Err(code) }
    }

    fn stats(&self) -> lr_stats {
        let mut stats = lr_stats::default();
        // SAFETY: a live structure.
        assert_eq!(unsafe { lr_stack_stats(self.stack, &mut stats) }, 0);
        stats
    }
}

fn piece(bytes: &mut [u8]) -> iovec {
    iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}
