//! A queue: the data of the device, for one core.

use crate::bus::Platform;
use crate::device::{Capabilities, DeviceError};
use crate::frame::RxBatch;
use crate::gem::control::{load_enabled, load_epoch};
use crate::gem::counters::QueueStats;
use crate::gem::engine::{self, Installed};
use crate::gem::error::OpenError;
use crate::gem::interrupt::Interrupt;
use crate::gem::receive::{Misplaced, Receiver};
use crate::gem::regs::cause;
use crate::gem::settings::{Layout, RECEIVE_BUFFER};
use crate::gem::transmit::Transmitter;
use crate::meta::TxToken;
use crate::pool::{Buffer, Pool};
use crate::queue::QueuePair;
use crate::tx::{MAX_HEADER, TxQueue};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use linerate_wire::units::Instant;

/// How long the device may take over a packet while the link is up, before its ring is begun anew.
pub const STALL_LIMIT: Duration = Duration::from_secs(5);

/// The number in [`DeviceError::Io`] when the device does not take a ring any more: it is not to be had back.
pub const ERROR_STUCK: i32 = 1;

/// What one queue is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub index: u16,
    pub layout: Layout,
    pub look_every: Option<Duration>,
    /// Its interrupt reaches a processor.
    pub interrupts: bool,
}

/// A queue without buffers. It can still go to the core to which it shall belong; pools cannot, and so are given to
/// [`StoppedQueue::start`] there.
pub struct StoppedQueue<P> {
    board: P,
    shape: Shape,
}

impl<P: Platform> StoppedQueue<P> {
    pub(super) fn new(board: P, shape: Shape) -> Self {
        StoppedQueue { board, shape }
    }

    /// For the handler of this queue's interrupt.
    pub fn interrupt(&self) -> Interrupt<P> {
        interrupt(&self.board, &self.shape)
    }

    /// Starts the queue. Frames are received into buffers of `receive`, of at least 1,536 bytes each, which share no cache
    /// line with anything; headers are copied into buffers of `headers`, of at least 160 bytes, of which one for each
    /// descriptor of the transmit ring is taken for good. Where those are longer, packets whose payload the device does not
    /// reach are copied as well.
    ///
    /// # Errors
    /// Buffers that are too small, too few, or out of the device's reach; a device that does not take its rings.
    pub fn start(self, receive: Pool, headers: &Pool) -> Result<Queue<P>, OpenError> {
        let StoppedQueue { board, shape } = self;
        let Shape { index, layout, .. } = shape;
        let (received, sent) = (layout.receive(index), layout.transmit(index));
        check(&board, &receive, "receive", (1, RECEIVE_BUFFER), layout.is_wide)?;
        let need = (usize::from(sent.len), MAX_HEADER);
        check(&board, headers, "header", need, layout.is_wide)?;
        let wrong = OpenError::Pool { name: "header", need };
        let taken: Result<Vec<Buffer>, _> = (0..sent.len).map(|_| headers.take().ok_or(wrong)).collect();
        let (_, stops) = load_epoch(&board, layout, index);
        let mut queue = Queue {
            receiver: Receiver::new(board.clone(), received, index, receive, layout.scrap()),
            transmitter: Transmitter::new(board.clone(), sent, index, taken?),
            stats: QueueStats::default(),
            looked: Instant::ZERO,
            // Whatever the link was: a ring without packets has nothing to lose.
            link: board.load(layout.link()),
            stops,
            is_lost: false,
            board,
            shape,
        };
        let interrupt = queue.interrupt();
        interrupt.reset();
        queue.restart_receiver();
        queue.restart_transmitter();
        if queue.is_lost {
            return Err(OpenError::Stuck { queue: index });
        }
        queue.stats = QueueStats::default();
        interrupt.start();
        Ok(queue)
    }
}

impl<P> fmt::Debug for StoppedQueue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoppedQueue").field("index", &self.shape.index).finish_non_exhaustive()
    }
}

fn interrupt<P: Platform>(board: &P, shape: &Shape) -> Interrupt<P> {
    Interrupt::new(board.clone(), shape.index, shape.layout.notes(shape.index))
}

/// A receive and a transmit ring with their interrupt.
///
/// Dropping it points the device to rings without buffers first, so that it writes to no memory that is somebody else's by then.
pub struct Queue<P: Platform> {
    board: P,
    shape: Shape,
    receiver: Receiver<P>,
    transmitter: Transmitter<P>,
    stats: QueueStats,
    /// When the device was looked at last, though nothing interrupted.
    looked: Instant,
    /// The link's word, and how often other queues had stopped sending, as of the last turn.
    link: u32,
    stops: u32,
    /// The device does not take a ring any more.
    is_lost: bool,
}

impl<P: Platform> Queue<P> {
    /// The counters.
    pub fn stats(&self) -> QueueStats {
        self.stats
    }

    /// For the handler of this queue's interrupt.
    pub fn interrupt(&self) -> Interrupt<P> {
        interrupt(&self.board, &self.shape)
    }

    /// Lets no interrupt through but errors until the queue is armed again: for a loop that has no handler of its own and is
    /// awake.
    pub fn disarm(&mut self) {
        self.interrupt().shut();
    }

    /// Whether this queue's interrupt reaches a processor; else it is to be looked at when
    /// [`poll_timeout`](QueuePair::poll_timeout) says.
    pub fn has_interrupt(&self) -> bool {
        self.shape.interrupts
    }

    fn alive(&self) -> Result<(), DeviceError> {
        if self.is_lost { Err(DeviceError::Io(ERROR_STUCK)) } else { Ok(()) }
    }

    fn restart_receiver(&mut self) {
        self.stats.rx_resets += 1;
        self.is_lost = self.is_lost || !self.receiver.restart(&mut self.stats);
    }

    fn restart_transmitter(&mut self) {
        self.stats.tx_resets += 1;
        if self.is_lost {
            return;
        }
        let how = self.transmitter.restart(&mut self.stats);
        self.tell(how);
        self.is_lost = how.is_none();
    }

    /// Tells the other queues when the transmitter was stopped for them, too.
    fn tell(&self, how: Option<Installed>) {
        if how == Some(Installed::Stopped) {
            let word = self.shape.layout.stops(self.shape.index);
            self.board.store(word, self.board.load(word).wrapping_add(1));
        }
    }

    /// What has happened to the device since the last turn, asked of the device itself if need be or if it is time to; true
    /// if that was something. A ring that has failed is begun anew before the doorbell rings again: the device would go on
    /// at its beginning.
    fn attend(&mut self, now: Instant, asks: bool) -> bool {
        let (link, stops) = load_epoch(&self.board, self.shape.layout, self.shape.index);
        let mut resets_transmitter = (link, stops) != (self.link, self.stops);
        (self.link, self.stops) = (link, stops);
        let interrupt = self.interrupt();
        let mut resets_receiver = false;
        let is_time = self.poll_timeout().is_some_and(|at| at <= now);
        if asks || is_time {
            // An error whose interrupt was lost, or goes nowhere, or is about to come.
            interrupt.handle();
        }
        if is_time {
            self.looked = now;
            resets_receiver = self.receiver.is_misplaced();
            if link & 1 != 0 && self.transmitter.is_overdue(now, STALL_LIMIT) {
                self.transmitter.harvest(&mut self.stats);
                if self.transmitter.is_overdue(now, STALL_LIMIT) {
                    self.stats.stalls += 1;
                    resets_transmitter = true;
                }
            }
        }
        let errors = interrupt.errors();
        let mut count = |bit: u32, counter: fn(&mut QueueStats) -> &mut u64| {
            *counter(&mut self.stats) += u64::from(errors & bit != 0);
        };
        count(cause::OVERRUN, |stats| &mut stats.rx_overruns);
        count(cause::UNDERRUN, |stats| &mut stats.tx_underruns);
        count(cause::RETRY, |stats| &mut stats.tx_retries);
        count(cause::CORRUPTED, |stats| &mut stats.tx_corrupted);
        count(cause::BUS, |stats| &mut stats.bus_errors);
        resets_receiver |= errors & cause::BUS != 0;
        resets_transmitter |= errors & !cause::OVERRUN != 0;
        if resets_receiver {
            self.restart_receiver();
        }
        if resets_transmitter {
            self.restart_transmitter();
        }
        resets_receiver || resets_transmitter
    }
}

impl<P: Platform> QueuePair for Queue<P> {
    fn enabled(&self) -> Capabilities {
        load_enabled(&self.board, self.shape.layout)
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.alive()?;
        self.attend(now, false);
        self.alive()?;
        let report_valid = self.enabled().rx_checksum;
        match self.receiver.receive(batch, report_valid, &mut self.stats) {
            Ok(count) => Ok(count),
            Err(Misplaced) => {
                self.restart_receiver();
                self.alive().map(|()| 0)
            }
        }
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        self.alive()?;
        let asks = !self.shape.interrupts && self.transmitter.has_packets();
        self.attend(now, asks);
        self.alive()?;
        let enabled = self.enabled();
        Ok(self.transmitter.transmit(now, queue, enabled, &mut self.stats))
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        if self.is_lost {
            return None;
        }
        self.transmitter.poll_completion(&mut self.stats)
    }

    /// Interrupts are let through first, then the rings are looked at: what comes in between is seen, or interrupts.
    fn arm(&mut self, now: Instant) -> bool {
        if self.is_lost {
            return true;
        }
        self.stats.arms += 1;
        let had_news = self.attend(now, true);
        if self.is_lost {
            return true;
        }
        self.receiver.refill(&mut self.stats);
        if self.shape.interrupts {
            let sent = if self.transmitter.has_packets() { cause::SENT } else { 0 };
            self.interrupt().arm(cause::RECEIVE | sent);
        }
        let sent = self.transmitter.is_ready(&mut self.stats);
        had_news || sent || self.receiver.is_ready()
    }

    fn waiting(&mut self) -> u32 {
        self.receiver.is_ready().into()
    }

    /// A look now and then finds what no interrupt told.
    fn poll_timeout(&self) -> Option<Instant> {
        self.shape.look_every.map(|every| self.looked + every)
    }
}

impl<P: Platform> Drop for Queue<P> {
    fn drop(&mut self) {
        let layout = self.shape.layout;
        self.interrupt().reset();
        self.receiver.stop(layout.idle_receive());
        let how = self.transmitter.stop(layout.idle_transmit());
        self.tell(how);
    }
}

impl<P: Platform> fmt::Debug for Queue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("index", &self.shape.index).field("stats", &self.stats).finish()
    }
}

/// Checks that a pool has so many buffers of so many bytes, and that the device reaches them. One stands for all: a pool is
/// memory of one kind.
fn check<P: Platform>(
    board: &P,
    pool: &Pool,
    name: &'static str,
    need: (usize, usize),
    is_wide: bool,
) -> Result<(), OpenError> {
    let wrong = OpenError::Pool { name, need };
    if pool.buffer_size() < need.1 || pool.len() < need.0 {
        return Err(wrong);
    }
    let buffer = pool.take().ok_or(wrong)?;
    let bytes = buffer.bytes();
    let address = board.bus_address(bytes).ok_or(OpenError::Unreachable { name })?;
    if !engine::fits(address, bytes.len() as u64, is_wide) {
        return Err(OpenError::Beyond { name, address });
    }
    // Word 0 of a receive descriptor has two flags where an address has its lowest bits.
    if name == "receive" && !address.is_multiple_of(4) {
        return Err(OpenError::Unaligned { name, address, align: 4 });
    }
    Ok(())
}
