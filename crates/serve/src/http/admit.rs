//! Coming in: who is served, who gives way to newcomers, and who is turned away.

use super::connection::{Connection, Seen, State, Table};
use super::response::{After, HeadWriter, Status};
use super::server::Server;
use crate::Context;
use crate::admission::{Admission, Source, Standing, Verdict};
use linerate_transport::{ConnId, Transport};
use linerate_wire::units::Instant;

/// Bytes per second below which a transfer may give way while connections run short.
const SLOW_BPS: u64 = 1_024;
/// A transfer is not judged before this time: its first bytes are on their way.
const GRACE_MS: u64 = 100;

impl Connection {
    /// What it is doing, as far as giving way is concerned.
    pub(super) fn standing(&self) -> Standing {
        match self.state {
            State::Head | State::Lingering(_) => Standing::Waiting,
            State::Body(_) | State::Sending => Standing::Moving,
            State::Resolving | State::Listing(_) => Standing::Busy,
        }
    }
}

/// Whether a connection may give way: nothing is on its way from the client, or too little.
fn may_go(net: &dyn Transport, table: &Table, id: ConnId, now: Instant) -> bool {
    let conn = match table.get(id) {
        Some(Seen::Resting) => return net.readable(id) == 0,
        Some(Seen::Working(conn)) => conn,
        None => return false,
    };
    let moved = match conn.state {
        State::Head if conn.head.is_empty() => return net.readable(id) == 0,
        State::Head | State::Lingering(_) => return true,
        State::Resolving | State::Listing(_) => return false,
        State::Body(_) => conn.received + net.readable(id) as u64,
        State::Sending => conn.queued.saturating_sub(net.unsent(id)),
    };
    let elapsed_ms = (now - conn.since).as_millis() as u64;
    elapsed_ms >= GRACE_MS && moved.saturating_sub(conn.mark) <= elapsed_ms.saturating_mul(SLOW_BPS) / 1_000
}

impl Server {
    /// Takes a connection, turns it away, or lets another one give way to it.
    pub(super) fn admit(&mut self, ctx: &mut Context<'_>, id: ConnId) {
        self.counters.accepted += 1;
        let Some(remote) = ctx.net.remote_addr(id) else { return ctx.net.abort(id) };
        // IPv4 clients count by the same address on a socket for both families.
        let remote = remote.ip().to_canonical();
        let source = Source::of(remote);
        let (table, net) = (&self.table, &*ctx.net);
        match self.admission.judge(source, |other| may_go(net, table, other, ctx.now)) {
            Verdict::Admit => {}
            Verdict::Replace(other) => self.give_way(ctx, other),
            Verdict::SourceFull => {
                self.counters.refused_address += 1;
                return self.turn_away(ctx, id, Status::Unavailable);
            }
            Verdict::Full => {
                self.counters.refused_total += 1;
                return self.turn_away(ctx, id, Status::Unavailable);
            }
        }
        self.admission.add(id, source, ctx.now);
        let conn = self.table.add(id, remote, ctx.now);
        self.drive(ctx, conn);
    }

    /// Tells the log about a crowd, now and then.
    pub(super) fn report_crowd(admission: &mut Admission, now: Instant) {
        if let Some(report) = admission.report(now) {
            log::warn!(target: "http", "HTTP: {report}");
        }
    }

    /// Says in one breath that there is no answer, and closes. If there is no room for this, the connection is over
    /// anyway.
    fn turn_away(&mut self, ctx: &mut Context<'_>, id: ConnId, status: Status) {
        let mut head = HeadWriter::begin(&mut self.out, &self.common, status, After::Close);
        if status == Status::Unavailable {
            head.field("Retry-After", b"1");
        }
        head.content_length(0);
        head.end();
        self.counters.count_response(status);
        let _ = ctx.net.write(id, &self.out);
        self.out.clear();
        ctx.net.close(id);
    }

    /// Closes a connection so that another one can be served.
    fn give_way(&mut self, ctx: &mut Context<'_>, id: ConnId) {
        let Some(conn) = self.table.take(id) else { return };
        self.counters.gave_way += 1;
        match conn.state {
            State::Head if conn.head.is_empty() => ctx.net.close(id),
            State::Head | State::Body(_) if conn.pieces.is_empty() && conn.on_their_way.is_empty() => {
                self.turn_away(ctx, id, Status::RequestTimeout);
            }
            State::Lingering(_) => ctx.net.close(id),
            _ => ctx.net.abort(id),
        }
        self.drop_conn(ctx, conn);
    }
}
