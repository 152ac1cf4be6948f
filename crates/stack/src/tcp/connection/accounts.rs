//! What happened to a connection: counted, timed, and put down to what limited it.

use super::super::limits::LimitClock;
use super::blocked::Open;
use super::counters::Counters;
use super::tally::Tally;
use linerate_transport::LimitCause;
use linerate_wire::units::Instant;

/// When something happened last; at first, when the connection was made or established.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// Data or FIN was sent.
    pub(super) sent: Instant,
    /// An acceptable segment came.
    pub(super) received: Instant,
    /// Payload came.
    pub(super) data: Instant,
    /// An acknowledgement came.
    pub(super) ack: Instant,
}

impl Last {
    pub(super) fn at(now: Instant) -> Self {
        Last { sent: now, received: now, data: now, ack: now }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) counters: Counters,
    /// To be added to by [`Accounts::tally`].
    pub(super) tally: Tally,
    /// Something was put into it.
    pub(super) has_tally: bool,
    pub(super) limits: LimitClock,
    pub(super) open: Option<Open>,
    /// What limits beside the device that is blamed for it.
    pub(super) behind: Option<LimitCause>,
    pub(super) last: Last,
}

impl Accounts {
    /// Whether everything is handed over, and it is known what limits.
    pub(super) fn is_quiet(&self) -> bool {
        !self.has_tally && self.open.is_none()
    }

    /// What the stack counts, to be added to.
    pub(super) fn tally(&mut self) -> &mut Tally {
        self.has_tally = true;
        &mut self.tally
    }

    /// What the stack has not counted, if there is something.
    pub(super) fn take_tally(&mut self) -> Option<Tally> {
        core::mem::take(&mut self.has_tally).then(|| core::mem::take(&mut self.tally))
    }

    /// Nothing has happened.
    pub(super) fn new(last: Last) -> Accounts {
        Accounts {
            counters: Counters::default(),
            tally: Tally::default(),
            has_tally: false,
            limits: LimitClock::default(),
            open: None,
            behind: None,
            last,
        }
    }
}
