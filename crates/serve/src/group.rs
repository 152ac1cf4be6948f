//! Several services as one.

use crate::Change;
use crate::service::{Context, Service, StartError};
use linerate_transport::{Event, FileDone, Owner};
use linerate_wire::units::Instant;

/// Services by their places: the first one owns what belongs to `Owner(1)`, the next one `Owner(2)`, and so on.
pub struct Group<'a> {
    services: &'a mut [&'a mut dyn Service],
}

impl<'a> Group<'a> {
    /// These services as one.
    pub fn new(services: &'a mut [&'a mut dyn Service]) -> Self {
        Group { services }
    }

    fn of(&mut self, owner: Owner) -> Option<&mut &'a mut dyn Service> {
        self.services.get_mut(usize::from(owner.0).checked_sub(1)?)
    }

    /// Tells the others what the service of this place changed in the files.
    fn spread_changes(&mut self, place: usize) {
        loop {
            let service = self.services.get_mut(place);
            let Some(change) = service.and_then(|service| service.poll_change()) else { return };
            for (_, other) in self.services.iter_mut().enumerate().filter(|(other, _)| *other != place) {
                other.handle_change(&change);
            }
        }
    }
}

impl Service for Group<'_> {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        self.services.iter_mut().try_for_each(|service| service.start(ctx))
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        let Some(service) = self.of(event.owner) else { return };
        service.handle_event(ctx, event);
        self.spread_changes(usize::from(event.owner.0) - 1);
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        let owner = done.owner;
        let Some(service) = self.of(owner) else { return };
        service.handle_file(ctx, done);
        self.spread_changes(usize::from(owner.0) - 1);
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        for place in 0..self.services.len() {
            let Some(service) = self.services.get_mut(place) else { return };
            if service.poll_timeout().is_some_and(|at| at <= ctx.now) {
                service.handle_timeout(ctx);
                self.spread_changes(place);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.services.iter().filter_map(|service| service.poll_timeout()).min()
    }

    fn handle_change(&mut self, change: &Change) {
        self.services.iter_mut().for_each(|service| service.handle_change(change));
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.services.iter_mut().for_each(|service| service.drain(ctx));
    }

    fn is_idle(&self) -> bool {
        self.services.iter().all(|service| service.is_idle())
    }
}
