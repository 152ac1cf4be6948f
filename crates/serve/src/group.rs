//! Several services as one.

use crate::service::{Context, Service, StartError};
use crate::{Change, Changes};
use linerate_transport::{Event, FileDone, Owner};
use linerate_wire::units::{Instant, earliest};

/// Services by their places: the first one owns what belongs to `Owner(1)`, the next one `Owner(2)`, and so on; a place may be
/// empty. What one of them changes in the files, the others hear of.
pub struct Group<'a, 'b> {
    services: &'a mut [Option<&'b mut dyn Service>],
    changes: Option<&'a mut Changes>,
}

impl<'a, 'b> Group<'a, 'b> {
    /// These services as one.
    pub fn new(services: &'a mut [Option<&'b mut dyn Service>]) -> Self {
        Group { services, changes: None }
    }

    /// The same, and what they change is noted, for other loops over the same files.
    pub fn noting(services: &'a mut [Option<&'b mut dyn Service>], changes: &'a mut Changes) -> Self {
        Group { services, changes: Some(changes) }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut &'b mut dyn Service> {
        self.services.iter_mut().flatten()
    }

    fn at(&mut self, place: usize) -> Option<&mut &'b mut dyn Service> {
        self.services.get_mut(place)?.as_mut()
    }

    /// Lets the service of this owner act, and tells the others what it changed in the files.
    fn act(&mut self, owner: Owner, act: impl FnOnce(&mut dyn Service)) {
        let Some(place) = usize::from(owner.0).checked_sub(1) else { return };
        let Some(service) = self.at(place) else { return };
        act(&mut **service);
        while let Some(change) = self.at(place).and_then(|service| service.poll_change()) {
            let others = self.services.iter_mut().enumerate().filter(|(other, _)| *other != place);
            others.filter_map(|(_, other)| other.as_mut()).for_each(|other| other.handle_change(&change));
            if let Some(changes) = &mut self.changes {
                changes.push(change);
            }
        }
    }
}

impl Service for Group<'_, '_> {
    fn start(&mut self, ctx: &mut Context<'_>) -> Result<(), StartError> {
        self.all().try_for_each(|service| service.start(ctx))
    }

    fn handle_event(&mut self, ctx: &mut Context<'_>, event: Event) {
        self.act(event.owner, |service| service.handle_event(ctx, event));
    }

    fn handle_file(&mut self, ctx: &mut Context<'_>, done: FileDone) {
        self.act(done.owner, |service| service.handle_file(ctx, done));
    }

    fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        for owner in (1..).map(Owner).take(self.services.len()) {
            self.act(owner, |service| {
                if service.poll_timeout().is_some_and(|at| at <= ctx.now) {
                    service.handle_timeout(ctx);
                }
            });
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let services = self.services.iter().flatten();
        services.fold(None, |first, service| earliest([first, service.poll_timeout()]))
    }

    fn poll_change(&mut self) -> Option<Change> {
        self.changes.as_mut()?.pop()
    }

    fn handle_change(&mut self, change: &Change) {
        self.all().for_each(|service| service.handle_change(change));
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.all().for_each(|service| service.drain(ctx));
    }

    fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.all().for_each(|service| service.cut_off(ctx));
    }

    fn is_idle(&self) -> bool {
        self.services.iter().flatten().all(|service| service.is_idle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use alloc::vec::Vec;
    use linerate_transport::{FileError, VirtualPath};

    /// Changes the root with every answer of a file, and notes what it hears.
    #[derive(Default)]
    struct Editor {
        done: Vec<u64>,
        changes: usize,
        heard: usize,
        timeouts: usize,
        at: Option<Instant>,
    }

    impl Service for Editor {
        fn start(&mut self, _ctx: &mut Context<'_>) -> Result<(), StartError> {
            Ok(())
        }

        fn handle_event(&mut self, _ctx: &mut Context<'_>, _event: Event) {}

        fn handle_file(&mut self, _ctx: &mut Context<'_>, done: FileDone) {
            self.done.push(done.tag);
            self.changes += 2;
        }

        fn handle_timeout(&mut self, _ctx: &mut Context<'_>) {
            self.timeouts += 1;
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.at
        }

        fn poll_change(&mut self) -> Option<Change> {
            self.changes = self.changes.checked_sub(1)?;
            Some(Change::Tree(VirtualPath::root()))
        }

        fn handle_change(&mut self, _change: &Change) {
            self.heard += 1;
        }

        fn drain(&mut self, _ctx: &mut Context<'_>) {}

        fn is_idle(&self) -> bool {
            true
        }
    }

    #[test]
    fn each_owner_gets_its_own_and_the_others_hear_of_changes() {
        let (mut first, mut third, mut world) = (Editor::default(), Editor::default(), World::new());
        third.at = Some(Instant::ZERO);
        let mut places: [Option<&mut dyn Service>; 3] = [Some(&mut first), None, Some(&mut third)];
        let mut group = Group::new(&mut places);
        assert_eq!(group.poll_timeout(), Some(Instant::ZERO));
        for owner in [0, 1, 2, 3, 4, u16::MAX] {
            let done = FileDone { owner: Owner(owner), tag: u64::from(owner), result: Err(FileError::Io) };
            world.with(|ctx| group.handle_file(ctx, done));
        }
        world.with(|ctx| group.handle_timeout(ctx));
        assert!(group.is_idle());
        assert_eq!((first.done, first.heard, first.timeouts), (alloc::vec![1], 2, 0));
        assert_eq!((third.done, third.heard, third.timeouts), (alloc::vec![3], 2, 1));
    }

    #[test]
    fn what_changes_is_noted_for_other_loops() {
        let (mut editor, mut world, mut changes) = (Editor::default(), World::new(), Changes::default());
        let mut places: [Option<&mut dyn Service>; 1] = [Some(&mut editor)];
        let mut group = Group::noting(&mut places, &mut changes);
        let done = FileDone { owner: Owner(1), tag: 7, result: Err(FileError::NotFound) };
        world.with(|ctx| group.handle_file(ctx, done));
        assert_eq!(group.poll_change(), Some(Change::Tree(VirtualPath::root())));
        assert_eq!((group.poll_change(), changes.pop()), (None, None));
    }
}
