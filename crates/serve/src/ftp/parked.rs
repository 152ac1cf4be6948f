//! Sessions that are over and count until their wrong password would have been answered, so that leaving early speeds
//! up no guessing.

use super::hub::SessionId;
use alloc::collections::BTreeMap;
use core::net::IpAddr;
use linerate_wire::units::Instant;

/// The sessions that are over and count still.
#[derive(Default)]
pub(super) struct Parked {
    until: BTreeMap<(Instant, SessionId), IpAddr>,
    /// How many of them by address, in the sense of the limit.
    of: BTreeMap<IpAddr, usize>,
}

impl Parked {
    /// This session of that address counts until then.
    pub(super) fn add(&mut self, until: Instant, id: SessionId, key: IpAddr) {
        self.until.insert((until, id), key);
        *self.of.entry(key).or_insert(0) += 1;
    }

    /// How many sessions of this address count.
    pub(super) fn of(&self, key: IpAddr) -> usize {
        self.of.get(&key).copied().unwrap_or(0)
    }

    /// When the next one stops counting.
    pub(super) fn next(&self) -> Option<Instant> {
        self.until.first_key_value().map(|((until, _), _)| *until)
    }

    /// Forgets those whose time has come.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(entry) = self.until.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            if let Some(count) = self.of.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.of.remove(&key);
                }
            }
        }
    }
}
