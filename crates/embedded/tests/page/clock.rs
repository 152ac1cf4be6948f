//! The clock of embassy's HALs.

use core::future::poll_fn;
use core::task::Poll;
use embassy_time_driver::{TICK_HZ, now, schedule_wake};
use linerate_embedded::Clock;
use linerate_wire::units::Instant;

const NS_PER_TICK: u64 = 1_000_000_000 / TICK_HZ;

pub struct Ticks;

impl Clock for Ticks {
    fn now(&self) -> Instant {
        Instant::from_nanos(now() * NS_PER_TICK)
    }

    async fn sleep_until(&self, at: Instant) {
        poll_fn(|cx| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            schedule_wake(at.as_nanos().div_ceil(NS_PER_TICK), cx.waker());
            Poll::Pending
        })
        .await;
    }
}
