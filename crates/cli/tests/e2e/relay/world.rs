//! One world: a connection between our stack and the kernel, and how it came out.

use super::device::FlowStats;
use super::end::{End, Outcome};
use super::plan::{Plan, Side, mix};
use linerate_linux::kernel::KernelTransport;
use linerate_stack::Stack;
use linerate_transport::{CloseReason, Owner, Transport};
use linerate_wire::units::Instant;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// No world takes longer, whatever happens in it: several user timeouts and the slowest transfer together.
const PATIENCE: Duration = Duration::from_secs(150);
/// More frames than this, and one for so many bytes, are no transfer any more but a quarrel.
const FRAMES: u64 = 10_000;
const BYTES_PER_FRAME: u64 = 10;

/// How a world came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every byte arrived, both ends finished.
    Completed,
    /// One end broke off, as planned, and the other one learned of it.
    Aborted,
    /// It ended early, for this reason, which it was entitled to.
    Ended(CloseReason),
    /// What must not be.
    Fault(String),
}

/// A world under way.
pub struct World {
    /// What happens in it.
    pub plan: Plan,
    started: Instant,
    ours: End,
    kernel: End,
}

/// The address of one side. Links whose narrowness is told have addresses of their own, as both sides remember the path
/// MTU by address, for all connections.
pub fn address(side: Side, v6: bool, narrow: bool) -> IpAddr {
    let host = match (side, narrow) {
        (Side::Kernel, false) => 1,
        (Side::Kernel, true) => 2,
        (Side::Ours, false) => 4,
        (Side::Ours, true) => 5,
    };
    if v6 {
        Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, host).into()
    } else {
        Ipv4Addr::new(10, 77, 0, host as u8).into()
    }
}

impl World {
    /// Opens both ends. `port` is the port of both.
    pub fn start(
        plan: Plan,
        port: u16,
        stack: &mut Stack,
        kernel: &mut KernelTransport,
        now: Instant,
    ) -> World {
        let owner = Owner(port);
        let keys = (mix(plan.seed), mix(!plan.seed));
        let abort = |side| plan.abort.filter(|abort| abort.side == side).map(|abort| abort.after);
        let (there, back) = (plan.ours.bytes, plan.kernel.bytes);
        let mut ours = End::new(&plan.ours, owner, keys, back, abort(Side::Ours));
        let mut other = End::new(&plan.kernel, owner, (keys.1, keys.0), there, abort(Side::Kernel));
        let told = plan.narrow.is_some_and(|narrow| !narrow.silent);
        let at = |side| SocketAddr::new(address(side, plan.v6, told), port);
        if plan.opener == Side::Ours {
            other.listen(kernel, at(Side::Kernel));
            ours.connect(at(Side::Ours), at(Side::Kernel));
        } else {
            ours.listen(stack, at(Side::Ours));
            other.connect(at(Side::Kernel), at(Side::Ours));
        }
        World { plan, started: now, ours, kernel: other }
    }

    /// How long it has been going on.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_since(self.started)
    }

    /// Does what can be done now; returns the verdict when it is over, and when it wants to be called again.
    pub fn serve(
        &mut self,
        stack: &mut Stack,
        kernel: &mut KernelTransport,
        flow: FlowStats,
        now: Instant,
    ) -> (Option<Verdict>, Option<Instant>) {
        let wakes = match (self.ours.serve(stack, now), self.kernel.serve(kernel, now)) {
            (Ok(a), Ok(b)) => [a, b],
            (Err(fault), _) => return (Some(Verdict::Fault(format!("our end: {fault}"))), None),
            (_, Err(fault)) => return (Some(Verdict::Fault(format!("the kernel's end: {fault}"))), None),
        };
        let bytes = (self.plan.ours.bytes + self.plan.kernel.bytes) as u64;
        if flow.frames > FRAMES + bytes / BYTES_PER_FRAME {
            return (Some(Verdict::Fault(format!("{} frames: a livelock", flow.frames))), None);
        }
        if self.age(now) > PATIENCE {
            return (Some(Verdict::Fault("neither completed nor ended".into())), None);
        }
        (self.verdict(), wakes.into_iter().flatten().min())
    }

    fn verdict(&self) -> Option<Verdict> {
        use Outcome::{Aborted, Complete, Ended};
        let (opener, other) = match self.plan.opener {
            Side::Ours => (&self.ours, &self.kernel),
            Side::Kernel => (&self.kernel, &self.ours),
        };
        let outcomes = match (opener.outcome, other.outcome) {
            (Some(a), Some(b)) => (a, b),
            // The opener gave up before the other end had heard of it, or heard enough.
            (Some(a @ (Ended(_) | Aborted)), None) if !other.is_open() => (a, a),
            _ => return None,
        };
        Some(match outcomes {
            (Complete, Complete) => Verdict::Completed,
            (Aborted, _) | (_, Aborted) => Verdict::Aborted,
            (Ended(reason), _) | (_, Ended(reason)) if self.may_end() => Verdict::Ended(reason),
            _ => Verdict::Fault(format!("an end without a cause: {outcomes:?}")),
        })
    }

    /// Whether the world is bad enough for our end and the kernel's to end so: one of them must have lost patience
    /// first, and have had reason to.
    fn may_end(&self) -> bool {
        let gave_up =
            |outcome| matches!(outcome, Some(Outcome::Ended(CloseReason::TimedOut | CloseReason::KeepAlive)));
        // An end that never came to be gives up after some tries, too.
        let half_open = !self.ours.is_open() || !self.kernel.is_open();
        // Once it has read our FIN and sent its own, the kernel tells its user no more; when it gives up its last
        // bytes after that, we learn of it by a reset.
        let kernel_left = self.kernel.outcome == Some(Outcome::Complete)
            && self.ours.outcome == Some(Outcome::Ended(CloseReason::Reset));
        // Three timeouts are needed to see it, which may be more than the user timeout where handshakes are lost too.
        let lost = self.plan.has_black_hole() && self.plan.is_rough();
        (gave_up(self.ours.outcome) || gave_up(self.kernel.outcome) || kernel_left || half_open)
            && (self.plan.is_harsh() || lost)
    }

    /// Lets go of both ends.
    pub fn release(&mut self, stack: &mut Stack, kernel: &mut KernelTransport) {
        self.ours.release(stack);
        self.kernel.release(kernel);
    }

    /// Bytes that arrived, at both ends together.
    pub fn received(&self) -> u64 {
        (self.ours.moved().1 + self.kernel.moved().1) as u64
    }

    /// Segments sent again, by us and by the kernel, after [`World::release`].
    pub fn retransmits(&self) -> (u64, u64) {
        (self.ours.retransmits, self.kernel.retransmits)
    }

    /// All there is to know, for a failure.
    pub fn describe(&self, stack: &dyn Transport, kernel: &dyn Transport, flow: FlowStats) -> String {
        format!(
            "  {:?}\n  {flow:?}\n  ours: {}\n  kernel: {}",
            self.plan,
            self.ours.describe(stack),
            self.kernel.describe(kernel)
        )
    }
}
