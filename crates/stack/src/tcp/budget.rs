//! The memory that connections may hold together, what each of them holds of it, and what was promised to peers.
//!
//! A window that was advertised cannot be taken back (RFC 9293 section 3.8.6): what it invites needs a buffer when it
//! comes. So the windows of all connections are entered here as *promises*, in bytes of the memory that their data will
//! hold, and a window grows only into what nobody holds and nobody was promised: of the budget, of the device's receive
//! pool, and of the device's own queue. Each connection may have four parts of five of what the others leave (dynamic
//! thresholds, Choudhury and Hahne 1998): one alone gets four fifths, eight get 12 % each, and a newcomer always finds
//! something, however many there are.
//!
//! An eighth of the receive pool is never promised: control packets and newcomers live on it. Every connection is *granted*
//! two segments whatever the others have; what it does not hold of these is set aside, within three quarters of what is free:
//! of ten thousand idle connections only some send at once. A quarter of the budget is kept for sending, so that data which nobody reads yet
//! cannot stop the answers; what is sent beyond that quarter leaves room for what was promised.

use alloc::rc::Rc;
use core::cell::Cell;
use core::fmt;
use linerate_nic::Pool;

/// One in this many buffers of the receive pool stays free for what arrives next; with fewer, new connections are refused.
const RESERVE: usize = 8;

/// One part in this many of the budget is kept for sending.
const SENDING: usize = 4;

/// How many parts of what is left a connection takes for each part that it leaves.
const GREED: usize = 4;

/// Most bytes of memory that a byte of data takes.
pub(super) const DEAREST: usize = 4;

struct Account {
    limit: usize,
    /// While no more is used, promised and granted, and more buffers of the pool are free, nothing is short.
    ease: usize,
    free_at_ease: usize,
    /// Whoever wants to let in no more than so many bytes of data is then bounded by nothing of this.
    plenty: usize,
    /// With fewer free buffers none may be kept for the sake of a few bytes, and none for more.
    scarce: [usize; 2],
    receive: Option<Pool>,
    /// Frames that may wait in the device.
    device_queue: Option<usize>,
    /// Held by queues of received data, and by whatever else does not wait to be sent.
    received: Cell<usize>,
    /// Held by send queues.
    sending: Cell<usize>,
    promised: Cell<usize>,
    /// What connections may receive whatever was promised to others, and do not hold.
    granted: Cell<usize>,
    refused: Cell<u64>,
}

/// A shared limit in bytes. Clones are handles to the same account.
///
/// Buffers are charged with what they keep from being used otherwise: a received slice with its whole pool buffer,
/// a page with its size, shared payload with its length. Constants cost nothing.
#[derive(Clone)]
pub struct MemoryBudget {
    account: Rc<Account>,
}

impl MemoryBudget {
    /// A budget of `limit` bytes of which none is used.
    pub fn new(limit: usize) -> Self {
        MemoryBudget::with_receive(limit, None, None)
    }

    /// The same, with an eye on the device's receive pool, and on its queue of so many frames.
    pub fn with_receive(limit: usize, receive: Option<Pool>, device_queue: Option<usize>) -> Self {
        let account = Account {
            limit,
            ease: ease(limit, receive.as_ref(), device_queue),
            plenty: plenty(limit, receive.as_ref(), device_queue),
            free_at_ease: receive.as_ref().map_or(0, |pool| pool.len() - pool.len() / 4),
            scarce: receive.as_ref().map_or([0; 2], |pool| [reserve(pool), reserve(pool).div_ceil(2)]),
            receive,
            device_queue,
            received: Cell::new(0),
            sending: Cell::new(0),
            promised: Cell::new(0),
            granted: Cell::new(0),
            refused: Cell::new(0),
        };
        MemoryBudget { account: Rc::new(account) }
    }

    /// The memory, in bytes, that may be promised to somebody who holds `held` and whose promise is `promised` now, in
    /// place of that.
    pub(super) fn share(&self, held: usize, promised: usize) -> usize {
        share_of(self.unpromised().saturating_add(promised), held)
    }

    /// The memory, in bytes, that may be promised while nobody holds any.
    pub(super) fn capacity(&self) -> usize {
        let account = &self.account;
        let most = account.limit - account.limit / SENDING;
        let pool = account.receive.as_ref().map(|pool| (pool.len() - reserve(pool)) * pool.buffer_size());
        pool.map_or(most, |pool| pool.min(most))
    }

    /// The memory, in bytes, that nobody holds and nobody was promised.
    pub(super) fn unpromised(&self) -> usize {
        let account = &self.account;
        let granted = |of: usize| account.granted.get().min(of / 4 * 3);
        let sending = account.sending.get().max(account.limit / SENDING);
        let free = account.limit.saturating_sub(account.received.get()).saturating_sub(sending);
        let mut left = free - granted(free);
        if let Some(pool) = &account.receive {
            let size = pool.buffer_size();
            let free = pool.free() * size;
            left = left.min(free.saturating_sub(granted(free).max(reserve(pool) * size)));
            if let Some(frames) = account.device_queue {
                let room = frames.saturating_mul(size);
                left = left.min(room - granted(room).max(room / RESERVE));
            }
        }
        left.saturating_sub(account.promised.get())
    }

    /// Whether so little is used and promised that neither [`MemoryBudget::is_promised_away`] nor a shortage of memory or
    /// receive buffers needs to be looked for: what all batches but few find.
    pub(crate) fn is_at_ease(&self) -> bool {
        let account = &self.account;
        let free = account.receive.as_ref().is_none_or(|pool| pool.free() > account.free_at_ease);
        free && self.used() + account.promised.get() + account.granted.get() <= account.ease
    }

    /// Whether whoever holds or was promised something, or nothing, may let in `bytes` of data, however much memory they take:
    /// [`MemoryBudget::share`] need not be asked.
    #[inline]
    pub(super) fn has_plenty(&self, bytes: usize) -> bool {
        bytes <= self.account.plenty && self.is_at_ease()
    }

    /// Whether so little is left to promise that those who do not use what they have should give it up.
    pub(crate) fn is_promised_away(&self) -> bool {
        self.unpromised() < self.capacity() / 8
    }

    /// Whether more than half of what may be promised is held or promised: then nobody may hold more than was promised.
    pub(super) fn is_half_promised(&self) -> bool {
        self.unpromised() < self.capacity() / 2
    }

    /// Whether receive buffers are so short that none may be kept: for the sake of a few bytes, `of_little`, while there
    /// are more than the reserve; for more, half of it.
    pub(super) fn is_scarce(&self, of_little: bool) -> bool {
        let [for_little, for_more] = self.account.scarce;
        let spared = if of_little { for_little } else { for_more };
        self.account.receive.as_ref().is_some_and(|pool| pool.free() < spared)
    }

    /// The size of a receive buffer in bytes, where it is known.
    pub(super) fn buffer_size(&self) -> Option<usize> {
        self.account.receive.as_ref().map(Pool::buffer_size)
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.account.received.get().saturating_add(self.account.sending.get())
    }

    /// Bytes of memory that the peers' windows may still take, beyond two segments each.
    pub fn promised(&self) -> usize {
        self.account.promised.get()
    }

    /// Bytes of memory that two segments for each connection may still take.
    pub fn granted(&self) -> usize {
        self.account.granted.get()
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.account.limit
    }

    /// How often a charge was refused.
    pub fn refused(&self) -> u64 {
        self.account.refused.get()
    }

    /// Whether more than three quarters are in use: buffers stop growing.
    pub fn is_tight(&self) -> bool {
        self.used() > self.limit() / 4 * 3
    }

    /// How many bytes of files may be read now for somebody who holds `held` bytes for sending: a share of what the others leave,
    /// as with windows, of thirteen sixteenths of what may be held for sending. From fourteen on no connection is let in, and
    /// reading alone shall not lead there.
    pub fn share_to_read(&self, held: usize) -> usize {
        let most = self.sending_limit();
        let left = (most - most / 16 * 3).saturating_sub(self.account.sending.get());
        share_of(left, held)
    }

    /// How many bytes held for sending would have to go until five eighths are held, of all and of what may be held for sending:
    /// an eighth less than where [`MemoryBudget::is_tight`] and [`MemoryBudget::is_sending_tight`] begin.
    pub(crate) fn sending_excess(&self) -> usize {
        let of_all = self.used().saturating_sub(self.limit() / 8 * 5);
        of_all.max(self.account.sending.get().saturating_sub(self.sending_limit() / 8 * 5))
    }

    /// Whether more than three quarters of what may be held for sending are held: more than four connections share what is read of
    /// files, and each has what it needs only if those who are slow hold little.
    pub fn is_sending_tight(&self) -> bool {
        let sending = self.account.sending.get();
        // The limit is a quarter of the budget at least, which is nearly always enough to know.
        sending > self.limit() / SENDING / 4 * 3 && sending > self.sending_limit() / 4 * 3
    }

    /// Whether half of everything is held for sending, and hardly more may be: windows have been promised the rest.
    pub(crate) fn is_sending_short(&self) -> bool {
        let (sending, most) = (self.account.sending.get(), self.sending_limit());
        sending > self.limit() / 2 && sending > most - most / 8
    }

    /// Bytes more that may be held for sending.
    pub(crate) fn sending_room(&self) -> usize {
        self.sending_limit().saturating_sub(self.account.sending.get())
    }

    /// Most bytes that may be held for sending.
    pub(crate) fn sending_limit(&self) -> usize {
        let account = &self.account;
        let granted = account.granted.get().min(account.limit / 2);
        let taken = account.received.get().saturating_add(account.promised.get()).saturating_add(granted);
        account.limit.saturating_sub(taken).max(account.limit / SENDING)
    }

    /// An empty charge against this budget, for received data.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0, sends: false }
    }

    /// An empty charge against this budget, for data to be sent.
    pub fn charge_sending(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0, sends: true }
    }

    /// A promise of nothing beyond the `grant`, in bytes of memory, that its connection has in any case.
    pub(super) fn promise(&self, grant: usize) -> Promise {
        let mut promise = Promise { budget: self.clone(), bytes: 0, grant, set_aside: 0 };
        promise.set(0, 0);
        promise
    }
}

/// What somebody who holds `held` may take of `left`, so that he has [`GREED`] times what is left then.
fn share_of(left: usize, held: usize) -> usize {
    left.saturating_mul(GREED).saturating_sub(held) / (GREED + 1)
}

/// An eighth of the least of what may be promised: of the budget, of a pool of which three quarters are free, of the device's
/// queue.
fn ease(limit: usize, receive: Option<&Pool>, device_queue: Option<usize>) -> usize {
    let Some(pool) = receive else { return limit / 8 };
    let all = pool.len() * pool.buffer_size();
    let room = device_queue.map_or(all, |frames| frames.saturating_mul(pool.buffer_size()));
    let most = limit.min(all).min(room);
    // A queue that holds less than an eighth of all that may be promised is promised away before anything is.
    if room / 2 < limit.min(all) / 8 { 0 } else { most / 8 }
}

/// The bytes of data that there is memory for in any case, at [`DEAREST`], in the least share of what is left to promise at
/// ease.
fn plenty(limit: usize, receive: Option<&Pool>, device_queue: Option<usize>) -> usize {
    let at_ease = ease(limit, receive, device_queue);
    let mut left = limit - limit / SENDING;
    if let Some(pool) = receive {
        let kept = pool.len() / 4 + reserve(pool);
        left = left.min(pool.len().saturating_sub(kept) * pool.buffer_size());
        let room = device_queue.map_or(usize::MAX, |frames| frames.saturating_mul(pool.buffer_size()));
        left = left.min(room - room / RESERVE);
    }
    let left = left.saturating_sub(at_ease);
    left.saturating_mul(GREED).saturating_sub(at_ease) / (GREED + 1) / DEAREST
}

/// Buffers that are not promised.
fn reserve(pool: &Pool) -> usize {
    (pool.len() / RESERVE).max(1)
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryBudget({} of {} bytes, {} promised)", self.used(), self.limit(), self.promised())
    }
}

/// The memory that the window of one connection may take; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Promise {
    budget: MemoryBudget,
    /// Beyond the grant.
    bytes: usize,
    grant: usize,
    /// Of the grant, what is not held.
    set_aside: usize,
}

impl Promise {
    /// Its window may take `bytes` from now on, of which the grant covers the first; `held` bytes are held.
    pub fn set(&mut self, bytes: usize, held: usize) {
        let granted = &self.budget.account.granted;
        let set_aside = self.grant.saturating_sub(held);
        granted.set(granted.get().saturating_sub(self.set_aside).saturating_add(set_aside));
        self.set_aside = set_aside;
        let bytes = bytes.saturating_sub(set_aside);
        let promised = &self.budget.account.promised;
        promised.set(promised.get().saturating_sub(self.bytes).saturating_add(bytes));
        self.bytes = bytes;
    }

    /// The promise itself, to be kept elsewhere in few bytes; what stays here is nothing. `None` if it is too large for that.
    pub fn keep(&mut self) -> Option<KeptPromise> {
        let fit = |bytes: usize| u32::try_from(bytes).ok();
        let (bytes, grant, set_aside) = (fit(self.bytes)?, fit(self.grant)?, fit(self.set_aside)?);
        (self.bytes, self.grant, self.set_aside) = (0, 0, 0);
        Some(KeptPromise { budget: self.budget.clone(), bytes, grant, set_aside })
    }

    /// What its connection has in any case, in bytes of memory.
    pub fn grant(&self) -> usize {
        self.grant
    }

    /// Bytes of memory beyond the grant.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Nothing comes any more: promise and grant are given back.
    pub fn end(&mut self) {
        self.grant = 0;
        self.set(0, 0);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.end();
    }
}

/// A [`Promise`] of less than 4 GiB; given back when it is dropped, too.
#[derive(Debug)]
pub(super) struct KeptPromise {
    budget: MemoryBudget,
    bytes: u32,
    grant: u32,
    set_aside: u32,
}

impl KeptPromise {
    /// The promise itself; what stays here is nothing.
    pub fn take(&mut self) -> Promise {
        let KeptPromise { bytes, grant, set_aside, .. } = *self;
        (self.bytes, self.grant, self.set_aside) = (0, 0, 0);
        let (bytes, grant, set_aside) = (bytes as usize, grant as usize, set_aside as usize);
        Promise { budget: self.budget.clone(), bytes, grant, set_aside }
    }
}

impl Drop for KeptPromise {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// What one queue holds of a budget; given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: MemoryBudget,
    bytes: usize,
    sends: bool,
}

impl Charge {
    /// Takes `bytes` more, if the budget has them; counts a refusal otherwise.
    pub fn try_add(&mut self, bytes: usize) -> bool {
        let account = &self.budget.account;
        let most = if self.sends {
            self.budget.sending_limit()
        } else {
            account.limit - account.sending.get().max(account.limit / SENDING).min(account.limit)
        };
        if self.held().get().saturating_add(bytes) > most {
            account.refused.set(account.refused.get() + 1);
            return false;
        }
        self.add(bytes);
        true
    }

    /// Takes `bytes` more in any case: for memory that is held already, whatever the limit says.
    pub fn add(&mut self, bytes: usize) {
        let held = self.held();
        held.set(held.get().saturating_add(bytes));
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Gives `bytes` back (all, when there are fewer).
    pub fn sub(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let held = self.held();
        held.set(held.get().saturating_sub(bytes));
        self.bytes -= bytes;
    }

    /// What all of this kind hold.
    fn held(&self) -> &Cell<usize> {
        let account = &self.budget.account;
        if self.sends { &account.sending } else { &account.received }
    }

    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The budget.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn promise(budget: &MemoryBudget) -> Promise {
        let mut promise = budget.promise(0);
        promise.set(budget.share(0, 0), 0);
        promise
    }

    #[test]
    fn what_is_promised_never_exceeds_what_is_there() {
        // Two of sixteen buffers are the reserve.
        let pool = Pool::new(16, 100);
        let budget = MemoryBudget::with_receive(10_000, Some(pool.clone()), None);
        let promises: Vec<Promise> = (0..10).map(|_| promise(&budget)).collect();
        let bytes: Vec<usize> = promises.iter().map(Promise::bytes).collect();
        assert_eq!(bytes[..4], [1_120, 224, 44, 9]);
        assert!(budget.promised() <= 1_400 && budget.is_promised_away());
        drop(promises);
        assert_eq!((budget.promised(), budget.is_promised_away()), (0, false));
        // Somebody holds half of the pool: there is less to promise, and to the holder less than to others.
        let held: Vec<_> = (0..7).map(|_| pool.take().unwrap()).collect();
        assert_eq!((budget.share(0, 0), budget.share(700, 0)), (560, 420));
        drop(held);
        // Its own promise does not count against a connection.
        let mut first = promise(&budget);
        assert_eq!(budget.share(0, first.bytes()), 1_120);
        first.set(100, 0);
        assert_eq!(budget.share(0, first.bytes()), 1_120);
    }

    #[test]
    fn what_every_connection_is_granted_is_set_aside_within_what_is_free() {
        let pool = Pool::new(16, 100);
        let budget = MemoryBudget::with_receive(10_000, Some(pool), None);
        let mut promises: Vec<Promise> = (0..3).map(|_| budget.promise(200)).collect();
        // Beyond the reserve of two buffers: six of sixteen.
        assert_eq!((budget.granted(), budget.unpromised()), (600, 1_000));
        // The grant covers the first 200 bytes of a window.
        promises[0].set(200, 0);
        assert_eq!((budget.promised(), budget.unpromised()), (0, 1_000));
        promises[0].set(500, 0);
        assert_eq!((budget.promised(), budget.unpromised()), (300, 700));
        // What is held of a grant is not set aside as well.
        promises[0].set(500, 150);
        assert_eq!((budget.granted(), budget.promised()), (450, 450));
        promises[0].set(500, 0);
        promises.extend((0..1_000).map(|_| budget.promise(200)));
        assert_eq!(budget.unpromised(), 100);
        promises[1].end();
        promises.truncate(2);
        assert_eq!((budget.granted(), budget.promised()), (200, 300));
        drop(promises);
        assert_eq!((budget.granted(), budget.unpromised()), (0, 1_400));
    }

    #[test]
    fn the_budget_and_the_queue_of_the_device_bound_promises_too() {
        let pool = || Some(Pool::new(1_000, 100));
        // A quarter is kept for sending.
        assert_eq!(MemoryBudget::with_receive(10_000, pool(), None).share(0, 0), 6_000);
        assert_eq!(MemoryBudget::with_receive(1 << 20, pool(), Some(80)).share(0, 0), 5_600);
        assert_eq!(MemoryBudget::with_receive(1 << 20, pool(), None).share(0, 0), 70_000);
        assert_eq!(MemoryBudget::new(10_000).share(0, 0), 6_000);
    }

    #[test]
    fn at_ease_nothing_is_short() {
        let pools = [None, Some((16, 100)), Some((1_000, 100)), Some((64, 2_048))];
        let queues = [None, Some(1), Some(12), Some(512)];
        let (mut at_ease, mut others, mut rich) = (0, 0, 0);
        for (pool, queue) in pools.into_iter().flat_map(|pool| queues.map(|queue| (pool, queue))) {
            for limit in [1_000, 10_000, 1 << 20] {
                let pool = pool.map(|(count, size)| Pool::new(count, size));
                let budget = MemoryBudget::with_receive(limit, pool.clone(), queue);
                let mut held = Vec::new();
                let mut charges = [budget.charge(), budget.charge_sending()];
                let mut promises = [budget.promise(10), budget.promise(limit / 50)];
                for step in 0..200 {
                    charges[step % 2].add(limit / 150);
                    promises[step % 2].set(step * limit / 500, 0);
                    held.extend(pool.as_ref().filter(|_| step % 3 == 0).and_then(Pool::take));
                    if !budget.is_at_ease() {
                        others += 1;
                        continue;
                    }
                    at_ease += 1;
                    let receive_is_short = pool.as_ref().is_some_and(|pool| pool.free() < pool.len() / 16);
                    assert!(!budget.is_promised_away() && !budget.is_sending_short() && !receive_is_short);
                    assert!(budget.used() <= budget.limit() / 8 * 7);
                    let share = (0..2).map(|i| budget.share(charges[i].bytes(), promises[i].bytes())).min();
                    assert!(share >= Some(budget.account.plenty * DEAREST));
                    rich += usize::from(budget.account.plenty > 0);
                }
            }
        }
        assert!(at_ease > 100 && others > 100 && rich > 100, "{at_ease} {others} {rich}");
    }

    #[test]
    fn charges_come_back() {
        let budget = MemoryBudget::new(100);
        let mut one = budget.charge();
        let mut two = budget.charge();
        assert!(one.try_add(50));
        assert!(!two.try_add(26), "a quarter is kept for sending");
        assert!(two.try_add(25) && !budget.is_tight());
        one.sub(1_000);
        assert_eq!((one.bytes(), budget.used(), budget.refused()), (0, 25, 1));
        two.add(1_000);
        assert_eq!(budget.used(), 1_025);
        drop(two);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn sending_has_its_quarter_and_leaves_what_was_promised() {
        let budget = MemoryBudget::new(100);
        let (mut received, mut sent) = (budget.charge(), budget.charge_sending());
        received.add(1_000);
        assert!(sent.try_add(25) && !sent.try_add(1), "whatever is received");
        received.sub(1_000);
        let mut promise = budget.promise(0);
        promise.set(40, 0);
        assert!(sent.try_add(35) && !sent.try_add(1), "40 were promised");
        assert!(received.try_add(40) && !received.try_add(1));
        promise.set(0, 0);
        assert!(!sent.try_add(1));
        received.sub(40);
        assert!(sent.try_add(40) && budget.is_tight());
        assert!(budget.is_sending_tight() && budget.share_to_read(0) == 0);
    }

    #[test]
    fn files_are_read_into_shares_of_what_leaves_room_for_newcomers() {
        const PIECE: usize = 32 << 10;
        for readers in [40, 400, 1_000] {
            let budget = MemoryBudget::new(64 << 20);
            let mut held: Vec<Charge> = (0..readers).map(|_| budget.charge_sending()).collect();
            for _ in 0..400 {
                for charge in &mut held {
                    charge.sub(PIECE / 2);
                    charge.add(budget.share_to_read(charge.bytes()).min(PIECE));
                }
            }
            let bytes = || held.iter().map(Charge::bytes);
            let (least, most) = (bytes().min().unwrap(), bytes().max().unwrap());
            assert!(
                least > (40 << 20) / (readers + 1) / 8 * 7 && most - least <= PIECE,
                "{readers}: {least} to {most}"
            );
            assert!(budget.used() <= (64 << 20) / 16 * 13);
            assert!(budget.share_to_read(0) > least / 8, "a newcomer finds something to begin with");
            assert_eq!(budget.is_sending_tight(), budget.used() > (64 << 20) / 4 * 3);
            assert_eq!(budget.is_sending_tight(), budget.sending_excess() > (64 << 20) / 8);
        }
    }
}
