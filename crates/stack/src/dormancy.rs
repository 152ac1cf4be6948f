//! Connections on which nothing happens take little memory: their state is kept in a few hundred bytes
//! ([`Dormant`]), and the rest of it is used by others.
//!
//! A connection is awake while anything is done with it, and for a while after: one part in [`SHARE`] of the table may be
//! awake for no reason. Beyond that, those that nobody touched between two looks, a quarter of a second apart or more, fall
//! asleep. A crowd that comes at once does not wait for that: while more than an eighth of the table is awake, and more than a 32nd of
//! the sockets' memory would hold, each newcomer sends others to sleep. Waking is building a value in a place on the heap that was used before.

use crate::conns::{About, Conn, Conns, Stage};
use crate::stack::Stack;
use crate::tcp::{Config, Connection, Details, Dormant, Queues, Resources, SegmentIn, State};
use crate::timers::Timer;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use linerate_transport::{ConnId, ConnInfo, ConnState, LimitCause};
use linerate_wire::units::Instant;

/// One connection in this many slots may be awake for no reason; as many places are kept for those that wake up.
const SHARE: usize = 128;
/// Places that are kept however small the table is.
const LEAST_PLACES: usize = 8;
/// Places and queues that are kept whoever is awake, for one that comes as another goes.
const SPARED: usize = 2;
/// Between two looks at those that are awake, at least.
const INTERVAL: Duration = Duration::from_millis(250);
/// After so long there is a look though nothing happens.
const AT_LAST: Duration = Duration::from_secs(1);
/// Looks in one turn; the next turn comes soon if that was not enough.
const LOOKS: usize = 1_024;
const SOON: Duration = Duration::from_millis(25);
/// One to see that it was touched, one to send it to sleep, and one for what takes a second to be over.
const LOOKS_AT_EACH: usize = 3;
/// More than one connection in this many awake beyond that is a crowd,
const CROWD: usize = 8;
/// unless all that are awake take less than one part in this many of the memory that sockets may hold.
const MEMORY: usize = 32;
/// How many a newcomer sends to sleep while a crowd comes.
const CROWD_LOOKS: usize = 2;

/// A place on the heap for a connection that is awake.
pub(crate) type Place = Box<Option<Connection>>;

/// A connection, awake or not.
#[expect(clippy::large_enum_variant, reason = "what is asleep lies in the table, what is awake need not")]
pub(crate) enum Tcp {
    Awake(Place),
    Asleep(Dormant),
}

/// A connection that is awake, with what the stack knows of it.
pub(crate) struct Awake<'a> {
    pub(crate) tcp: &'a mut Connection,
    about: &'a mut About,
}

impl Awake<'_> {
    /// Both at once.
    pub(crate) fn parts(&mut self) -> (&mut Connection, &About) {
        (self.tcp, self.about)
    }
}

impl Deref for Awake<'_> {
    type Target = About;

    fn deref(&self) -> &About {
        self.about
    }
}

impl DerefMut for Awake<'_> {
    fn deref_mut(&mut self) -> &mut About {
        self.about
    }
}

/// Who is awake.
pub(crate) struct Wakefulness {
    /// Slots that were found awake, those that were looked at longest ago first; some may be asleep or gone.
    round: crate::ring::Ring,
    /// Connections awake.
    awake: usize,
    /// How many may be for no reason.
    usual: usize,
    /// More of them are a crowd.
    crowd: usize,
    /// Places for those that begin or wake up,
    places: Vec<Place>,
    /// and what was left of the queues of those that had them.
    queues: Vec<Queues>,
    /// So many of both stay there whoever is awake.
    spared: usize,
    /// Not to be looked at before.
    next_look: Instant,
    /// Something came since the last look.
    is_stirred: bool,
    /// So many looks at single connections are due before nothing more can change by itself.
    due: usize,
    /// Whether the timer runs.
    is_watched: bool,
}

impl Wakefulness {
    /// Nobody is there, and `connections` may be, whose sockets may hold `memory` bytes.
    pub(crate) fn new(connections: usize, memory: usize) -> Wakefulness {
        let usual = connections / SHARE;
        Wakefulness {
            round: crate::ring::Ring::new(connections),
            awake: 0,
            usual,
            crowd: usual + (connections / CROWD).max(memory / MEMORY / size_of::<Option<Connection>>()),
            places: Vec::with_capacity(usual.max(LEAST_PLACES)),
            queues: Vec::with_capacity(SPARED),
            spared: (connections / CROWD).clamp(1, SPARED),
            next_look: Instant::ZERO,
            is_stirred: false,
            due: 0,
            is_watched: false,
        }
    }

    /// Whether more are awake than may be for no reason, and it may help to look at them: where nothing comes, it does not
    /// for ever.
    fn are_many(&self) -> bool {
        self.awake > self.usual && (self.is_stirred || self.due > 0)
    }

    /// Something came.
    pub(crate) fn stir(&mut self) {
        self.is_stirred = true;
    }

    #[inline]
    fn awake<'a>(&mut self, slot: u32, conn: &'a mut Conn, resources: &Resources) -> Option<Awake<'a>> {
        let Conn { tcp, about } = conn;
        if let Tcp::Asleep(_) = tcp {
            self.wake(slot, tcp, about, resources);
        }
        about.is_touched = true;
        match tcp {
            Tcp::Awake(place) => Some(Awake { tcp: place.as_mut().as_mut()?, about }),
            Tcp::Asleep(_) => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&mut self, slot: u32, tcp: &mut Tcp, about: &About, resources: &Resources) {
        let place = self.take_place();
        if let Tcp::Asleep(dormant) = core::mem::replace(tcp, Tcp::Awake(place))
            && let Tcp::Awake(place) = tcp
        {
            let awake = place.insert(dormant.wake(resources, about.flow.ends()));
            awake.lend(self.queues.pop().unwrap_or_default());
            self.awake += 1;
            self.round.push(slot);
            self.stir();
        }
    }

    fn take_place(&mut self) -> Place {
        self.places.pop().unwrap_or_default()
    }

    fn give_back(&mut self, mut place: Place) {
        if self.queues.len() < self.spared
            && let Some(tcp) = place.as_mut()
        {
            self.queues.push(tcp.take_queues());
        }
        *place = None;
        // Those that are awake for no reason and the places for others share one bound, but for some.
        let kept = self.places.len();
        if kept < self.spared || self.awake + kept < self.usual.max(LEAST_PLACES) {
            self.places.push(place);
        }
    }

    /// Bytes that connections take while they are awake, and what is kept for others.
    fn bytes(&self) -> usize {
        let queues: usize = self.queues.iter().map(Queues::bytes).sum();
        (self.awake + self.places.len()) * size_of::<Option<Connection>>() + queues
    }
}

impl Conns {
    /// The connection in a slot, awake.
    #[inline]
    pub(crate) fn awake(&mut self, slot: u32) -> Option<Awake<'_>> {
        let conn = self.table.at_mut(slot)?;
        self.wakefulness.awake(slot, conn, &self.resources)
    }

    /// The connection that an owner means by `id`, awake.
    #[inline]
    pub(crate) fn owned_awake(&mut self, id: ConnId) -> Option<Awake<'_>> {
        let conn = self.table.find_mut(id.index(), id.generation())?;
        if conn.stage != Stage::Owned {
            return None;
        }
        self.wakefulness.awake(id.index(), conn, &self.resources)
    }

    /// A place for a connection to be made in.
    pub(crate) fn free_place(&mut self) -> Place {
        self.wakefulness.take_place()
    }

    /// Nothing came of the connection.
    pub(crate) fn give_back(&mut self, place: Place) {
        self.wakefulness.give_back(place);
    }

    /// The connection in this place gets a slot, and is awake.
    pub(crate) fn settle_in(&mut self, mut place: Place) -> Tcp {
        if let Some(tcp) = place.as_mut() {
            tcp.lend(self.wakefulness.queues.pop().unwrap_or_default());
        }
        self.wakefulness.awake += 1;
        Tcp::Awake(place)
    }

    /// A connection has its slot; while a crowd comes, others fall asleep.
    pub(crate) fn welcome(&mut self, slot: u32, now: Instant) {
        self.wakefulness.round.push(slot);
        self.wakefulness.stir();
        for _ in 0..CROWD_LOOKS {
            if self.wakefulness.awake > self.wakefulness.crowd
                && let Some(slot) = self.wakefulness.round.pop()
            {
                self.look(slot, now, true);
            }
        }
    }

    /// Takes a connection out of the table.
    pub(crate) fn remove(&mut self, slot: u32) {
        if let Some(Conn { tcp: Tcp::Awake(place), .. }) = self.table.remove(slot) {
            self.wakefulness.awake -= 1;
            self.wakefulness.give_back(place);
        }
    }

    /// Lets a connection fall asleep if it is quiet and nobody touched it since the last look; `at_once`: even if somebody did.
    pub(crate) fn look(&mut self, slot: u32, now: Instant, at_once: bool) {
        let Some(Conn { tcp, about }) = self.table.at_mut(slot) else { return };
        let Tcp::Awake(place) = tcp else { return };
        let is_left_alone = !core::mem::take(&mut about.is_touched);
        let dormant = match place.as_mut() {
            Some(awake) if is_left_alone || at_once => awake.fall_asleep(now),
            _ => None,
        };
        let Some(dormant) = dormant else { return self.wakefulness.round.push(slot) };
        if let Tcp::Awake(place) = core::mem::replace(tcp, Tcp::Asleep(dormant)) {
            self.wakefulness.awake -= 1;
            self.wakefulness.give_back(place);
        }
    }

    /// Looks at those that are awake; see the module.
    fn look_around(&mut self, now: Instant) {
        let all = self.wakefulness.round.len();
        if core::mem::take(&mut self.wakefulness.is_stirred) {
            self.wakefulness.due = LOOKS_AT_EACH * all;
        }
        self.wakefulness.due = self.wakefulness.due.saturating_sub(all.min(LOOKS));
        for _ in 0..all.min(LOOKS) {
            let Some(slot) = self.wakefulness.round.pop() else { break };
            self.look(slot, now, false);
        }
        self.wakefulness.next_look = now + if all > LOOKS { SOON } else { INTERVAL };
    }

    /// Bytes that connections take: their slots, and what lies elsewhere while they are awake.
    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes() + self.wakefulness.bytes()
    }
}

impl Stack {
    /// Looks at those that are awake, if they are many and it is time. Called once for each batch that may have changed it;
    /// where nothing comes, by a timer.
    #[inline]
    pub(crate) fn watch_dormancy(&mut self) {
        if self.conns.wakefulness.are_many() {
            self.send_to_sleep();
        }
    }

    #[inline(never)]
    fn send_to_sleep(&mut self) {
        let now = self.net.now;
        if now >= self.conns.wakefulness.next_look {
            self.conns.look_around(now);
        }
        let wakefulness = &mut self.conns.wakefulness;
        if !wakefulness.is_watched && wakefulness.are_many() {
            wakefulness.is_watched = true;
            let at = if wakefulness.round.len() > LOOKS { wakefulness.next_look } else { now + AT_LAST };
            self.net.timers.set(Timer::Dormancy, Some(at));
        }
    }

    /// Nothing else may happen any more.
    pub(crate) fn run_dormancy(&mut self) {
        self.conns.wakefulness.is_watched = false;
        self.watch_dormancy();
    }
}

/// What can be asked of a connection whether or not it is awake, as of [`Connection`].
impl Tcp {
    fn ask<T>(&self, awake: impl FnOnce(&Connection) -> T, asleep: impl FnOnce(&Dormant) -> T) -> Option<T> {
        match self {
            Tcp::Awake(place) => place.as_ref().as_ref().map(awake),
            Tcp::Asleep(dormant) => Some(asleep(dormant)),
        }
    }

    /// The connection if it is awake, to change.
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Tcp::Awake(place) => place.as_mut().as_mut(),
            Tcp::Asleep(_) => None,
        }
    }

    /// The connection if it is awake.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Tcp::Awake(place) => place.as_ref().as_ref(),
            Tcp::Asleep(_) => None,
        }
    }

    pub(crate) fn is_asleep(&self) -> bool {
        matches!(self, Tcp::Asleep(_))
    }

    pub(crate) fn tcp_state(&self) -> State {
        self.ask(Connection::tcp_state, Dormant::tcp_state).unwrap_or(State::Closed)
    }

    pub(crate) fn config(&self) -> Option<&Rc<Config>> {
        match self {
            Tcp::Awake(place) => place.as_ref().as_ref().map(Connection::config),
            Tcp::Asleep(dormant) => Some(dormant.config()),
        }
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        self.ask(Connection::progress, Dormant::progress).unwrap_or_default()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.ask(Connection::poll_timeout, Dormant::poll_timeout).flatten()
    }

    pub(crate) fn path_mss(&self) -> Option<u16> {
        self.ask(Connection::path_mss, Dormant::path_mss)
    }

    pub(crate) fn time_wait_end(&self) -> Option<Instant> {
        self.ask(Connection::time_wait_end, Dormant::time_wait_end).flatten()
    }

    pub(crate) fn limited_by(&self) -> Option<LimitCause> {
        self.ask(Connection::limited_by, Dormant::limited_by).flatten()
    }

    pub(crate) fn state(&self) -> Option<ConnState> {
        self.ask(Connection::state, Dormant::state)
    }

    pub(crate) fn send_memory(&self) -> usize {
        self.connection().map_or(0, Connection::send_memory)
    }

    pub(crate) fn receive_memory(&self) -> usize {
        self.connection().map_or(0, Connection::receive_memory)
    }

    pub(crate) fn readable(&self) -> usize {
        self.connection().map_or(0, Connection::readable)
    }

    pub(crate) fn unsent(&self) -> u64 {
        self.connection().map_or(0, Connection::unsent)
    }

    #[inline]
    pub(crate) fn peek(&self) -> &[u8] {
        self.connection().map_or(&[], Connection::peek)
    }

    pub(crate) fn received(&self) -> impl Iterator<Item = &[u8]> {
        self.connection().into_iter().flat_map(Connection::received)
    }

    /// Nothing came for a while: what was promised does not count any more, and what waits for data before it is dropped. Says
    /// whether anything was.
    pub(crate) fn rest(&mut self) -> bool {
        match self {
            Tcp::Awake(place) => place.as_mut().as_mut().is_some_and(|tcp| {
                tcp.rest();
                tcp.drop_out_of_order()
            }),
            Tcp::Asleep(dormant) => {
                dormant.rest();
                false
            }
        }
    }

    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        self.connection().and_then(Connection::stalled_since)
    }

    /// Looks at the connection as it would be if it were awake. For rare questions.
    fn look<T>(&self, resources: &Resources, about: &About, see: impl FnOnce(&Connection) -> T) -> Option<T> {
        match self {
            Tcp::Awake(place) => place.as_ref().as_ref().map(see),
            Tcp::Asleep(dormant) => Some(see(&dormant.look(resources, about.flow.ends()))),
        }
    }
}

impl Conn {
    pub(crate) fn info(&self, resources: &Resources, now: Instant) -> Option<ConnInfo> {
        self.tcp.look(resources, &self.about, |tcp| tcp.info(now))
    }

    pub(crate) fn details(&self, resources: &Resources, now: Instant) -> Option<Details> {
        self.tcp.look(resources, &self.about, |tcp| tcp.details(now))
    }

    pub(crate) fn sendable(&self, resources: &Resources) -> usize {
        self.tcp.look(resources, &self.about, Connection::sendable).unwrap_or(0)
    }

    pub(crate) fn may_reopen(&self, resources: &Resources, segment: &SegmentIn) -> bool {
        self.tcp.look(resources, &self.about, |tcp| tcp.may_reopen(segment)).unwrap_or(false)
    }

    /// What was counted.
    #[cfg(test)]
    pub(crate) fn counters(&self, resources: &Resources) -> crate::tcp::Counters {
        self.tcp.look(resources, &self.about, |tcp| *tcp.counters()).unwrap_or_default()
    }
}
