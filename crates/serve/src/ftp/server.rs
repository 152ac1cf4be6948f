//! The server: listeners, sessions by number, and the events handed to them.

use super::config::{Config, ConfigError};
use super::drive;
use super::hub::{JobId, Key, Kind, SessionId, Turn};
use super::names::UploadNames;
use super::sessions::Sessions;
use super::stats::Stats;
use crate::admission::Census;
use crate::{Change, Context, Service, StartError};
use alloc::boxed::Box;
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
    listeners: Vec<(ListenAddr, ListenerId)>,
    sessions: Sessions,
    /// Kept for its allocation.
    due: Vec<Key>,
}

impl Server {
    /// A server whose sockets and file operations belong to `owner`. An error names what is wrong with the settings.
    pub fn new(owner: Owner, config: Config) -> Result<Server, ConfigError> {
        config.validate()?;
        Ok(Server { listeners: Vec::new(), sessions: Sessions::new(owner, config), due: Vec::new() })
    }

    /// Several servers over the same files have their limits of sessions in common (see
    /// [`Admission::share`](crate::admission::Admission::share)), and the names that are being uploaded to. To be called before
    /// the server starts.
    pub fn share(&mut self, census: Box<dyn Census>, uploads: Box<dyn UploadNames>) {
        self.sessions.share_limits(census);
        self.sessions.hub.uploads = uploads;
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
                None => listen(ctx, self.sessions.hub.owner, *addr, &config),
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
        self.sessions.configure(config);
        Ok(())
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.sessions.hub.config
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.sessions.hub.stats
    }

    /// Writes the log's lines of uploads that were cut off and are not known to be written: for an end that waits no longer.
    pub fn tell_unsaved(&mut self, now: Instant) {
        self.sessions.leaving.tell_all(now);
    }

    /// Sessions under way.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn accept(&mut self, ctx: &mut Context<'_>, listener: ListenerId) {
        while let Some(conn) = ctx.net.accept(listener) {
            self.sessions.greet(ctx, conn);
        }
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
        self.sessions.held_len()
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
        self.sessions.hub.started_ns = ctx.wall_ns;
        let config = Rc::clone(&self.sessions.hub.config);
        for addr in &config.listen {
            match listen(ctx, self.sessions.hub.owner, *addr, &config) {
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
            Source::Listener(listener) => match self.sessions.hub.data_listeners.get(&listener).copied() {
                Some(id) => self.sessions.with(ctx, id, drive::on_data_listener),
                None => self.accept(ctx, listener),
            },
            Source::Conn(conn) => {
                let Some(id) = self.sessions.hub.conns.get(&conn).copied() else { return };
                self.sessions.with(ctx, id, |session, turn| drive::on_conn(session, turn, conn, event.ready));
            }
            Source::Udp(_) => {}
        }
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        Turn { hub: &mut self.sessions.hub, ctx }.resubmit();
        let Some((job, kind)) = JobId::from_tag(done.tag) else { return };
        if kind == Kind::Check {
            self.sessions.hub.checks.end();
        }
        if self.sessions.contains(job.session) {
            self.sessions.with(ctx, job.session, |session, turn| {
                drive::on_file(session, turn, job, kind, done.result);
            });
        } else {
            // Somebody has left in the middle of something that changed who knows what.
            if matches!(kind, Kind::Publish | Kind::Path | Kind::Truncate) {
                self.sessions.hub.changes.push(Change::Tree(VirtualPath::root()));
            }
            self.sessions.leave(ctx, job, kind, done.result);
        }
        self.sessions.start_checks(ctx);
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        let mut due = mem::take(&mut self.due);
        while let Some(key) = self.sessions.hub.deadlines.pop_expired(ctx.now) {
            due.push(key);
        }
        for key in due.drain(..) {
            match key {
                Key::Files => Turn { hub: &mut self.sessions.hub, ctx }.resubmit(),
                Key::Parked => self.sessions.expire_parked(ctx.now),
                Key::Session(id, timer) => {
                    self.sessions.with(ctx, id, |session, turn| drive::on_timer(session, turn, timer));
                }
            }
        }
        self.due = due;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.sessions.hub.deadlines.next()
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.sessions.hub.changes.pop()
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.sessions.hub.draining = true;
        for (_, listener) in mem::take(&mut self.listeners) {
            ctx.net.close_listener(listener);
        }
        let ids: Vec<SessionId> = self.sessions.ids().collect();
        for id in ids {
            self.sessions.with(ctx, id, drive::progress);
        }
    }

    fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.sessions.hub.cut_off = true;
        let ids: Vec<SessionId> = self.sessions.ids().collect();
        for id in ids {
            self.sessions.with(ctx, id, |session, turn| session.end(turn, true));
        }
    }

    fn is_idle(&self) -> bool {
        self.sessions.len() == 0
            && !self.sessions.hub.has_waiting_operations()
            && self.sessions.leaving.is_empty()
    }
}
