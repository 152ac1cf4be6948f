//! Responses whose files are on their way while the requests behind them are answered already (RFC 9112 section 9.3.2).

use super::connection::Connection;
use super::exchange::Exchange;
use super::file_info::FileInfo;
use super::server::Server;
use crate::Context;
use crate::delivered::delivered;
use alloc::boxed::Box;
use alloc::rc::Rc;
use linerate_transport::ConnState;

/// Files of one connection that are held for such responses. A client that asks for more waits as long as the first one takes.
const FILES_MAX: usize = 8;

/// A response that was handed over whole.
#[derive(Debug)]
pub(super) struct OnItsWay {
    /// It has left when so many bytes of the connection have.
    until: u64,
    /// The file whose ranges are queued; it stays open until they are sent.
    file: Rc<FileInfo>,
    exchange: Box<Exchange>,
}

impl OnItsWay {
    /// Bytes of heads that it holds.
    pub fn head_memory(&self) -> usize {
        self.exchange.head.capacity()
    }
}

impl Server {
    /// Whether all that was handed over has left. A connection that broke holds nothing any more, but not for that reason: the event that says
    /// so is on its way.
    pub(super) fn has_left(&self, ctx: &Context<'_>, conn: &Connection) -> bool {
        !matches!(ctx.net.state(conn.id), ConnState::Closed(_)) && ctx.net.unsent(conn.id) == 0
    }

    /// Lets the response that was handed over go its way, if the next request is there.
    pub(super) fn go_on_behind(&self, ctx: &Context<'_>, conn: &mut Connection) -> bool {
        if conn.closing || conn.on_their_way.len() >= FILES_MAX || ctx.net.readable(conn.id) == 0 {
            return false;
        }
        let Some(exchange) = conn.exchange.take() else { return false };
        let Some(file) = conn.file.take() else {
            conn.exchange = Some(exchange);
            return false;
        };
        conn.on_their_way.push_back(OnItsWay { until: conn.queued, file, exchange });
        true
    }

    /// Ends the responses that have left.
    pub(super) fn end_those_that_left(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        // Of a connection that broke, what has left is known when it is told of that.
        if conn.on_their_way.is_empty() || matches!(ctx.net.state(conn.id), ConnState::Closed(_)) {
            return;
        }
        let moved = self.moved(ctx, conn);
        self.end_those_before(ctx, conn, moved);
    }

    fn end_those_before(&mut self, ctx: &mut Context<'_>, conn: &mut Connection, moved: u64) {
        while let Some(response) = conn.on_their_way.front()
            && response.until <= moved
            && let Some(OnItsWay { file, exchange, .. }) = conn.on_their_way.pop_front()
        {
            self.let_go(ctx, file);
            self.finish(ctx, conn, *exchange);
        }
    }

    /// Logs what went out of those that do not come to their end; while the transport still knows what it holds.
    pub(super) fn cut_those_on_their_way(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        let moved = delivered(ctx.net, conn.id, conn.queued);
        self.end_those_before(ctx, conn, moved);
        for OnItsWay { until, exchange, .. } in &conn.on_their_way {
            let sent = exchange.content.saturating_sub(until.saturating_sub(moved));
            self.counters.content_sent += sent;
            self.log_exchange(ctx, conn, exchange, sent);
        }
        self.drop_those_on_their_way(ctx, conn);
    }

    /// Gives them up with their connection.
    pub(super) fn drop_those_on_their_way(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) {
        while let Some(OnItsWay { file, exchange, .. }) = conn.on_their_way.pop_front() {
            self.counters.aborted += 1;
            self.let_go(ctx, file);
            self.recycle(exchange.head);
        }
    }

    /// Gives a file back that nothing more is sent of.
    pub(super) fn let_go(&mut self, ctx: &mut Context<'_>, file: Rc<FileInfo>) {
        self.cache.release(ctx, &mut self.ops, file);
        self.wake_blocked = true;
    }
}
