//! Coming in: which connections and tests are taken, and which give way to newcomers.

use super::protocol::{COOKIE_LEN, State};
use super::server::{Key, Role, Server};
use super::session::{Phase, Test};
use crate::Context;
use crate::admission::{Source, Standing, Verdict};
use core::net::IpAddr;
use core::time::Duration;
use linerate_transport::{ConnId, ListenerId, Ready};

/// How long a test may be prepared before it has to give way to another one: clients take a few round trips for it, and of
/// several that come at once one is to have its test.
const PREPARATION: Duration = Duration::from_secs(1);

/// Whether nothing of a test has begun yet.
fn is_preparing(test: &Test) -> bool {
    matches!(test.phase, Phase::Params | Phase::Streams { .. })
}

impl Server {
    /// Takes what a listener has.
    pub(super) fn accept(&mut self, ctx: &mut Context<'_>, listener: ListenerId) {
        while let Some(conn) = ctx.net.accept(listener) {
            self.admit(ctx, conn);
        }
        if let Some(report) = self.admission.report(ctx.now) {
            log::warn!(target: "iperf3", "iperf3: {report}");
        }
    }

    fn admit(&mut self, ctx: &mut Context<'_>, conn: ConnId) {
        let Some(remote) = ctx.net.remote_addr(conn) else { return ctx.net.abort(conn) };
        let source = Source::of(remote.ip());
        let (roles, tests, net) = (&self.roles, &self.tests, &*ctx.net);
        let verdict = self.admission.judge(source, |other| match roles.get(&other) {
            Some(Role::Greeting { .. }) => net.readable(other) == 0,
            Some(Role::Control(id)) => tests.get(id).is_some_and(is_preparing) && net.readable(other) == 0,
            Some(Role::Stream(..)) | None => false,
        });
        match verdict {
            Verdict::Admit => {}
            Verdict::Replace(other) => self.give_way(ctx, other),
            // It has said nothing yet, so there is nothing to say: a reset is the answer.
            Verdict::SourceFull | Verdict::Full => {
                self.counters.refused += 1;
                return ctx.net.abort(conn);
            }
        }
        self.admission.add(conn, source, ctx.now);
        self.roles.insert(conn, Role::Greeting { cookie: [0; COOKIE_LEN], len: 0 });
        self.deadlines.set(Key::Greeting(conn), ctx.now + self.config.greeting_timeout);
        // Data may have come with the handshake, before anyone asked for events.
        self.handle_conn(ctx, conn, Ready::READABLE);
    }

    fn give_way(&mut self, ctx: &mut Context<'_>, conn: ConnId) {
        self.counters.gave_way += 1;
        match self.roles.get(&conn).copied() {
            Some(Role::Control(id)) => self.displace(ctx, id),
            _ => self.forget_greeting(ctx, conn),
        }
    }

    /// Ends a test that has not begun, for another one. Its client is told what one hears for whom there is no place.
    fn displace(&mut self, ctx: &mut Context<'_>, id: u32) {
        self.say(ctx, id, State::AccessDenied);
        self.end(ctx, id, "it gave way to a newcomer");
    }

    /// A connection is no longer ours.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.roles.remove(&conn);
        self.admission.remove(conn);
    }

    /// What a connection is for, from now on.
    pub(super) fn assign(&mut self, ctx: &Context<'_>, conn: ConnId, role: Role) {
        self.roles.insert(conn, role);
        let standing = if matches!(role, Role::Control(_)) { Standing::Moving } else { Standing::Busy };
        self.admission.place(conn, standing, ctx.now);
    }

    /// Whether one more test may begin for a client at this address; the oldest one that is being prepared for too long gives way.
    pub(super) fn make_room_for_test(&mut self, ctx: &mut Context<'_>, conn: ConnId) -> bool {
        let Some(remote) = ctx.net.remote_addr(conn) else { return false };
        let source = Source::of(remote.ip());
        let is_its = |ip: IpAddr| Source::of(ip) == source;
        let own = self.tests.values().filter(|test| is_its(test.client.ip())).count();
        let at_own_limit = own >= self.config.tests_per_address;
        if !at_own_limit && self.tests.len() < self.config.max_tests {
            return true;
        }
        // A walk over the few tests, for who comes when they are many.
        let now = ctx.now;
        let is_slow = |test: &Test| is_preparing(test) && now.saturating_since(test.asked) >= PREPARATION;
        let may_go = |test: &Test| is_slow(test) && (!at_own_limit || is_its(test.client.ip()));
        let Some(oldest) = self.tests.iter().find(|(_, test)| may_go(test)).map(|(id, _)| *id) else {
            return false;
        };
        self.counters.gave_way += 1;
        self.displace(ctx, oldest);
        true
    }
}
