//! A queue: the data of the device, for one core.

use crate::bus::Platform;
use crate::device::{Capabilities, DeviceError};
use crate::frame::RxBatch;
use crate::mcdma::channel::{Channel, Direction};
use crate::mcdma::control;
use crate::mcdma::counters::QueueStats;
use crate::mcdma::interrupt::Interrupt;
use crate::mcdma::nic_regs::{pacing, register as nic};
use crate::mcdma::receive::{self, Receiver};
use crate::mcdma::ring::Ring;
use crate::mcdma::transmit::{self, Transmitter};
use crate::mcdma::words::{AppWords, Seeding};
use crate::meta::TxToken;
use crate::pacing::{PacingConfig, PacingMode};
use crate::pool::Pool;
use crate::queue::QueuePair;
use crate::tx::TxQueue;
use core::fmt;
use core::time::Duration;
use linerate_wire::units::{Instant, nanos};

/// How long the engine may take over a packet while the link is up, before its channel is reset.
pub const STALL_LIMIT: Duration = Duration::from_secs(5);

/// How often a receive ring that does not move is searched for a status that is missing: each descriptor may take as long as a
/// line of a cache.
const GAP_EVERY: Duration = Duration::from_secs(1);

/// The number in [`DeviceError::Io`] when a channel does not come out of its reset: the engine is not to be had back.
pub const ERROR_RESET: i32 = 1;

/// Where a queue's rings lie, and how long they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Index of the queue.
    pub index: u16,
    /// What is switched on.
    pub notes: u64,
    pub transmit: (u64, usize),
    pub receive: (u64, usize),
    /// Longest frame.
    pub longest: usize,
    pub delay_tick_ns: u32,
    pub look_every: Option<Duration>,
    pub words: AppWords,
    pub seeding: Seeding,
    /// What the hardware has.
    pub features: u32,
}

impl Layout {
    fn transmit_shape(&self) -> transmit::Shape {
        transmit::Shape {
            len: self.transmit.1,
            longest: self.longest,
            can_split: control::capabilities(self.features).tso4,
            words: self.words,
            seeding: self.seeding,
        }
    }

    fn receive_shape(&self) -> receive::Shape {
        receive::Shape {
            len: self.receive.1,
            queue: self.index,
            longest: self.longest,
            can_join: control::capabilities(self.features).rx_coalescing,
            words: self.words,
        }
    }
}

/// A queue without buffers. It can still go to the core to which it shall belong; pools cannot, and so are given to
/// [`StoppedQueue::start`] there.
#[derive(Debug)]
pub struct StoppedQueue<P> {
    board: P,
    layout: Layout,
}

/// What addresses of receive buffers are multiples of (docs/rtl/dma.md).
const RECEIVE_ALIGNMENT: u64 = 64;

/// Why a queue does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// A buffer of this pool does not hold the longest frame.
    Small {
        /// Which pool: "receive" or "transmit".
        pool: &'static str,
        /// Bytes of one of its buffers.
        have: usize,
        /// Bytes of the longest frame.
        need: usize,
    },
    /// The device does not reach the buffers of this pool.
    Unreachable {
        /// Which pool: "receive" or "transmit".
        pool: &'static str,
    },
    /// A buffer of this pool is not at a multiple of 64 bytes: the engine drops what would be written there.
    Unaligned {
        /// Which pool: "receive".
        pool: &'static str,
        /// The buffer's address on the device's bus.
        address: u64,
    },
    /// This pool has no buffers, or all are in use.
    Empty {
        /// Which pool: "receive" or "transmit".
        pool: &'static str,
    },
    /// The transmit pool, or the transmit ring, does not hold the longest packet: what the hardware splits is that long.
    Few {
        /// What there are too few of: "buffers" or "descriptors".
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many the longest packet takes.
        need: usize,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Small { pool, have, need } => {
                write!(f, "{pool} pool: buffers of {have} bytes; the longest frame has {need}")
            }
            StartError::Unreachable { pool } => {
                write!(
                    f,
                    "{pool} pool: the device does not reach its buffers (Pool::over makes them out of memory that it does)"
                )
            }
            StartError::Unaligned { pool, address } => {
                write!(f, "{pool} pool: a buffer at {address:#x}, expected multiples of {RECEIVE_ALIGNMENT}")
            }
            StartError::Empty { pool } => write!(f, "{pool} pool: no free buffer"),
            StartError::Few { what, have, need } => {
                write!(f, "transmit: {have} {what}; the longest packet takes {need}")
            }
        }
    }
}

impl core::error::Error for StartError {}

impl<P: Platform> StoppedQueue<P> {
    pub(crate) fn new(board: P, layout: Layout) -> Self {
        StoppedQueue { board, layout }
    }

    /// For the handler of this queue's interrupt.
    pub fn interrupt(&self) -> Interrupt<P> {
        Interrupt::new(&self.board, self.layout.index)
    }

    /// Starts the queue. Frames are received into buffers of `receive`, headers (and payload that the device does not reach) are
    /// copied into buffers of `transmit`, which nobody else may take from. Buffers of `receive` share no cache line with anything.
    ///
    /// The ring keeps as many buffers of `receive` as it is long; what TCP's windows promise comes out of the others.
    pub fn start(self, receive: Pool, transmit: Pool) -> Result<Queue<P>, StartError> {
        let StoppedQueue { board, layout } = self;
        check(&board, &receive, "receive", layout.longest, RECEIVE_ALIGNMENT)?;
        check(&board, &transmit, "transmit", layout.longest, 1)?;
        let shape = layout.transmit_shape();
        let need = shape.most_buffers(transmit.buffer_size());
        if transmit.len() < need {
            return Err(StartError::Few { what: "buffers", have: transmit.len(), need });
        }
        let need = shape.most_pieces(transmit.buffer_size());
        // One descriptor always stays with the driver.
        if shape.len < need + 1 {
            return Err(StartError::Few { what: "descriptors", have: shape.len - 1, need });
        }
        let channel = |direction| Channel::new(board.clone(), direction, layout.index);
        let ring = |(base, len)| Ring::new(base, len);
        let receiver = Receiver::new(
            board.clone(),
            channel(Direction::Receive),
            ring(layout.receive),
            receive,
            layout.receive_shape(),
        );
        let transmitter = Transmitter::new(
            board.clone(),
            channel(Direction::Transmit),
            ring(layout.transmit),
            transmit,
            shape,
        );
        let mut queue = Queue {
            board,
            layout,
            receiver,
            transmitter,
            stats: QueueStats::default(),
            looked: Instant::ZERO,
            link_was_down: Instant::ZERO,
            progress: Progress::default(),
            pacing: Pacing::default(),
            is_lost: false,
        };
        queue.receiver.start(&mut queue.stats);
        queue.transmitter.start();
        Ok(queue)
    }
}

/// How far the receive ring was when it was last looked at.
#[derive(Clone, Copy, Default)]
struct Progress {
    position: u64,
    /// When it moved, or was searched last.
    looked: Instant,
    /// Since when a status is missing there.
    gap_since: Option<Instant>,
}

/// How interrupts follow received frames.
#[derive(Clone, Copy, Debug)]
enum Pacing {
    /// The engine counts so many, and so many ticks after the newest.
    Engine { threshold: u8, delay: u8 },
    /// The pacer beside it does, by its two registers.
    Pacer { control: u32, timer: u32 },
}

impl Default for Pacing {
    /// An interrupt for each packet.
    fn default() -> Self {
        Pacing::Engine { threshold: 1, delay: 0 }
    }
}

/// A receive and a transmit ring with their interrupt.
///
/// Dropping it stops both channels first, so that the engine writes to no memory that is somebody else's by then.
pub struct Queue<P: Platform> {
    board: P,
    layout: Layout,
    receiver: Receiver<P>,
    transmitter: Transmitter<P>,
    stats: QueueStats,
    /// When the channels were looked at last.
    looked: Instant,
    /// When the link was last seen down by the watchdog.
    link_was_down: Instant,
    progress: Progress,
    /// Of the receive interrupt; a reset forgets it.
    pacing: Pacing,
    /// A channel did not come out of its reset.
    is_lost: bool,
}

impl<P: Platform> Queue<P> {
    /// The counters.
    pub fn stats(&self) -> QueueStats {
        self.stats
    }

    /// For the handler of this queue's interrupt.
    pub fn interrupt(&self) -> Interrupt<P> {
        Interrupt::new(&self.board, self.layout.index)
    }

    /// Lets no interrupt through until the queue is armed again: for a loop that has no handler of its own and is awake.
    pub fn disarm(&mut self) {
        if !self.is_lost {
            self.receiver.channel().let_through(false);
            self.transmitter.channel().let_through(false);
        }
    }

    /// Resets both channels, as the watchdog does: packets under way are reported and not sent again, buffers stay.
    ///
    /// # Errors
    /// A channel does not come out of its reset. The queue is of no more use.
    pub fn reset(&mut self) -> Result<(), DeviceError> {
        self.stats.requested_resets += 1;
        self.reset_receiver();
        self.reset_transmitter();
        self.alive()
    }

    fn reset_receiver(&mut self) {
        self.is_lost = self.is_lost || !self.receiver.reset(&mut self.stats);
        self.progress = Progress::default();
        self.apply_pacing();
    }

    fn reset_transmitter(&mut self) {
        self.is_lost = self.is_lost || !self.transmitter.reset(&mut self.stats);
    }

    fn apply_pacing(&self) {
        match self.pacing {
            Pacing::Engine { threshold, delay } => self.receiver.channel().set_pacing(threshold, delay),
            Pacing::Pacer { control, timer } => {
                let at = nic::PACING_BASE + nic::PACING_STRIDE * u32::from(self.layout.index);
                self.board.write(at + pacing::TIMER, timer);
                self.board.write(at + pacing::CR, control);
                self.receiver.channel().set_pacing(0, 0);
            }
        }
    }

    fn alive(&self) -> Result<(), DeviceError> {
        if self.is_lost { Err(DeviceError::Io(ERROR_RESET)) } else { Ok(()) }
    }

    /// What no interrupt tells, or may have failed to tell: a channel that has stopped, and one that takes too long. True
    /// if one was reset; interrupts are not let through then.
    fn look(&mut self, now: Instant) -> bool {
        self.looked = now;
        let before = self.stats.failures + self.stats.stalls;
        // What has come back before is not given up: packets here, frames by the owner of the loop, whom arming tells.
        self.transmitter.is_ready(&mut self.stats);
        if self.transmitter.channel().has_failed() {
            self.stats.failures += 1;
            self.reset_transmitter();
        }
        if self.receiver.channel().has_failed() && !self.receiver.is_ready() {
            self.stats.failures += 1;
            self.reset_receiver();
        }
        if self.transmitter.is_overdue(now, self.link_was_down, STALL_LIMIT) {
            if self.board.read(nic::LINK) & nic::LINK_UP == 0 {
                // Packets wait for the link, not for the engine.
                self.link_was_down = now;
            } else {
                self.stats.stalls += 1;
                self.reset_transmitter();
            }
        }
        if self.misses_status(now) {
            self.stats.stalls += 1;
            self.reset_receiver();
        }
        before != self.stats.failures + self.stats.stalls
    }

    /// Whether the status of a received frame has been missing for too long while others came behind it.
    fn misses_status(&mut self, now: Instant) -> bool {
        let position = self.receiver.progress();
        if position != self.progress.position {
            self.progress = Progress { position, looked: now, gap_since: None };
        }
        if now < self.progress.looked + GAP_EVERY {
            return false;
        }
        self.progress.looked = now;
        let gap_since = self.receiver.has_gap().then(|| *self.progress.gap_since.get_or_insert(now));
        self.progress.gap_since = gap_since;
        gap_since.is_some_and(|since| since + STALL_LIMIT <= now)
    }

    /// [`Queue::look`], when it is time to.
    fn watch(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.look(now);
        }
    }
}

impl<P: Platform> QueuePair for Queue<P> {
    fn enabled(&self) -> Capabilities {
        control::load_notes(&self.board, self.layout.notes)
    }

    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError> {
        self.alive()?;
        self.watch(now);
        self.alive()?;
        let enabled = self.enabled();
        Ok(self.receiver.receive(batch, enabled, &mut self.stats))
    }

    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
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
        self.receiver.refill(&mut self.stats);
        for channel in [self.receiver.channel(), self.transmitter.channel()] {
            channel.acknowledge();
            channel.let_through(true);
        }
        let was_reset = self.look(now);
        let received = self.receiver.is_ready();
        let sent = self.transmitter.is_ready(&mut self.stats);
        received || sent || was_reset
    }

    fn waiting(&mut self) -> u32 {
        self.receiver.is_ready().into()
    }

    /// A look now and then finds what a lost interrupt did not tell, and a channel that takes too long.
    fn poll_timeout(&self) -> Option<Instant> {
        self.layout.look_every.map(|every| self.looked + every)
    }

    /// By the pacer, which has all modes, where the hardware has one; else the engine counts packets, and the time since the
    /// newest of them.
    fn set_pacing(&mut self, config: PacingConfig) -> Result<(), DeviceError> {
        let threshold = config.threshold.max(1);
        self.pacing = if self.layout.features & nic::FEATURES_PACER != 0 {
            paced(
                &config,
                u16::try_from(threshold).map_err(|_| DeviceError::Unsupported)?,
                self.layout.delay_tick_ns,
            )?
        } else {
            let threshold = u8::try_from(threshold).map_err(|_| DeviceError::Unsupported)?;
            counted(&config, threshold, self.layout.delay_tick_ns)?
        };
        self.apply_pacing();
        Ok(())
    }
}

/// The pacer's settings.
fn paced(config: &PacingConfig, threshold: u16, tick_ns: u32) -> Result<Pacing, DeviceError> {
    let mode = match config.mode {
        PacingMode::None => pacing::CR_MODE_NONE,
        PacingMode::LastInterrupt => pacing::CR_MODE_LAST_INTERRUPT,
        PacingMode::FirstNewPacket => pacing::CR_MODE_FIRST_NEW,
        PacingMode::LastNewPacket => pacing::CR_MODE_LAST_NEW,
    };
    let ticks = nanos(config.period()).div_ceil(u64::from(tick_ns));
    let timer = u16::try_from(ticks).map_err(|_| DeviceError::Unsupported)?;
    let control = pacing::CR_ON | mode << pacing::CR_MODE_SHIFT | u32::from(threshold);
    Ok(Pacing::Pacer { control, timer: u32::from(timer) })
}

/// The engine's own.
fn counted(pacing: &PacingConfig, threshold: u8, tick_ns: u32) -> Result<Pacing, DeviceError> {
    let (threshold, delay) = match pacing.mode {
        PacingMode::None => (threshold, 0),
        // Without a timer the first packet fires.
        PacingMode::LastNewPacket if pacing.period().is_zero() => (1, 0),
        PacingMode::LastNewPacket => {
            let ticks = nanos(pacing.period()).div_ceil(u64::from(tick_ns));
            (threshold, u8::try_from(ticks).map_err(|_| DeviceError::Unsupported)?)
        }
        PacingMode::LastInterrupt | PacingMode::FirstNewPacket => return Err(DeviceError::Unsupported),
    };
    Ok(Pacing::Engine { threshold, delay })
}

impl<P: Platform> Drop for Queue<P> {
    fn drop(&mut self) {
        self.receiver.stop();
        self.transmitter.stop();
    }
}

impl<P: Platform> fmt::Debug for Queue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("index", &self.layout.index).field("stats", &self.stats).finish()
    }
}

/// Checks that a buffer of a pool is long enough, and that the device reaches it. One stands for all: a pool is memory of one kind.
fn check<P: Platform>(
    board: &P,
    pool: &Pool,
    name: &'static str,
    need: usize,
    alignment: u64,
) -> Result<(), StartError> {
    let have = pool.buffer_size();
    if have < need {
        return Err(StartError::Small { pool: name, have, need });
    }
    // The second shows whether their distance keeps what the first begins with.
    let first = pool.take().ok_or(StartError::Empty { pool: name })?;
    for buffer in core::iter::once(first).chain(pool.take()) {
        let address = board.bus_address(buffer.bytes()).ok_or(StartError::Unreachable { pool: name })?;
        if address % alignment != 0 {
            return Err(StartError::Unaligned { pool: name, address });
        }
    }
    Ok(())
}
