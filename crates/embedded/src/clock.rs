//! Time as a net needs it.

use alloc::rc::Rc;
use linerate_wire::units::Instant;

/// Time, and waiting for it.
#[allow(async_fn_in_trait)] // Tasks stay on their core, so nobody asks whether a future is `Send`.
pub trait Clock {
    /// The time since an epoch of the clock's own. It never goes back.
    fn now(&self) -> Instant;

    /// Returns at `at` or a little later. The future is dropped when something else comes first.
    async fn sleep_until(&self, at: Instant);
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }

    async fn sleep_until(&self, at: Instant) {
        (**self).sleep_until(at).await;
    }
}

impl<C: Clock + ?Sized> Clock for Rc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }

    async fn sleep_until(&self, at: Instant) {
        (**self).sleep_until(at).await;
    }
}
