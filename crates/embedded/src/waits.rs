//! Who waits for what: the wakers of tasks that found nothing to do yet.
//!
//! A socket's halves have one place each, for only one task at a time can use a half. Of accepts, and of tasks that wait for
//! any progress, there may be several; each has a place while its future lives, so that what is kept is bounded by the
//! futures that the program holds.

use alloc::vec::Vec;
use core::task::{Context, Waker};
use linerate_transport::{ConnId, Event, ListenerId, Ready, Source, UdpId};

/// The two halves of a connection.
#[derive(Default)]
struct Halves {
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// A queue of tasks that wait for the same thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueId {
    /// A connection to accept.
    Listener(ListenerId),
    /// Anything that moves: room for a datagram, an address of ours.
    Progress,
}

/// A place in a queue.
#[derive(Default)]
enum Place {
    /// Nobody's.
    #[default]
    Free,
    /// Somebody waits here.
    Waiting(Waker),
    /// Who had it was woken, and will wait again or leave.
    Woken,
}

/// Tasks that wait for the same thing.
#[derive(Default)]
struct Queue(Vec<Place>);

impl Queue {
    /// Waits at the place that the task has, or at a new one.
    fn wait(&mut self, at: Option<usize>, waker: &Waker) -> usize {
        let free = || self.0.iter().position(|place| matches!(place, Place::Free));
        let at = at.or_else(free).unwrap_or(self.0.len());
        match self.0.get_mut(at) {
            Some(Place::Waiting(known)) => known.clone_from(waker),
            Some(place) => *place = Place::Waiting(waker.clone()),
            None => self.0.push(Place::Waiting(waker.clone())),
        }
        at
    }

    fn leave(&mut self, at: usize) {
        if let Some(place) = self.0.get_mut(at) {
            *place = Place::Free;
        }
        while matches!(self.0.last(), Some(Place::Free)) {
            self.0.pop();
        }
    }

    /// Who waits at this place, once.
    fn take(&mut self, at: usize) -> Option<Waker> {
        let place = self.0.get_mut(at).filter(|place| matches!(place, Place::Waiting(_)))?;
        match core::mem::replace(place, Place::Woken) {
            Place::Waiting(waker) => Some(waker),
            Place::Free | Place::Woken => None,
        }
    }
}

/// All that wait.
#[derive(Default)]
pub(crate) struct Waits {
    conns: Vec<Halves>,
    listeners: Vec<Queue>,
    udp: Vec<Option<Waker>>,
    progress: Queue,
    runner: Option<Waker>,
    /// Whether a socket gave the engine something to do since its last output.
    called: bool,
}

impl Waits {
    /// The task waits for something to read.
    pub(crate) fn read(&mut self, conn: ConnId, cx: &Context<'_>) {
        set(&mut entry(&mut self.conns, conn.index()).reader, cx.waker());
    }

    /// The task waits for room to write, or for what it wrote to arrive.
    pub(crate) fn write(&mut self, conn: ConnId, cx: &Context<'_>) {
        set(&mut entry(&mut self.conns, conn.index()).writer, cx.waker());
    }

    /// The task waits for a datagram.
    pub(crate) fn datagram(&mut self, socket: UdpId, cx: &Context<'_>) {
        set(entry(&mut self.udp, socket.index()), cx.waker());
    }

    /// The connection is given up: whoever takes its slot next starts afresh.
    pub(crate) fn forget_conn(&mut self, conn: ConnId) {
        if let Some(halves) = self.conns.get_mut(conn.index() as usize) {
            *halves = Halves::default();
        }
    }

    /// As [`Waits::forget_conn`].
    pub(crate) fn forget_udp(&mut self, socket: UdpId) {
        if let Some(waker) = self.udp.get_mut(socket.index() as usize) {
            *waker = None;
        }
    }

    /// Waits in a queue, at the place that the task has or a new one, which is returned.
    pub(crate) fn wait(&mut self, queue: QueueId, at: Option<usize>, cx: &Context<'_>) -> usize {
        self.queue(queue).wait(at, cx.waker())
    }

    /// Gives the place up.
    pub(crate) fn leave(&mut self, queue: QueueId, at: usize) {
        self.queue(queue).leave(at);
    }

    /// Places of a queue.
    pub(crate) fn places(&mut self, queue: QueueId) -> usize {
        self.queue(queue).0.len()
    }

    /// The task at a place of a queue, if it waits.
    pub(crate) fn take_queued(&mut self, queue: QueueId, at: usize) -> Option<Waker> {
        self.queue(queue).take(at)
    }

    /// The tasks that an event of a connection or UDP socket wakes.
    pub(crate) fn take(&mut self, event: Event) -> [Option<Waker>; 2] {
        match event.source {
            Source::Conn(conn) => {
                let Some(halves) = self.conns.get_mut(conn.index() as usize) else { return [None, None] };
                let over = event.ready.contains(Ready::CLOSED);
                let read = over || event.ready.intersects(Ready::READABLE | Ready::FINISHED);
                let write = over || event.ready.intersects(Ready::WRITABLE | Ready::SENT);
                [
                    if read { halves.reader.take() } else { None },
                    if write { halves.writer.take() } else { None },
                ]
            }
            Source::Udp(socket) => [self.udp.get_mut(socket.index() as usize).and_then(Option::take), None],
            Source::Listener(_) => [None, None],
        }
    }

    /// A socket gave the engine something to do.
    pub(crate) fn call(&mut self) {
        self.called = true;
    }

    /// Whether a socket did since the last time; from now on it has not.
    pub(crate) fn take_calls(&mut self) -> bool {
        core::mem::take(&mut self.called)
    }

    /// The task that runs the net, to be woken because a socket called.
    pub(crate) fn take_runner(&mut self) -> Option<Waker> {
        if self.called { self.runner.take() } else { None }
    }

    /// The task that runs the net is about to sleep. False when a socket has called.
    pub(crate) fn sleep(&mut self, cx: &Context<'_>) -> bool {
        set(&mut self.runner, cx.waker());
        !self.called
    }

    fn queue(&mut self, queue: QueueId) -> &mut Queue {
        match queue {
            QueueId::Listener(listener) => entry(&mut self.listeners, listener.index()),
            QueueId::Progress => &mut self.progress,
        }
    }
}

/// The entry of a slot; the table grows to it. Engines use low slots again first.
fn entry<T: Default>(table: &mut Vec<T>, slot: u32) -> &mut T {
    let slot = slot as usize;
    if slot >= table.len() {
        table.resize_with(slot + 1, T::default);
    }
    &mut table[slot]
}

fn set(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(known) => known.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_go_with_those_who_had_them() {
        let mut queue = Queue::default();
        let waker = Waker::noop();
        let (first, second) = (queue.wait(None, waker), queue.wait(None, waker));
        assert_eq!((first, second, queue.wait(Some(first), waker)), (0, 1, 0));
        assert!(queue.take(first).is_some() && queue.take(first).is_none(), "woken once");
        assert_eq!(queue.wait(None, waker), 2, "who was woken keeps the place");
        queue.leave(first);
        assert_eq!(queue.wait(None, waker), first);
        for at in 0..3 {
            queue.leave(at);
        }
        assert!(queue.0.is_empty());
        assert!(queue.take(7).is_none());
    }
}
