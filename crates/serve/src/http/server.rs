//! The server: listeners, connections, timers, and what they share.

use super::access_log::Scribe;
use super::cache::{self, FileCache};
use super::config::Config;
use super::connection::{Connection, Piece, Seen, State, Table};
use super::counters::{self, Counters, Gauges};
use super::drive::first_line;
use super::exchange::Exchange;
use super::listing::{ListingRules, Listings};
use super::ops::{self, Ops, Purpose};
use super::ready::ReadyAnswers;
use super::response::{Common, Status};
use crate::admission::{Admission, Census};
use crate::delivered::delivered;
use crate::{Alarms, Change, Context, Service, StartError};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_transport::{
    CloseReason, ConnId, ConnState, Event, FileDone, ListenAddr, ListenerId, Owner, Ready, Source,
};
use linerate_wire::units::{Instant, earliest};

/// Connections accepted per turn.
const ACCEPTS_PER_TURN: usize = 256;
/// Most unused buffers for heads that are kept, within the memory for heads, and the largest capacity of one.
const SPARES: usize = 64;
const SPARE_CAPACITY: usize = 4 << 10;

/// An HTTP/1.1 server for static files.
///
/// Order of calls: that of [`Service`]; [`Server::reload`] at any time after `start`.
pub struct Server {
    pub(super) owner: Owner,
    pub(super) config: Config,
    pub(super) common: Common,
    listeners: Vec<(ListenAddr, ListenerId)>,
    pub(super) table: Table,
    /// Who holds the connections of `table`, and who gives way.
    pub(super) admission: Admission,
    timers: Alarms<ConnId>,
    /// Connections that were not done with their input when their turn ended.
    ready: VecDeque<ConnId>,
    /// Listeners had more connections than were accepted in one turn.
    accept_again: bool,
    /// The addresses to listen on have changed.
    relisten: bool,
    /// Connections that wait for a place in the file cache.
    pub(super) blocked: VecDeque<ConnId>,
    /// A place may have become free.
    pub(super) wake_blocked: bool,
    /// Exchanges that wait for files.
    pub(super) resolving: usize,
    pub(super) cache: FileCache,
    /// When open files that nobody asks for are closed; `None` while there are none.
    idle_files_at: Option<Instant>,
    pub(super) ops: Ops,
    pub(super) answers: ReadyAnswers,
    pub(super) listings: Listings,
    /// Writes the lines of the access log.
    pub(super) scribe: Scribe,
    /// Output of the connection whose turn it is; empty between turns.
    pub(super) out: Vec<u8>,
    /// Unused buffers for heads.
    pub(super) spare: Vec<Vec<u8>>,
    head_memory: usize,
    pub(super) counters: Counters,
    pub(super) draining: bool,
    started: Instant,
    now: Instant,
}

impl Server {
    /// A server that has not started; `owner` is how its sockets and file operations are marked.
    pub fn new(owner: Owner, config: Config) -> Server {
        let admission = Admission::new(config.limits.connections, config.limits.connections_per_address);
        Server {
            owner,
            common: Common::new(config.server_header),
            config,
            listeners: Vec::new(),
            table: Table::default(),
            admission,
            timers: Alarms::new(),
            ready: VecDeque::new(),
            accept_again: false,
            relisten: false,
            blocked: VecDeque::new(),
            wake_blocked: false,
            resolving: 0,
            cache: FileCache::default(),
            idle_files_at: None,
            ops: Ops::new(owner),
            answers: ReadyAnswers::default(),
            listings: Listings::default(),
            scribe: Scribe::new(),
            out: Vec::new(),
            spare: Vec::new(),
            head_memory: 0,
            counters: Counters::default(),
            draining: false,
            started: Instant::ZERO,
            now: Instant::ZERO,
        }
    }

    /// The limits of connections are those of several servers together: see [`Admission::share`]. To be called before the server
    /// starts.
    pub fn share_limits(&mut self, census: Box<dyn Census>) {
        self.admission.share(census);
    }

    /// Takes new settings. Connections and requests under way go on; new bounds and deadlines hold from now on, and
    /// what was remembered of files is asked anew. Addresses that are no longer listed are closed and new ones opened
    /// at the next [`Service::handle_timeout`], which is due at once; one that cannot be listened on is logged as an
    /// error and counted in [`Counters::listen_failures`].
    pub fn reload(&mut self, config: Config) {
        self.relisten = config.listen != self.config.listen;
        self.common.server = config.server_header;
        self.admission.set_limits(config.limits.connections, config.limits.connections_per_address);
        self.config = config;
        self.cache.distrust();
        self.answers.clear();
    }

    /// Opens and closes listeners as the settings say.
    fn update_listeners(&mut self, ctx: &mut Context<'_>) {
        if !core::mem::take(&mut self.relisten) || self.draining {
            return;
        }
        // Those that wait at an address that closes are served still.
        self.accept_all(ctx, usize::MAX);
        let wanted = self.config.listen.clone();
        self.listeners.retain(|(addr, listener)| {
            let kept = wanted.contains(addr);
            if !kept {
                ctx.net.close_listener(*listener);
            }
            kept
        });
        for addr in wanted {
            if self.listeners.iter().any(|(known, _)| *known == addr) {
                continue;
            }
            match self.listen(ctx, addr, &self.config) {
                Ok(listener) => self.listeners.push((addr, listener)),
                Err(error) => {
                    self.counters.listen_failures += 1;
                    log::error!("{error}");
                }
            }
        }
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What is so now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            connections: self.table.len() as u64,
            open_files: self.cache.open_files() as u64,
            cache_entries: self.cache.len() as u64,
            cache_memory: self.cache.memory() as u64,
            head_memory: self.head_memory as u64,
            cache_hits: self.cache.hits,
            cache_misses: self.cache.misses,
            listings: self.listings.len() as u64,
        }
    }

    /// The listeners that are open now.
    pub fn listeners(&self) -> impl Iterator<Item = ListenerId> {
        self.listeners.iter().map(|(_, listener)| *listener)
    }

    pub(super) fn status_json(&self, now: Instant) -> String {
        counters::to_json(&self.counters, &self.gauges(), (now - self.started).as_secs())
    }

    // Shared means.

    /// Whether one more exchange may begin to wait for files; so few may that the cache holds all they ask for.
    pub(super) fn may_resolve(&self) -> bool {
        self.resolving < (self.config.limits.cache_entries / 8).max(1)
    }

    /// An exchange waits for files no longer.
    pub(super) fn end_resolving(&mut self, ex: &mut Exchange) {
        if core::mem::take(&mut ex.resolving) {
            self.resolving -= 1;
            self.wake_blocked = true;
        }
    }

    pub(super) fn recycle(&mut self, mut head: Vec<u8>) {
        let most = (self.config.limits.head_memory / SPARE_CAPACITY).clamp(1, SPARES);
        // An empty one would be taken before those that save an allocation.
        if self.spare.len() < most && (1..=SPARE_CAPACITY).contains(&head.capacity()) {
            head.clear();
            self.spare.push(head);
        }
    }

    /// Whether heads hold too much memory for this connection to hold what it has, and `more` bytes.
    pub(super) fn is_short_of_memory(&self, conn: &Connection, more: usize) -> bool {
        self.head_memory - conn.charged + conn.head_memory() + more > self.config.limits.head_memory
    }

    pub(super) fn queue_again(&mut self, conn: &mut Connection) {
        if !core::mem::replace(&mut conn.in_ready, true) {
            self.ready.push_back(conn.id);
        }
    }

    // Connections.

    fn listen(
        &self,
        ctx: &mut Context<'_>,
        addr: ListenAddr,
        config: &Config,
    ) -> Result<ListenerId, StartError> {
        ctx.net.listen(self.owner, addr, &config.options).map_err(|why| {
            let what = match addr.ip {
                Some(IpAddr::V6(ip)) => format!("http [{ip}]:{}", addr.port),
                Some(ip) => format!("http {ip}:{}", addr.port),
                None => format!("http port {}", addr.port),
            };
            StartError { what, why }
        })
    }

    fn begin(&mut self, ctx: &Context<'_>) {
        self.now = ctx.now;
        if self.common.set_time(ctx.wall_ns) {
            self.answers.clear();
        }
    }

    /// What is due at the end of every call.
    fn settle(&mut self, ctx: &mut Context<'_>) {
        while core::mem::take(&mut self.wake_blocked) {
            for _ in 0..self.blocked.len() {
                let Some(id) = self.blocked.pop_front() else { break };
                let before = self.blocked.len();
                if let Some(conn) = self.table.take(id) {
                    self.resume(ctx, conn);
                }
                // It is blocked again, and so would be those after it: it keeps its place.
                if self.blocked.len() > before {
                    self.blocked.rotate_right(1);
                    break;
                }
            }
        }
        if self.draining && self.table.len() == 0 {
            self.cache.clear(ctx, &mut self.ops);
        }
        self.idle_files_at = match self.cache.open_files() {
            0 => None,
            _ => self.idle_files_at.or(Some(ctx.now + cache::IDLE)),
        };
    }

    /// Closes files that nobody asks for, if it is time to look for them.
    fn close_idle_files(&mut self, ctx: &mut Context<'_>) {
        let is_due = self.idle_files_at.is_some_and(|at| at <= ctx.now);
        if !is_due && !self.cache.has_changed() {
            return;
        }
        // What is believed without asking is used as long.
        let idle = self.config.timeouts.cache.max(cache::IDLE);
        self.cache.close_idle(ctx, &mut self.ops, idle);
        self.idle_files_at = self.idle_files_at.filter(|_| !is_due);
    }

    fn accept_all(&mut self, ctx: &mut Context<'_>, mut budget: usize) {
        self.accept_again = false;
        for at in 0..self.listeners.len() {
            while budget > 0
                && let Some(id) = ctx.net.accept(self.listeners[at].1)
            {
                self.admit(ctx, id);
                budget -= 1;
            }
        }
        self.accept_again = budget == 0;
        Server::report_crowd(&mut self.admission, ctx.now);
    }

    /// Puts a connection back after its turn, with its timer and its memory accounted for.
    pub(super) fn keep(&mut self, mut conn: Box<Connection>) {
        debug_assert!(self.out.is_empty(), "the next connection would send it");
        let memory = conn.head_memory();
        self.head_memory = self.head_memory - conn.charged + memory;
        conn.charged = memory;
        self.admission.place(conn.id, conn.standing(), conn.since);
        let deadline = conn.deadline(&self.config.timeouts);
        // Later deadlines wait until the timer fires: most are put off many times before.
        if deadline < conn.armed {
            self.timers.set(conn.id, conn.armed, deadline);
            conn.armed = deadline;
        }
        self.table.put_back(conn);
    }

    /// Gives back what a connection held that the transport has got back already.
    pub(super) fn drop_conn(&mut self, ctx: &mut Context<'_>, mut conn: Box<Connection>) {
        // What was gathered for it when it broke is nobody else's.
        self.out.clear();
        self.timers.clear(conn.id, conn.armed);
        self.head_memory -= conn.charged;
        self.admission.remove(conn.id);
        if let State::Listing(slot) = conn.state {
            self.listings.abandon(slot);
        }
        self.drop_those_on_their_way(ctx, &mut conn);
        if let Some(file) = conn.file.take() {
            self.let_go(ctx, file);
        }
        self.counters.aborted += u64::from(conn.exchange.is_some() || !conn.head.is_empty());
        if let Some(mut ex) = conn.exchange.take() {
            self.end_resolving(&mut ex);
            self.recycle(ex.head);
        }
        self.recycle(core::mem::take(&mut conn.head));
        self.table.forget(conn);
    }

    fn handle_conn(&mut self, ctx: &mut Context<'_>, id: ConnId, ready: Ready) {
        let Some(mut conn) = self.table.take(id) else { return };
        if !ready.contains(Ready::CLOSED) {
            return self.drive(ctx, conn);
        }
        if ctx.net.state(id) == ConnState::Closed(CloseReason::File) {
            self.counters.files_changed += 1;
            // What is believed of it promises more than there is to everybody who asks.
            self.cache.distrust();
        }
        self.log_cut(ctx, &mut conn);
        ctx.net.close(id);
        self.drop_conn(ctx, conn);
    }

    /// Logs responses that were begun and do not come to their end, with what went out of them.
    fn log_cut(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        self.cut_those_on_their_way(ctx, conn);
        if let Some(ex) = conn.exchange.take_if(|ex| ex.status.is_some()) {
            let to_hand_over: u64 = conn.pieces.iter().map(Piece::len).sum();
            let moved = delivered(ctx.net, conn.id, conn.queued);
            let sent = ex.content.saturating_sub(conn.queued - moved + to_hand_over);
            self.counters.content_sent += sent;
            self.log_exchange(ctx, conn, &ex, sent);
            conn.exchange = Some(ex);
        }
    }

    // Time.

    fn expire(&mut self, ctx: &mut Context<'_>, id: ConnId) {
        let Some(mut conn) = self.table.take(id) else { return };
        conn.armed = Instant::FAR_FUTURE;
        if conn.deadline(&self.config.timeouts) > ctx.now {
            return self.keep(conn);
        }
        let patience = self.config.timeouts.progress_bytes;
        match conn.state {
            State::Head if conn.head.is_empty() => {
                self.counters.idle_timeouts += 1;
                ctx.net.close(id);
                self.drop_conn(ctx, conn);
            }
            State::Head => {
                self.counters.head_timeouts += 1;
                let head = core::mem::take(&mut conn.head);
                self.time_out(ctx, conn, Status::RequestTimeout, first_line(&head));
                self.recycle(head);
            }
            State::Resolving | State::Listing(_) => {
                self.counters.file_timeouts += 1;
                if let State::Listing(slot) = conn.state {
                    self.listings.abandon(slot);
                }
                self.time_out(ctx, conn, Status::Unavailable, &[]);
            }
            State::Body(body) => {
                let received = conn.received;
                if received - conn.mark >= patience {
                    conn.enter(State::Body(body), ctx.now, received);
                    return self.keep(conn);
                }
                self.counters.progress_timeouts += 1;
                self.time_out(ctx, conn, Status::RequestTimeout, &[]);
            }
            State::Sending => {
                let moved = self.moved(ctx, &conn);
                if moved.saturating_sub(conn.mark) >= patience {
                    conn.enter(State::Sending, ctx.now, moved);
                    return self.keep(conn);
                }
                self.counters.progress_timeouts += 1;
                self.log_cut(ctx, &mut conn);
                ctx.net.abort(id);
                self.drop_conn(ctx, conn);
            }
            State::Lingering(_) => {
                ctx.net.close(id);
                self.drop_conn(ctx, conn);
            }
        }
    }

    // The end.

    fn close_idle(&mut self, ctx: &mut Context<'_>) {
        for id in self.table.ids() {
            let Some(conn) = self.table.take(id) else { continue };
            // What has arrived is answered first. A client that has nothing under way is not waited for.
            if conn.is_idle() && ctx.net.peek(id).is_empty() {
                ctx.net.close(id);
                self.drop_conn(ctx, conn);
            } else {
                self.drive(ctx, conn);
            }
        }
    }

    fn rules(&self) -> ListingRules {
        ListingRules { entries: self.config.limits.listing_entries, hidden: self.config.hidden_files }
    }
}

impl Service for Server {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        self.begin(ctx);
        self.started = ctx.now;
        for addr in self.config.listen.clone() {
            match self.listen(ctx, addr, &self.config) {
                Ok(listener) => self.listeners.push((addr, listener)),
                Err(error) => {
                    for (_, listener) in self.listeners.drain(..) {
                        ctx.net.close_listener(listener);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        // That a response has left is of no interest between requests; it is the second event of nearly every one.
        if let Source::Conn(id) = event.source
            && event.ready == Ready::SENT
            && self.table.get(id).is_some_and(|seen| match seen {
                Seen::Resting => true,
                Seen::Working(conn) => conn.awaits_request(),
            })
        {
            return;
        }
        self.begin(ctx);
        match event.source {
            Source::Listener(_) => self.accept_all(ctx, ACCEPTS_PER_TURN),
            Source::Conn(id) => self.handle_conn(ctx, id, event.ready),
            Source::Udp(_) => {}
        }
        self.settle(ctx);
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        self.begin(ctx);
        self.ops.done();
        match Purpose::from_tag(done.tag) {
            Purpose::Entry(slot) => {
                let woken = self.cache.handle_done(ctx, &mut self.ops, &self.config, slot, done.result);
                for id in woken {
                    if let Some(conn) = self.table.take(id) {
                        self.resume(ctx, conn);
                    }
                }
                self.wake_blocked = true;
            }
            Purpose::Listing(slot) => {
                let rules = self.rules();
                let listed = self.listings.handle_done(ctx, &mut self.ops, rules, slot, done.result);
                if let Some(listed) = listed
                    && let Some(conn) = self.table.take(listed.conn)
                {
                    self.resume_listing(ctx, conn, listed.page);
                }
            }
            Purpose::Close => {}
        }
        self.ops.retry(ctx);
        self.settle(ctx);
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        self.begin(ctx);
        self.ops.retry(ctx);
        self.update_listeners(ctx);
        if self.accept_again {
            self.accept_all(ctx, ACCEPTS_PER_TURN);
        }
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { break };
            if let Some(mut conn) = self.table.take(id) {
                conn.in_ready = false;
                self.drive(ctx, conn);
            }
        }
        while let Some(id) = self.timers.pop_expired(ctx.now) {
            self.expire(ctx, id);
        }
        self.close_idle_files(ctx);
        self.settle(ctx);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.accept_again || self.relisten || !self.ready.is_empty() || self.cache.has_changed() {
            return Some(self.now);
        }
        let retry = self.ops.has_waiting().then(|| self.now + ops::RETRY);
        earliest([self.timers.next(), retry, self.idle_files_at])
    }

    fn handle_change(&mut self, change: &Change) {
        self.cache.handle_change(change);
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.begin(ctx);
        self.draining = true;
        self.accept_all(ctx, usize::MAX);
        for (_, listener) in self.listeners.drain(..) {
            ctx.net.close_listener(listener);
        }
        self.accept_again = false;
        self.close_idle(ctx);
        self.settle(ctx);
    }

    fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.begin(ctx);
        for id in self.table.ids() {
            let Some(mut conn) = self.table.take(id) else { continue };
            if conn.exchange.is_none() && conn.on_their_way.is_empty() {
                self.table.put_back(conn);
                continue;
            }
            self.log_cut(ctx, &mut conn);
            ctx.net.abort(id);
            self.drop_conn(ctx, conn);
        }
    }

    fn is_idle(&self) -> bool {
        self.table.len() == 0 && self.ops.is_idle() && self.cache.open_files() == 0
    }
}
