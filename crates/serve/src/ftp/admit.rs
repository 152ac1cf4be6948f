//! Coming in: who gets a session, which one gives way when they run short, and who is refused.

use super::hub::Turn;
use super::login::limit_key;
use super::server::Server;
use super::session::{Job, Login, Session, canonical};
use crate::Context;
use crate::admission::{Source, Standing, Verdict};
use alloc::boxed::Box;
use core::net::IpAddr;
use linerate_transport::ConnId;
use linerate_wire::units::Instant;

impl Session {
    fn is_logged_in(&self) -> bool {
        matches!(self.login, Login::User { .. })
    }

    /// What it is doing, as far as giving way is concerned, and since when: without a login it waits from its beginning,
    /// whatever it says; with one, from its last command, and goes after those without.
    pub(super) fn standing(&self) -> (Standing, Instant) {
        match self.job {
            Job::None if !self.is_logged_in() => (Standing::Waiting, self.begun),
            Job::None => (Standing::Moving, self.last_active),
            _ => (Standing::Busy, self.begun),
        }
    }

    /// Ends the session so that another one can begin.
    fn give_way(&mut self, turn: &mut Turn<'_, '_>) {
        log::debug!(target: "ftp", "{}: gives way to a newcomer", self.peer);
        self.reply(421, "Too many sessions, and this one waited longest; closing the control connection");
        self.end(turn, false);
    }
}

impl Server {
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
        self.sessions.insert(id, Box::new(session));
        // What has come already had no event of its own.
        self.with(ctx, id, |session, turn| session.progress(turn));
    }

    /// Whether there is room for one more session of `source`. One that is logged in keeps its place from others of its own
    /// address.
    fn judge(&mut self, ctx: &Context<'_>, source: Source, key: IpAddr) -> Verdict {
        let (held, parked) = (self.admission.held_by(source), self.parked_of(key));
        let is_at_limit = held + parked >= self.hub.config.limits.sessions_per_address;
        if is_at_limit && parked > 0 {
            // Who guesses passwords gets no place by giving up another one.
            return Verdict::SourceFull;
        }
        let (conns, sessions, net) = (&self.hub.conns, &self.sessions, &*ctx.net);
        self.admission.judge(source, |control| {
            let session = conns.get(&control).and_then(|id| sessions.get(id));
            session
                .is_some_and(|session| !(is_at_limit && session.is_logged_in()) && net.readable(control) == 0)
        })
    }

    fn give_way(&mut self, ctx: &mut Context<'_>, control: ConnId) {
        if let Some(id) = self.hub.conns.get(&control).copied() {
            self.hub.stats.gave_way += 1;
            self.with(ctx, id, |session, turn| session.give_way(turn));
        }
    }
}
