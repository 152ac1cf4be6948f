//! The sessions of a server: who gets one, which one gives way when they run short, and who is refused.

use super::config::Config;
use super::drive;
use super::hub::{Hub, JobId, Key, Kind, SessionId, Turn};
use super::leaving::{Leaving, Left};
use super::login::limit_key;
use super::parked::Parked;
use super::session::Session;
use crate::Context;
use crate::admission::{Admission, Census, Source, Verdict};
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::net::{IpAddr, SocketAddr};
use linerate_transport::{ConnId, FileError, FileReply, Owner};
use linerate_wire::units::Instant;

/// The sessions, and what they share.
pub(super) struct Sessions {
    pub(super) hub: Hub,
    by_id: BTreeMap<SessionId, Box<Session>>,
    /// Who has the sessions, by their control connections, and which give way.
    admission: Admission,
    next_id: SessionId,
    parked: Parked,
    pub(super) leaving: Leaving,
}

/// The address without an IPv4 address in IPv6 clothes.
fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr.ip().to_canonical() {
        ip if ip == addr.ip() => addr,
        ip => SocketAddr::new(ip, addr.port()),
    }
}

impl Sessions {
    pub(super) fn new(owner: Owner, config: Config) -> Self {
        Sessions {
            admission: Admission::new(config.limits.sessions, config.limits.sessions_per_address),
            hub: Hub::new(owner, config),
            by_id: BTreeMap::new(),
            next_id: 0,
            parked: Parked::default(),
            leaving: Leaving::default(),
        }
    }

    pub(super) fn share_limits(&mut self, census: Box<dyn Census>) {
        self.admission.share(census);
    }

    /// Applies new settings.
    pub(super) fn configure(&mut self, config: Config) {
        self.admission.set_limits(config.limits.sessions, config.limits.sessions_per_address);
        self.hub.config = Rc::new(config);
    }

    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The numbers of those under way.
    pub(super) fn ids(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.by_id.keys().copied()
    }

    /// Whether this one is under way.
    pub(super) fn contains(&self, id: SessionId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Lets a session act, and forgets it if it is over then.
    pub(super) fn with(
        &mut self,
        ctx: &mut Context<'_>,
        id: SessionId,
        act: impl FnOnce(&mut Session, &mut Turn<'_, '_>),
    ) {
        let Some(session) = self.by_id.get_mut(&id) else { return };
        act(session, &mut Turn { hub: &mut self.hub, ctx });
        let control = session.control.conn;
        if session.over {
            let key = limit_key(session.peer.ip());
            let until = session.access.refusing_until.filter(|until| *until > ctx.now);
            if let Some(transfer) = session.left.take() {
                let (peer, user) = (session.peer, session.access.user_name().to_owned());
                self.leaving.add(Left { transfer: *transfer, peer, user });
            }
            self.by_id.remove(&id);
            self.admission.remove(control);
            if let Some(until) = until {
                self.parked.add(until, id, key);
                self.set_parked_timer();
            }
        } else {
            let (standing, since) = session.standing();
            self.admission.place(control, standing, since);
        }
        self.start_checks(ctx);
    }

    /// An operation ended that a session began which is over.
    pub(super) fn leave(
        &mut self,
        ctx: &mut Context<'_>,
        job: JobId,
        kind: Kind,
        result: Result<FileReply, FileError>,
    ) {
        let turn = &mut Turn { hub: &mut self.hub, ctx };
        let done = result.as_ref().map(|_| ()).map_err(|error| *error);
        self.leaving.on_file(turn, job, kind, done);
        turn.discard(job, result);
    }

    fn set_parked_timer(&mut self) {
        if let Some(until) = self.parked.next() {
            self.hub.deadlines.set(Key::Parked, until);
        }
    }

    /// Sessions that are over may count no longer.
    pub(super) fn expire_parked(&mut self, now: Instant) {
        self.parked.expire(now);
        self.set_parked_timer();
    }

    /// Has passwords checked, as many at once as may be.
    pub(super) fn start_checks(&mut self, ctx: &mut Context<'_>) {
        while let Some(id) = self.hub.checks.begin(self.hub.config.limits.password_checks) {
            let mut turn = Turn { hub: &mut self.hub, ctx };
            let begun = self.by_id.get_mut(&id).is_some_and(|session| session.begin_check(&mut turn));
            if !begun {
                // The client is gone.
                self.hub.checks.end();
            }
        }
    }

    /// Whether half of the sessions that the address may have only wait for the answer to a wrong password.
    fn is_half_guessing(&self, key: IpAddr) -> bool {
        let half = self.hub.config.limits.sessions_per_address.div_ceil(2);
        let parked = self.parked.of(key);
        if self.admission.held_by(Source::of(key)) + parked < half {
            return false;
        }
        let here = |session: &Session| {
            session.access.refusing_until.is_some() && limit_key(session.peer.ip()) == key
        };
        let refusing = self.by_id.values().filter(|session| here(session)).count();
        refusing + parked >= half
    }

    /// Whether the address gets no more sessions for that. Where somebody has given a right password lately the other half is
    /// for him.
    fn is_guessing(&self, key: IpAddr, now: Instant) -> bool {
        self.is_half_guessing(key) && !self.hub.throttle.is_known(key, now)
    }

    /// A number that no session has.
    fn next_session_id(&mut self) -> SessionId {
        while self.by_id.contains_key(&self.next_id) {
            self.next_id = self.next_id.wrapping_add(1);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// Gives a client its session, or says why not.
    pub(super) fn greet(&mut self, ctx: &mut Context<'_>, conn: ConnId) {
        let Some(info) = ctx.net.info(conn) else { return ctx.net.abort(conn) };
        let (peer, local) = (canonical(info.remote), canonical(info.local));
        let source = Source::of(peer.ip());
        let key = limit_key(peer.ip());
        let refusal = match self.judge(ctx, source, key) {
            Verdict::Admit | Verdict::Replace(_) if self.is_guessing(key, ctx.now) => {
                self.hub.stats.refused_guessers += 1;
                Some("421 Too many wrong passwords from your address\r\n")
            }
            Verdict::Admit => None,
            Verdict::Replace(other) => {
                self.give_way(ctx, other);
                None
            }
            Verdict::SourceFull => {
                self.hub.stats.refused_address += 1;
                Some("421 Too many sessions from your address\r\n")
            }
            Verdict::Full => {
                self.hub.stats.refused_full += 1;
                Some("421 Too many sessions, try later\r\n")
            }
        };
        if let Some(report) = self.admission.report(ctx.now) {
            log::warn!(target: "ftp", "FTP: {report}");
        }
        if let Some(refusal) = refusal {
            log::debug!(target: "ftp", "{peer}: refused");
            // A client that does not take even that is not told.
            let _ = ctx.net.write(conn, refusal.as_bytes());
            return ctx.net.close(conn);
        }
        let id = self.next_session_id();
        self.hub.stats.sessions += 1;
        self.hub.conns.insert(conn, id);
        self.admission.add(conn, source, ctx.now);
        log::debug!(target: "ftp", "{peer}: session begins");
        let mut turn = Turn { hub: &mut self.hub, ctx };
        let session = Session::new(&mut turn, id, conn, peer, local);
        self.by_id.insert(id, Box::new(session));
        // What has come already had no event of its own.
        self.with(ctx, id, drive::progress);
    }

    /// Whether there is room for one more session of `source`. Those of its own address that are logged in keep their places
    /// only while somebody there tries passwords in half of all.
    fn judge(&mut self, ctx: &Context<'_>, source: Source, key: IpAddr) -> Verdict {
        let (held, parked) = (self.admission.counted_of(source), self.parked.of(key));
        let is_at_limit = held + parked >= self.hub.config.limits.sessions_per_address;
        if is_at_limit && parked > 0 {
            // Who guesses passwords gets no place by giving up another one.
            return Verdict::SourceFull;
        }
        let keeps_logged_in = is_at_limit && self.is_half_guessing(key);
        let (conns, sessions, net) = (&self.hub.conns, &self.by_id, &*ctx.net);
        self.admission.judge(source, |control| {
            let session = conns.get(&control).and_then(|id| sessions.get(id));
            session.is_some_and(|session| {
                !(keeps_logged_in && session.access.is_logged_in()) && net.readable(control) == 0
            })
        })
    }

    fn give_way(&mut self, ctx: &mut Context<'_>, control: ConnId) {
        if let Some(id) = self.hub.conns.get(&control).copied() {
            self.hub.stats.gave_way += 1;
            self.with(ctx, id, |session, turn| session.give_way(turn));
        }
    }
}

#[cfg(test)]
impl Sessions {
    /// The most bytes that one client made his session hold on its control connection.
    pub(super) fn held_len(&self) -> usize {
        self.by_id.values().map(|session| session.control.held_len()).max().unwrap_or(0)
    }
}
