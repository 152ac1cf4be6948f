//! The server: listeners, sessions by number, and the events handed to them.

use super::config::{Config, ConfigError};
use super::hub::{Hub, JobId, Key, Kind, SessionId, Turn};
use super::login::limit_key;
use super::session::{Session, discard};
use super::stats::Stats;
use crate::admission::{self, Admission};
use crate::{Change, Context, Service, StartError};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::mem;
use core::net::IpAddr;
use linerate_transport::{
    Event, FileDone, ListenAddr, ListenOptions, ListenerId, Owner, Source, VirtualPath,
};
use linerate_wire::units::Instant;

/// An FTP server (RFC 959, 1123, 2389, 2428, 3659). See [`Service`] for the order of calls.
pub struct Server {
    pub(super) hub: Hub,
    listeners: Vec<(ListenAddr, ListenerId)>,
    pub(super) sessions: BTreeMap<SessionId, Box<Session>>,
    /// Who has the sessions, by their control connections, and which give way.
    pub(super) admission: Admission,
    next_session: SessionId,
    /// Sessions that are over and count until their wrong password would have been answered, so that leaving early
    /// speeds up no guessing.
    parked: BTreeMap<(Instant, SessionId), IpAddr>,
    /// How many of them by address, in the sense of the limit.
    parked_of: BTreeMap<IpAddr, usize>,
    /// Kept for its allocation.
    due: Vec<Key>,
}

impl Server {
    /// A server whose sockets and file operations belong to `owner`. An error names what is wrong with the settings.
    pub fn new(owner: Owner, config: Config) -> Result<Server, ConfigError> {
        config.validate()?;
        let admission = Admission::new(config.limits.sessions, config.limits.sessions_per_address);
        Ok(Server {
            hub: Hub::new(owner, config),
            listeners: Vec::new(),
            sessions: BTreeMap::new(),
            admission,
            next_session: 0,
            parked: BTreeMap::new(),
            parked_of: BTreeMap::new(),
            due: Vec::new(),
        })
    }

    /// Applies new settings: to new sessions, and to the next command of those under way, none of which is dropped.
    /// Listeners that are no longer named are closed, new ones opened. On an error nothing has changed.
    pub fn reload(&mut self, ctx: &mut Context<'_>, config: Config) -> Result<(), ReloadError> {
        config.validate().map_err(ReloadError::Config)?;
        let mut listeners = Vec::new();
        for addr in &config.listen {
            let kept = self.listeners.iter().find(|(old, _)| old == addr);
            let opened = match kept {
                Some((_, listener)) => Ok(*listener),
                None => listen(ctx, self.hub.owner, *addr, &config),
            };
            match opened {
                Ok(listener) => listeners.push((*addr, listener)),
                Err(error) => {
                    let new = listeners.iter().filter(|entry| !self.listeners.contains(entry));
                    new.for_each(|(_, listener)| ctx.net.close_listener(*listener));
                    return Err(ReloadError::Listen(error));
                }
            }
        }
        for entry in self.listeners.iter().filter(|entry| !listeners.contains(entry)) {
            ctx.net.close_listener(entry.1);
        }
        self.listeners = listeners;
        self.admission.set_limits(config.limits.sessions, config.limits.sessions_per_address);
        self.hub.config = Rc::new(config);
        Ok(())
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.hub.config
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.hub.stats
    }

    /// Sessions under way.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Lets a session act, and forgets it if it is over then.
    pub(super) fn with(
        &mut self,
        ctx: &mut Context<'_>,
        id: SessionId,
        act: impl FnOnce(&mut Session, &mut Turn<'_, '_>),
    ) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        act(session, &mut Turn { hub: &mut self.hub, ctx });
        let control = session.control;
        if session.over {
            let key = limit_key(session.peer.ip());
            let until = session.refusing_until.filter(|until| *until > ctx.now);
            self.sessions.remove(&id);
            self.admission.remove(control);
            if let Some(until) = until {
                self.parked.insert((until, id), key);
                *self.parked_of.entry(key).or_insert(0) += 1;
                self.set_parked_timer();
            }
        } else {
            let (standing, since) = session.standing();
            self.admission.place(control, standing, since);
        }
        self.start_checks(ctx);
    }

    /// A parked session of this address counts no longer.
    fn forget_one_of(&mut self, key: IpAddr) {
        if let Some(count) = self.parked_of.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.parked_of.remove(&key);
            }
        }
    }

    /// Sessions of this address that are over and count still.
    pub(super) fn parked_of(&self, key: IpAddr) -> usize {
        self.parked_of.get(&key).copied().unwrap_or(0)
    }

    fn set_parked_timer(&mut self) {
        if let Some(((until, _), _)) = self.parked.first_key_value() {
            self.hub.deadlines.set(Key::Parked, *until);
        }
    }

    fn expire_parked(&mut self, now: Instant) {
        while let Some(entry) = self.parked.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.forget_one_of(key);
        }
        self.set_parked_timer();
    }

    /// Has passwords checked, as many at once as may be.
    fn start_checks(&mut self, ctx: &mut Context<'_>) {
        while let Some(id) = self.hub.checks.begin(self.hub.config.limits.password_checks) {
            let mut turn = Turn { hub: &mut self.hub, ctx };
            let begun = self.sessions.get_mut(&id).is_some_and(|session| session.begin_check(&mut turn));
            if !begun {
                // The client is gone.
                self.hub.checks.end();
            }
        }
    }

    /// Whether half of the sessions that the address may have only wait for the answer to a wrong password. Where
    /// somebody has given a right one lately the other half is for him.
    pub(super) fn is_guessing(&self, key: IpAddr, now: Instant) -> bool {
        let half = self.hub.config.limits.sessions_per_address.div_ceil(2);
        let total = self.admission.held_by(admission::Source::of(key)) + self.parked_of(key);
        if total < half || self.hub.throttle.is_known(key, now) {
            return false;
        }
        let here =
            |session: &Session| session.refusing_until.is_some() && limit_key(session.peer.ip()) == key;
        let refusing = self.sessions.values().filter(|session| here(session)).count();
        refusing + self.parked_of(key) >= half
    }

    fn accept(&mut self, ctx: &mut Context<'_>, listener: ListenerId) {
        while let Some(conn) = ctx.net.accept(listener) {
            self.greet(ctx, conn);
        }
    }

    /// A number that no session has.
    pub(super) fn next_session_id(&mut self) -> SessionId {
        while self.sessions.contains_key(&self.next_session) {
            self.next_session = self.next_session.wrapping_add(1);
        }
        let id = self.next_session;
        self.next_session = id.wrapping_add(1);
        id
    }
}

fn listen(
    ctx: &mut Context<'_>,
    owner: Owner,
    addr: ListenAddr,
    config: &Config,
) -> Result<ListenerId, StartError> {
    let options =
        ListenOptions { backlog: config.backlog, socket: config.socket.clone(), ..ListenOptions::default() };
    ctx.net.listen(owner, addr, &options).map_err(|why| {
        let what = match addr.ip {
            Some(IpAddr::V6(ip)) => format!("ftp [{ip}]:{}", addr.port),
            Some(ip) => format!("ftp {ip}:{}", addr.port),
            None => format!("ftp *:{}", addr.port),
        };
        StartError { what, why }
    })
}

#[cfg(test)]
impl Server {
    /// The most bytes that one client made his session hold on its control connection.
    pub(super) fn held_len(&self) -> usize {
        self.sessions.values().map(|session| session.held_len()).max().unwrap_or(0)
    }
}

/// Why new settings were not applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReloadError {
    /// They are wrong in themselves.
    Config(ConfigError),
    /// A new address cannot be listened on.
    Listen(StartError),
}

impl core::fmt::Display for ReloadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ReloadError::Config(error) => error.fmt(f),
            ReloadError::Listen(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReloadError {}

impl Service for Server {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        self.hub.started_ns = ctx.wall_ns;
        let config = Rc::clone(&self.hub.config);
        for addr in &config.listen {
            match listen(ctx, self.hub.owner, *addr, &config) {
                Ok(listener) => self.listeners.push((*addr, listener)),
                Err(error) => {
                    for (_, listener) in mem::take(&mut self.listeners) {
                        ctx.net.close_listener(listener);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        match event.source {
            Source::Listener(listener) => match self.hub.data_listeners.get(&listener).copied() {
                Some(id) => self.with(ctx, id, |session, turn| session.on_data_listener(turn)),
                None => self.accept(ctx, listener),
            },
            Source::Conn(conn) => {
                let Some(id) = self.hub.conns.get(&conn).copied() else { return };
                self.with(ctx, id, |session, turn| {
                    if conn == session.control {
                        session.on_control(turn, event.ready);
                    } else {
                        session.on_data(turn, conn, event.ready);
                    }
                });
            }
            Source::Udp(_) => {}
        }
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        let mut turn = Turn { hub: &mut self.hub, ctx };
        turn.resubmit();
        let Some((job, kind)) = JobId::from_tag(done.tag) else { return };
        if kind == Kind::Check {
            turn.hub.checks.end();
        }
        if self.sessions.contains_key(&job.session) {
            self.with(ctx, job.session, |session, turn| session.on_file(turn, job, kind, done.result));
        } else {
            // Somebody has left in the middle of something that changed who knows what.
            if matches!(kind, Kind::Publish | Kind::Path | Kind::Truncate) {
                turn.hub.changes.push(Change::Tree(VirtualPath::root()));
            }
            discard(&mut turn, job, done.result);
        }
        self.start_checks(ctx);
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        let mut due = mem::take(&mut self.due);
        while let Some(key) = self.hub.deadlines.pop_expired(ctx.now) {
            due.push(key);
        }
        for key in due.drain(..) {
            match key {
                Key::Files => Turn { hub: &mut self.hub, ctx }.resubmit(),
                Key::Parked => self.expire_parked(ctx.now),
                Key::Session(id, timer) => self.with(ctx, id, |session, turn| session.on_timer(turn, timer)),
            }
        }
        self.due = due;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.deadlines.next()
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.hub.changes.pop()
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.hub.draining = true;
        for (_, listener) in mem::take(&mut self.listeners) {
            ctx.net.close_listener(listener);
        }
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.with(ctx, id, |session, turn| session.progress(turn));
        }
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty() && !self.hub.has_waiting_operations()
    }
}
