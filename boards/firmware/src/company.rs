//! A core among others: its end of the post, and how it gets to know what all have to tell.

use crate::exchange::{Exchange, Post, Several};
use crate::report::Told;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_nic::Interface;
use linerate_serve::{Change, Loop, Service};
use linerate_stack::{Node, Seat};
use linerate_transport::Files;
use linerate_wire::units::Instant;

/// Most letters taken in one turn: after that, packets have their turn again.
const LETTERS_PER_TURN: usize = 256;

/// The other cores, as one of them sees them; none on a machine with one.
pub(crate) struct Company {
    others: Option<(&'static Exchange, Several)>,
    seat: Seat,
    /// What was told since they were asked, while not all have.
    gathered: Option<Vec<Told>>,
}

impl Company {
    /// The company of a seat.
    pub(crate) fn new(exchange: Option<((&'static Exchange, u16), Several)>) -> Company {
        let seat = exchange
            .map_or(Seat::ALONE, |((exchange, index), _)| Seat { index, seats: exchange.seats().max(1) });
        Company { others: exchange.map(|((exchange, _), several)| (exchange, several)), seat, gathered: None }
    }

    /// Which seat this is.
    pub(crate) fn seat(&self) -> Seat {
        self.seat
    }

    /// Tells the others that a file has changed.
    pub(crate) fn tell(&self, change: &Change) {
        if let Some((others, _)) = self.others {
            others.tell_others(self.seat.index, || Post::Changed(change.clone()));
        }
    }

    /// Whether others were asked and have not all answered.
    pub(crate) fn waits(&self) -> bool {
        self.gathered.is_some()
    }

    /// What all tell, `mine` among it, by their seats; the others are asked first, and it comes in a later turn.
    pub(crate) fn all(&mut self, mine: impl FnOnce() -> Told) -> Option<Vec<Told>> {
        let Some((others, _)) = self.others else { return Some(alloc::vec![mine()]) };
        let awaited = usize::from(self.seat.seats - 1);
        match &mut self.gathered {
            None => {
                self.gathered = Some(Vec::new());
                others.tell_others(self.seat.index, || Post::Ask(self.seat.index));
                None
            }
            Some(told) if told.len() == awaited => {
                let mut all = self.gathered.take()?;
                all.push(mine());
                all.sort_by_key(|told| told.seat);
                Some(all)
            }
            Some(_) => None,
        }
    }

    /// Takes what others have sent; true if there was anything.
    pub(crate) fn take_post<D: Interface, F: Files, S: Service>(
        &mut self,
        now: Instant,
        machine: &mut Loop<Node<D>, F, S>,
        mut mine: impl FnMut(&Node<D>) -> Told,
    ) -> bool {
        let Some((others, _)) = self.others else { return false };
        for count in 0..LETTERS_PER_TURN {
            match others.poll_post(self.seat.index) {
                None => return count > 0,
                Some(Post::Letter(message)) => machine.engine.stack.handle_message(now, message),
                Some(Post::Changed(change)) => machine.services_mut().handle_change(&change),
                Some(Post::Ask(seat)) => {
                    // Not a packet: it has room.
                    let _told = others.tell(seat, Post::Told(Box::new(mine(&machine.engine))));
                }
                Some(Post::Told(told)) => {
                    if let Some(all) = &mut self.gathered {
                        all.push(*told);
                    }
                }
            }
        }
        true
    }

    /// Sends what the stack has to tell others.
    pub(crate) fn send_letters<D: Interface>(&self, node: &mut Node<D>) {
        let Some((others, _)) = self.others else { return };
        while let Some(letter) = node.stack.poll_letter() {
            (0..others.carry(self.seat, letter)).for_each(|_| node.stack.handle_lost_letter());
        }
    }
}
