//! Interfaces that count.

use linerate_nic::gem::Gem;
use linerate_nic::virtio::{Transport, Virtio};
use linerate_nic::{Paced, Platform, QueuePair};
use linerate_wire::figures::Figures;

/// An interface that counts.
pub trait Counting {
    /// Shows each counter with its name.
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64));
}

impl<D: QueuePair + Counting> Counting for Paced<D> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.device().count(visit);
    }
}

impl<P: Transport> Counting for Virtio<P> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.stats().figures().for_each(|(figure, value)| visit(figure.name, value));
    }
}

impl<P: Platform> Counting for Gem<P> {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.stats().figures().for_each(|(figure, value)| visit(figure.name, value));
    }
}
