//! The memory that connections may hold together, and what each of them holds of it.

use alloc::rc::Rc;
use core::cell::Cell;
use core::fmt;
use linerate_nic::Pool;

/// One in this many buffers of the receive pool stays free for what arrives next; with fewer, new connections are refused.
const RESERVE: usize = 8;

struct Account {
    limit: usize,
    receive: Option<Pool>,
    used: Cell<usize>,
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
        MemoryBudget::with_receive(limit, None)
    }

    /// The same, with an eye on the device's receive pool.
    pub fn with_receive(limit: usize, receive: Option<Pool>) -> Self {
        let account = Account { limit, receive, used: Cell::new(0), refused: Cell::new(0) };
        MemoryBudget { account: Rc::new(account) }
    }

    /// Whether a connection that holds `held` bytes may keep a receive buffer: while it holds no more than is free beyond
    /// the reserve. So one connection gets half of the pool at most, two a third each, and so on (dynamic thresholds,
    /// Choudhury and Hahne 1998); and the device never runs dry because of what waits for a missing segment.
    pub fn lets_keep(&self, held: usize) -> bool {
        self.account.receive.as_ref().is_none_or(|pool| {
            let reserve = (pool.len() / RESERVE).max(1);
            held <= pool.free().saturating_sub(reserve).saturating_mul(pool.buffer_size())
                && pool.free() > reserve
        })
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.account.used.get()
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.account.limit
    }

    /// How often a charge was refused.
    pub fn refused(&self) -> u64 {
        self.account.refused.get()
    }

    /// Whether more than three quarters are in use: buffers stop growing, out-of-order data is no longer kept.
    pub fn is_tight(&self) -> bool {
        self.used() > self.limit() / 4 * 3
    }

    /// Whether `bytes` more would leave less than an eighth: files are then read only for who has nothing left to send.
    pub fn has_room_to_read(&self, bytes: u64) -> bool {
        self.used() as u64 + bytes <= (self.limit() / 8 * 7) as u64
    }

    /// An empty charge against this budget.
    pub fn charge(&self) -> Charge {
        Charge { budget: self.clone(), bytes: 0 }
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryBudget({} of {} bytes)", self.used(), self.limit())
    }
}

/// What one queue holds of a budget; given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: MemoryBudget,
    bytes: usize,
}

impl Charge {
    /// Takes `bytes` more, if the budget has them; counts a refusal otherwise.
    pub fn try_add(&mut self, bytes: usize) -> bool {
        let account = &self.budget.account;
        let used = account.used.get().saturating_add(bytes);
        if used > account.limit {
            account.refused.set(account.refused.get() + 1);
            return false;
        }
        self.add(bytes);
        true
    }

    /// Takes `bytes` more in any case: for memory that is held already, whatever the limit says.
    pub fn add(&mut self, bytes: usize) {
        let account = &self.budget.account;
        account.used.set(account.used.get().saturating_add(bytes));
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Gives `bytes` back (all, when there are fewer).
    pub fn sub(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let account = &self.budget.account;
        account.used.set(account.used.get().saturating_sub(bytes));
        self.bytes -= bytes;
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

    #[test]
    fn nobody_keeps_more_of_the_receive_pool_than_is_free() {
        let pool = Pool::new(16, 100);
        let budget = MemoryBudget::with_receive(10_000, Some(pool.clone()));
        let (mut kept, mut others) = (alloc::vec::Vec::new(), alloc::vec::Vec::new());
        while budget.lets_keep(100 * kept.len()) {
            kept.push(pool.take().unwrap());
        }
        // Two of sixteen are the reserve.
        assert_eq!((kept.len(), pool.free()), (8, 8));
        while budget.lets_keep(0) {
            others.push(pool.take().unwrap());
        }
        assert_eq!(pool.free(), 2);
        kept.clear();
        assert!(budget.lets_keep(800) && !budget.lets_keep(801));
        assert!(MemoryBudget::new(10).lets_keep(usize::MAX));
    }

    #[test]
    fn charges_come_back() {
        let budget = MemoryBudget::new(100);
        let mut one = budget.charge();
        let mut two = budget.charge();
        assert!(one.try_add(60));
        assert!(!two.try_add(41));
        assert!(two.try_add(40) && budget.is_tight());
        one.sub(1_000);
        assert_eq!((one.bytes(), budget.used(), budget.refused()), (0, 40, 1));
        two.add(1_000);
        assert_eq!(budget.used(), 1_040);
        drop(two);
        assert_eq!(budget.used(), 0);
    }
}
