//! Answers that are ready: to requests that come again, byte by byte the same.
//!
//! What a head asks for and what is answered follow from its bytes, from the files that it names, from the settings, and from the second
//! in which it is asked (a date, preconditions). So a head that is equal to one before, in the same second and with the same settings, is
//! answered with the same bytes, if every path that was looked up for that answer still leads where it led; each is looked up again, as
//! for any request. Parsing, resolving and writing are left out. Kept are answers whose content is in memory, from the second time on that
//! their request comes, and for the rest of the second.

use super::cache::{Asker, Found};
use super::connection::{Connection, Piece};
use super::drive::{GATHER_MAX, Step};
use super::exchange::Exchange;
use super::file_info::FileInfo;
use super::request::Framing;
use super::server::Server;
use crate::Context;
use alloc::boxed::Box;
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{Bytes, FileError, Payload, VirtualPath};

/// Longest head that is kept.
const HEAD_MAX: usize = 1 << 10;
/// Heads that are remembered by a hash of 32 bits, to be known when they come again.
const REMEMBERED: usize = 16;

/// Where a path led.
#[derive(Debug)]
enum Led {
    /// The allocation stays while this does, so that no other file can be taken for it.
    File(Weak<FileInfo>),
    Directory,
    Failed(FileError),
}

impl Led {
    fn to(&self, found: &Found) -> bool {
        match (self, found) {
            (Led::File(before), Found::File(now)) => core::ptr::eq(before.as_ptr(), Rc::as_ptr(now)),
            (Led::Directory, Found::Directory) => true,
            (Led::Failed(before), Found::Failed(now)) => before == now,
            _ => false,
        }
    }
}

#[derive(Debug)]
struct Lookup {
    path: VirtualPath,
    led: Led,
    /// How old an answer may be that says it is not there.
    max_age_of_absence: Duration,
}

/// An answer under way that may be kept.
#[derive(Debug, Default)]
pub(super) struct Draft {
    lookups: Vec<Lookup>,
    /// The answer's head and short content behind it, once written, and longer content.
    answer: Option<(Bytes, Option<Piece>)>,
}

#[derive(Debug)]
struct Ready {
    /// The request, as it was answered.
    ex: Exchange,
    lookups: Vec<Lookup>,
    answer: Bytes,
    rest: Option<Piece>,
}

/// The answers that are ready.
#[derive(Debug, Default)]
pub(super) struct ReadyAnswers {
    /// The one used last at the end.
    #[expect(
        clippy::vec_box,
        reason = "they are taken out and put back for each request, without being moved"
    )]
    list: Vec<Box<Ready>>,
    /// Hashes of heads that came, the oldest overwritten first.
    seen: [u32; REMEMBERED],
    next: usize,
    /// The answer under way, if it may be kept.
    pub draft: Option<Draft>,
}

impl ReadyAnswers {
    /// Forgets all answers: they may be wrong from now on.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Begins a draft, if the request came before and may be kept.
    fn begin(&mut self, ex: &Exchange, most: usize) {
        self.draft = None;
        let may = most > 0 && ex.framing == Framing::Empty && !ex.ranged && ex.head.len() <= HEAD_MAX;
        if !may {
            return;
        }
        let hash = hash(&ex.head);
        if self.seen.contains(&hash) {
            self.draft = Some(Draft::default());
        } else {
            self.seen[self.next] = hash;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    /// Notes where a path led.
    pub fn note(&mut self, path: &VirtualPath, found: &Found, max_age_of_absence: Duration) {
        let Some(draft) = &mut self.draft else { return };
        let led = match found {
            Found::File(info) => Led::File(Rc::downgrade(info)),
            Found::Directory => Led::Directory,
            Found::Failed(error) => Led::Failed(*error),
            Found::Pending | Found::Busy => return,
        };
        draft.lookups.push(Lookup { path: path.clone(), led, max_age_of_absence });
    }

    /// Notes what is answered.
    pub fn write(&mut self, answer: Option<&[u8]>, rest: Option<Piece>) {
        if let (Some(draft), Some(answer)) = (&mut self.draft, answer) {
            draft.answer = Some((Bytes::from(answer.to_vec()), rest));
        }
    }

    /// Keeps what was drafted for `ex`; gives its head back if there is nothing to keep.
    pub fn keep(&mut self, ex: Exchange, most: usize) -> Option<Vec<u8>> {
        let Some(Draft { lookups, answer: Some((answer, rest)) }) = self.draft.take() else {
            return Some(ex.head);
        };
        // It is there already where it was ready and could not be sent.
        let same = self.list.iter().position(|ready| ready.ex.head == ex.head);
        let before = same.or((self.list.len() >= most.max(1)).then_some(0)).map(|at| self.list.remove(at));
        self.list.push(Box::new(Ready { ex, lookups, answer, rest }));
        before.map(|ready| ready.ex.head)
    }

    /// Takes out the answer to the request that `bytes` begin with.
    fn take(&mut self, bytes: &[u8]) -> Option<Box<Ready>> {
        let at = self.list.iter().rposition(|ready| bytes.starts_with(&ready.ex.head))?;
        Some(self.list.remove(at))
    }
}

/// By words: a byte at a time takes longer than it saves. A head that has the hash of another is only kept sooner.
fn hash(head: &[u8]) -> u32 {
    let (words, rest) = head.as_chunks::<4>();
    let add = |hash: u32, word: u32| (hash ^ word).wrapping_mul(0x9E37_79B1).rotate_left(15);
    let hash = words.iter().fold(head.len() as u32, |hash, word| add(hash, u32::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| add(hash, u32::from(*byte))).max(1)
}

impl Server {
    /// Begins to note what the answer to a request follows from.
    pub(super) fn begin_draft(&mut self, ex: &Exchange) {
        let most = if self.draining { 0 } else { self.config.limits.ready_answers };
        self.answers.begin(ex, most);
    }

    /// Answers the request that has come, if that is ready.
    pub(super) fn answer_ready(&mut self, ctx: &mut Context<'_>, conn: &mut Connection) -> Option<Step> {
        if self.answers.list.is_empty() || self.draining || self.out.len() >= GATHER_MAX {
            return None;
        }
        let bytes = ctx.net.peek(conn.id);
        if bytes.is_empty() {
            return Some(self.no_input(ctx, conn));
        }
        let mut ready = self.answers.take(bytes)?;
        let is_alone = bytes.len() == ready.ex.head.len();
        if !self.leads_as_before(ctx, conn, &ready.lookups) {
            return None;
        }
        if !self.send_ready(ctx, conn, &ready, is_alone) {
            self.answers.list.push(ready);
            return None;
        }
        ctx.net.consume(conn.id, ready.ex.head.len());
        ready.ex.started = ctx.now;
        conn.is_last = !ready.ex.keep_alive;
        conn.closing |= !ready.ex.keep_alive;
        if let Some(status) = ready.ex.status {
            self.counters.count_response(status);
        }
        self.counters.content_sent += ready.ex.content;
        self.counters.reused_answers += 1;
        self.log_exchange(ctx, conn, &ready.ex, ready.ex.content);
        self.answers.list.push(ready);
        Some(self.next_request(ctx, conn))
    }

    fn leads_as_before(&mut self, ctx: &mut Context<'_>, conn: &Connection, lookups: &[Lookup]) -> bool {
        let since = self.cache.turn();
        let may_start = self.may_resolve();
        let max_age = self.config.timeouts.cache;
        lookups.iter().all(|Lookup { path, led, max_age_of_absence }| {
            let max_age_of_absence = *max_age_of_absence;
            let asker = Asker { conn: conn.id, since, max_age, max_age_of_absence, may_start };
            led.to(&self.cache.lookup(ctx, &mut self.ops, &self.config.limits, path, asker))
        })
    }

    /// Hands an answer over as it lies, or behind those that are gathered; whether all of it was taken.
    fn send_ready(
        &mut self,
        ctx: &mut Context<'_>,
        conn: &mut Connection,
        ready: &Ready,
        is_alone: bool,
    ) -> bool {
        if ready.rest.is_none() && !(is_alone && self.out.is_empty()) {
            self.out.extend_from_slice(&ready.answer);
            return true;
        }
        self.flush(ctx, conn);
        let len = ready.answer.len() as u64 + ready.rest.as_ref().map_or(0, Piece::len);
        if !conn.pieces.is_empty() || ready.rest.is_some() && (ctx.net.sendable(conn.id) as u64) < len {
            return false;
        }
        if ctx.net.send(conn.id, Payload::Shared(ready.answer.clone())).is_err() {
            return false;
        }
        conn.queued += ready.answer.len() as u64;
        if let Some(rest) = &ready.rest {
            // Were there no room after all, it would wait for it.
            self.send_piece(ctx, conn, rest.clone());
        }
        true
    }
}
