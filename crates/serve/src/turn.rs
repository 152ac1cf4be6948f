//! The loop that brings an engine, files and servers together, without its sleep.

use crate::Change;
use crate::service::{Context, Service};
use linerate_transport::{Engine, FileError, FileOp, FileReply, FileRequest, Files, Left, Owner};
use linerate_wire::units::{Instant, earliest};

/// Most events, and most file completions, handed out in one turn: after that, packets have their turn again.
const PER_TURN: usize = 1024;
/// Events for which the clock is read once: what a server does with each takes microseconds.
const PER_READING: usize = 8;
/// How often [`Loop::settle`] hands out what sending has led to.
const SETTLE_ROUNDS: usize = 4;

/// Bytes that are asked of the files for the engine in one turn, one piece more at most: they may be copied at once.
const READ_PER_TURN: usize = 1 << 20;

/// Bytes that were read for the servers, after which packets have their turn again, one piece more at most: a server may convert or hash
/// them, and what it asks for next may be there at once.
const HAND_OUT_LEN: usize = 256 << 10;

/// What a loop takes from the machine that it runs on.
pub trait Host {
    /// The time. It never goes back.
    fn now(&mut self) -> Instant;

    /// Wall-clock time in ns since 1970-01-01 UTC; 0 where nobody knows.
    fn wall_ns(&mut self) -> i64;

    /// A number that a peer cannot guess.
    fn random(&mut self) -> u64;

    /// The services have changed something in the files; told before anything of the turn leaves. Other loops over the same files
    /// are to hear of it ([`Service::handle_change`]).
    fn handle_change(&mut self, _change: Change) {}
}

/// An engine, its files and its servers.
///
/// Each turn is [`Loop::take_in`], then [`Loop::serve`]. While one of the two says that something moved, the next turn
/// follows at once, and also when [`Loop::arm`] says that something has come meanwhile; otherwise the host sleeps until
/// [`Loop::poll_timeout`], or until its device, its files or whatever else it listens to wakes it up.
pub struct Loop<E, F, S> {
    /// Sockets and what carries them.
    pub engine: E,
    /// Files.
    pub files: F,
    /// The servers.
    services: S,
    /// When they are due, as they said last: asked again only after one of them was called, as a turn that finds nothing calls none.
    due: Option<Option<Instant>>,
    /// A file request that the file service had no room for.
    refused: Option<FileRequest>,
    /// Whether the engine may have more to take in.
    more: bool,
    /// What it has left to send.
    left: Left,
    /// Turns begun.
    turn: u64,
    /// The time that this turn began at, until its end or something that may take a while.
    now: Option<Instant>,
}

impl<E: Engine, F: Files, S: Service> Loop<E, F, S> {
    /// A loop over these.
    pub fn new(engine: E, files: F, services: S) -> Self {
        Loop {
            engine,
            files,
            services,
            due: None,
            refused: None,
            more: false,
            left: Left::Nothing,
            turn: 0,
            now: None,
        }
    }

    /// Calls `f` with what a service may use.
    pub fn with<R>(&mut self, host: &mut dyn Host, f: impl FnOnce(&mut S, &mut Context<'_>) -> R) -> R {
        self.now = None;
        let at = (host.now(), host.wall_ns());
        self.with_at(host, at, f)
    }

    /// The same at a time that was read already, on both clocks.
    fn with_at<R>(
        &mut self,
        host: &mut dyn Host,
        (now, wall_ns): (Instant, i64),
        f: impl FnOnce(&mut S, &mut Context<'_>) -> R,
    ) -> R {
        self.due = None;
        let mut random = || host.random();
        let (net, files, turn) = (self.engine.net(), &mut self.files, Some(self.turn));
        f(&mut self.services, &mut Context { net, files, now, turn, wall_ns, random: &mut random })
    }

    /// The first half of a turn: what has arrived. Returns whether anything had.
    pub fn take_in(&mut self, host: &mut dyn Host) -> Result<bool, E::Error> {
        self.turn += 1;
        let now = host.now();
        self.now = Some(now);
        let input = self.engine.input(now)?;
        self.more = input.more;
        Ok(input.moved)
    }

    /// The second half: finished file operations and events to the servers, deadlines, file requests, packets out. Returns
    /// whether anything moved, or would move in another turn.
    pub fn serve(&mut self, host: &mut dyn Host) -> Result<bool, E::Error> {
        let mut busy = self.hand_out_files(host);
        busy |= self.hand_out_events(host);
        if self.files.has_done() {
            // Answered as it was asked: the reply leaves in this turn.
            busy |= self.hand_out_files(host);
        }
        let now = self.now(host);
        if self.services_due().is_some_and(|at| at <= now) {
            self.with(host, |services, ctx| services.handle_timeout(ctx));
            busy = true;
        }
        busy |= self.read_files();
        if self.files.has_done() {
            // What was there at once is sent while it is in the processor's cache.
            busy |= self.hand_out_files(host);
        }
        let sent = self.send(host)?;
        self.now = None;
        Ok(busy || sent || self.left == Left::More)
    }

    /// After a turn in which something moved: hands out what its second half has led to by itself, and sends what follows
    /// from that. True when all that is left waits for something to come (input, a file, room, the time of
    /// [`Loop::poll_timeout`]), so that a host that would be told of it, also of what has come meanwhile, need not take
    /// another turn before it sleeps.
    pub fn settle(&mut self, host: &mut dyn Host) -> Result<bool, E::Error> {
        if self.more {
            return Ok(false);
        }
        for _ in 0..SETTLE_ROUNDS {
            let any = self.hand_out_files(host) | self.hand_out_events(host) | self.read_files();
            if !any {
                return Ok(self.left != Left::More);
            }
            self.send(host)?;
            self.now = None;
        }
        Ok(false)
    }

    /// Tells what has changed, and lets packets out; true if any left.
    fn send(&mut self, host: &mut dyn Host) -> Result<bool, E::Error> {
        while let Some(change) = self.services.poll_change() {
            host.handle_change(change);
        }
        let now = self.now(host);
        let output = self.engine.output(now)?;
        self.left = output.left;
        Ok(output.moved)
    }

    /// The time in this turn: read when it began, and again only after what may have taken a while. Whatever the engine is told between the
    /// halves of a turn is told with it, so that time does not go back.
    pub fn now(&mut self, host: &mut dyn Host) -> Instant {
        *self.now.get_or_insert_with(|| host.now())
    }

    /// To be called before the host sleeps: arms the interrupt of the device; true if there is something to do already.
    pub fn arm(&mut self, now: Instant) -> bool {
        self.files.has_done() || self.engine.arm(now)
    }

    /// When the next turn is due at the latest, if nothing comes.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        earliest([self.engine.poll_timeout(), self.services_due()])
    }

    /// The servers.
    pub fn services(&self) -> &S {
        &self.services
    }

    /// The servers, to be called by who needs no [`Loop::with`].
    pub fn services_mut(&mut self) -> &mut S {
        self.due = None;
        &mut self.services
    }

    fn services_due(&mut self) -> Option<Instant> {
        *self.due.get_or_insert_with(|| self.services.poll_timeout())
    }

    /// Whether nothing would be lost if it ended now.
    pub fn is_idle(&self) -> bool {
        self.services.is_idle() && !self.engine.waits_for_room() && self.engine.unfinished() == 0
    }

    fn hand_out_files(&mut self, host: &mut dyn Host) -> bool {
        let mut len = 0;
        for count in 0..PER_TURN {
            let Some(done) = self.files.poll_done() else { return count > 0 };
            if done.owner == Owner::TRANSPORT {
                let data = match done.result {
                    Ok(FileReply::Data(data)) => Ok(data),
                    Ok(_) => Err(FileError::Io),
                    Err(error) => Err(error),
                };
                self.now = None;
                self.engine.handle_file_data(host.now(), done.tag, data);
            } else {
                if let Ok(FileReply::Data(data)) = &done.result {
                    len += data.len();
                }
                self.with(host, |services, ctx| services.handle_file(ctx, done));
                if len >= HAND_OUT_LEN {
                    break;
                }
            }
        }
        true
    }

    fn hand_out_events(&mut self, host: &mut dyn Host) -> bool {
        let mut at = (Instant::ZERO, 0);
        for count in 0..PER_TURN {
            let Some(event) = self.engine.net().poll_event() else { return count > 0 };
            if count % PER_READING == 0 {
                if count > 0 {
                    self.now = None;
                }
                at = (self.now(host), host.wall_ns());
            }
            self.with_at(host, at, |services, ctx| services.handle_event(ctx, event));
        }
        true
    }

    /// Passes on what the engine wants to read.
    fn read_files(&mut self) -> bool {
        let mut asked = 0;
        let mut any = false;
        while asked < READ_PER_TURN {
            let Some(request) = self.refused.take().or_else(|| self.engine.poll_file_request()) else {
                break;
            };
            let op = FileOp::Read { file: request.file, offset: request.offset, len: request.len };
            if self.files.submit(Owner::TRANSPORT, request.token, op).is_err() {
                // Too many under way: some of them end soon, and then this one's turn comes.
                self.refused = Some(request);
                break;
            }
            asked += request.len;
            any = true;
            // What is there at once was copied.
            self.now = None;
        }
        any
    }
}

#[cfg(test)]
mod tests;
