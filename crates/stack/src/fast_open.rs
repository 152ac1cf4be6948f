//! TCP Fast Open for listeners (RFC 7413): cookies, and how many connections may be served before their handshake ends.
//!
//! A cookie is SipHash-2-4 of the client's address: whoever shows it has received a SYN-ACK of ours at that address within
//! the last hours. The key changes every hour by a one-way step, and the last one stays valid, so that a cookie that was
//! overheard is of use for two hours at most (section 6.1).

use crate::key_ring::KeyRing;
use crate::random::{Key, purpose};
use crate::stack::Stack;
use crate::tcp_input::Arrived;
use alloc::collections::VecDeque;
use core::hash::{Hash, Hasher};
use core::net::IpAddr;
use core::time::Duration;
use linerate_transport::FastOpen;
use linerate_wire::tcp::FastOpenCookie;
use linerate_wire::units::Instant;

/// How long a key makes cookies.
const KEY_TIME_S: u64 = 3_600;

/// So long a request whose handshake failed counts as pending: the hosts whose addresses an attacker borrows answer with a
/// RST, which must not make room for more (RFC 7413 section 5.1).
const FAILED_COUNTS: Duration = Duration::from_secs(60);

/// What a cookie is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Validity {
    /// Made with the key of now.
    Current,
    /// Made with the key before: still good, but the client should have a new one.
    Previous,
    /// Not ours, another address's, or too old.
    Invalid,
}

/// Makes cookies, and knows its own again.
pub(crate) struct FastOpenCookies {
    keys: KeyRing,
}

impl FastOpenCookies {
    /// Cookies under keys from `seed`.
    pub(crate) fn new(seed: &[u8; 32]) -> FastOpenCookies {
        FastOpenCookies { keys: KeyRing::new(seed, purpose::FAST_OPEN) }
    }

    /// The cookie of a client.
    pub(crate) fn make(&mut self, client: IpAddr, now: Instant) -> FastOpenCookie {
        self.rotate(now);
        cookie_of(self.keys.current(), client)
    }

    /// Looks at the cookie that a client shows.
    pub(crate) fn check(&mut self, client: IpAddr, cookie: &FastOpenCookie, now: Instant) -> Validity {
        self.rotate(now);
        let generation = self.keys.generation();
        let is_of =
            |generation| self.keys.key_of(generation).is_some_and(|key| cookie_of(key, client) == *cookie);
        if is_of(generation) {
            Validity::Current
        } else if generation > 0 && is_of(generation - 1) {
            Validity::Previous
        } else {
            Validity::Invalid
        }
    }

    fn rotate(&mut self, now: Instant) {
        self.keys.rotate(now.as_millis() / 1_000 / KEY_TIME_S);
    }
}

fn cookie_of(key: &Key, client: IpAddr) -> FastOpenCookie {
    let mut hasher = key.hasher();
    client.hash(&mut hasher);
    FastOpenCookie::new(&hasher.finish().to_be_bytes()).unwrap_or_default()
}

/// The connections of a listener that were served before their handshake ended (PendingFastOpenRequests of RFC 7413
/// section 5.1).
#[derive(Debug)]
pub(crate) struct Pending {
    max: usize,
    open: usize,
    /// When handshakes failed that still count.
    failed: VecDeque<Instant>,
}

impl Pending {
    /// None yet.
    pub(crate) fn new(options: FastOpen) -> Pending {
        Pending { max: usize::from(options.max_pending), open: 0, failed: VecDeque::new() }
    }

    /// Whether there may be one more.
    pub(crate) fn has_room(&mut self, now: Instant) -> bool {
        while self.failed.front().is_some_and(|&at| now - at >= FAILED_COUNTS) {
            self.failed.pop_front();
        }
        self.open + self.failed.len() < self.max
    }

    /// One begins.
    pub(crate) fn begin(&mut self) {
        self.open += 1;
    }

    /// The handshake of one ended well.
    pub(crate) fn establish(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// The handshake of one failed.
    pub(crate) fn fail(&mut self, now: Instant) {
        self.open = self.open.saturating_sub(1);
        self.failed.push_back(now);
    }
}

/// What the Fast Open option of a SYN leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Verdict {
    /// The connection may be used before its handshake ends, beginning with the data of the SYN.
    pub(crate) accepts: bool,
    /// The cookie that the SYN-ACK carries.
    pub(crate) cookie: Option<FastOpenCookie>,
}

impl Stack {
    /// RFC 7413 section 4.1.2 and section 4.2.2, steps 2 and 3.
    pub(crate) fn judge_fast_open(&mut self, listener: u32, syn: &Arrived) -> Verdict {
        let now = self.net.now;
        let listening = self.conns.listeners.at_mut(listener);
        let pending = listening.and_then(|listening| listening.fast_open.as_mut());
        let (Some(pending), Some(cookie)) = (pending, syn.segment.options.fast_open) else {
            return Verdict::default();
        };
        let client = syn.remote.ip();
        let fresh = self.net.fast_open.make(client, now);
        let counters = &mut self.net.counters;
        let verdict = if cookie.is_request() {
            Verdict { accepts: false, cookie: Some(fresh) }
        } else {
            match self.net.fast_open.check(client, &cookie, now) {
                Validity::Invalid => {
                    counters.tfo_cookies_rejected += 1;
                    Verdict { accepts: false, cookie: Some(fresh) }
                }
                _ if !pending.has_room(now) => {
                    counters.tfo_pending_limited += 1;
                    Verdict::default()
                }
                validity => {
                    counters.tfo_cookies_accepted += 1;
                    let cookie = (validity == Validity::Previous).then_some(fresh);
                    Verdict { accepts: true, cookie }
                }
            }
        };
        counters.tfo_cookies_sent += u64::from(verdict.cookie.is_some());
        verdict
    }

    /// A connection may be accepted though its handshake has not ended.
    pub(crate) fn open_early(&mut self, listener: u32, slot: u32) {
        let listening = self.conns.listeners.at_mut(listener);
        let (Some(listening), Some(conn)) = (listening, self.conns.table.at_mut(slot)) else { return };
        conn.fast_open = Some(listening.id);
        if let Some(pending) = &mut listening.fast_open {
            pending.begin();
        }
        self.offer(slot);
    }

    /// The handshake of a connection ended, well or not: it is not pending any more.
    pub(crate) fn end_early(&mut self, slot: u32, is_established: bool) {
        let now = self.net.now;
        let listener = self.conns.table.at_mut(slot).and_then(|conn| conn.fast_open.take());
        let listening = listener.and_then(|listener| self.conns.listener_mut(listener));
        match listening.and_then(|listening| listening.fast_open.as_mut()) {
            Some(pending) if is_established => pending.establish(),
            Some(pending) => pending.fail(now),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_cookie_belongs_to_one_address() {
        let mut cookies = FastOpenCookies::new(&[1; 32]);
        let cookie = cookies.make(ip("10.0.0.9"), at(1));
        assert_eq!(cookie.as_slice().len(), 8);
        assert_eq!(cookies.check(ip("10.0.0.9"), &cookie, at(2)), Validity::Current);
        assert_eq!(cookies.check(ip("10.0.0.8"), &cookie, at(2)), Validity::Invalid);
        assert_eq!(cookies.check(ip("::ffff:10.0.0.9"), &cookie, at(2)), Validity::Invalid);
        let mut others = FastOpenCookies::new(&[2; 32]);
        assert_eq!(others.check(ip("10.0.0.9"), &cookie, at(2)), Validity::Invalid, "another seed");
        let short = FastOpenCookie::new(&cookie.as_slice()[..6]).unwrap();
        assert_eq!(cookies.check(ip("10.0.0.9"), &short, at(2)), Validity::Invalid, "a part of it");
    }

    #[test]
    fn a_cookie_outlives_its_key_by_one() {
        for hour in [0, 1, 50] {
            let mut cookies = FastOpenCookies::new(&[1; 32]);
            let start = hour * KEY_TIME_S;
            let cookie = cookies.make(ip("fd00::9"), at(start));
            let mut check = |seconds| cookies.check(ip("fd00::9"), &cookie, at(start + seconds));
            assert_eq!(check(KEY_TIME_S - 1), Validity::Current);
            assert_eq!(check(KEY_TIME_S), Validity::Previous);
            assert_eq!(check(2 * KEY_TIME_S - 1), Validity::Previous);
            assert_eq!(check(2 * KEY_TIME_S), Validity::Invalid);
        }
        let mut cookies = FastOpenCookies::new(&[1; 32]);
        let cookie = cookies.make(ip("fd00::9"), at(0));
        assert_eq!(
            cookies.check(ip("fd00::9"), &cookie, at(9 * KEY_TIME_S)),
            Validity::Invalid,
            "long silence"
        );
    }

    #[test]
    fn a_failed_request_counts_for_a_minute() {
        let mut pending = Pending::new(FastOpen { max_pending: 2 });
        pending.begin();
        pending.begin();
        assert!(!pending.has_room(at(0)));
        pending.establish();
        assert!(pending.has_room(at(0)));
        pending.begin();
        pending.fail(at(10));
        assert!(!pending.has_room(at(69)));
        assert!(pending.has_room(at(70)));
        assert!(!Pending::new(FastOpen { max_pending: 0 }).has_room(at(0)));
    }
}
