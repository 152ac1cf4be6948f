//! All connections of a capture: which view each segment belongs to.

use super::copies::SECOND;
use super::flow::View;
use super::segment::Segment;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Most views that are kept. A short connection takes about 13 KiB with all that is said of it: more than these would take the
/// memory of a small machine.
pub const MAX_VIEWS: usize = 1 << 18;

type Ends = [SocketAddr; 2];

/// All connections of a capture.
#[derive(Clone, Debug)]
pub struct Table {
    /// One for each connection and interface, in the order of their first packets.
    pub views: Vec<Box<View>>,
    /// Segments of connections for which there was no room.
    pub left_out: u64,
    most: usize,
    newest: HashMap<(usize, Ends), usize>,
    /// The newest one of all interfaces.
    anywhere: HashMap<Ends, usize>,
}

fn ends(segment: &Segment) -> Ends {
    [segment.from.min(segment.to), segment.from.max(segment.to)]
}

/// Whether what one interface received leaves by another.
fn passed_on(other: &View, interface: usize, segment: &Segment) -> bool {
    let side = other.side(segment);
    let own = other.own[side] - other.own[1 - side];
    let is_opposite = segment.outgoing.is_some_and(|outgoing| if outgoing { own < 0 } else { own > 0 });
    other.forwarded || other.interface != interface && is_opposite
}

impl Default for Table {
    fn default() -> Table {
        Table::new(MAX_VIEWS)
    }
}

impl Table {
    /// One of so many views at most.
    pub fn new(most: usize) -> Table {
        Table { views: Vec::new(), left_out: 0, most, newest: HashMap::new(), anywhere: HashMap::new() }
    }

    /// The next segment of an interface.
    pub fn take(&mut self, interface: usize, segment: &Segment) {
        let ends = ends(segment);
        let known = self.newest.get(&(interface, ends)).copied();
        let known = known.filter(|index| self.goes_on(*index, interface, segment));
        let Some(index) =
            known.or_else(|| self.joined(interface, segment)).or_else(|| self.opened(interface, segment))
        else {
            self.left_out += 1;
            return;
        };
        self.newest.insert((interface, ends), index);
        if let Some(view) = self.views.get_mut(index) {
            view.take(segment);
        }
    }

    /// Whether a segment of an interface belongs to this view.
    fn goes_on(&mut self, index: usize, interface: usize, segment: &Segment) -> bool {
        let newest = self.anywhere.get(&ends(segment)).copied();
        let Some(view) = self.views.get_mut(index) else { return false };
        let is_guest = view.interface != interface;
        if view.is_reused(segment) || is_guest && newest != Some(index) {
            return false;
        }
        if view.seen_at[view.side(segment)] == interface {
            return true;
        }
        // An interface sees both directions after all: each gets a view of its own from here on.
        view.seen_at = [view.interface; 2];
        !is_guest
    }

    /// The view of another interface that lacks just this direction.
    fn joined(&mut self, interface: usize, segment: &Segment) -> Option<usize> {
        let index = *self.anywhere.get(&ends(segment))?;
        let view = self.views.get_mut(index)?;
        let side = view.side(segment);
        // The two places that one interface shows see both directions.
        let fits = view.interface % SECOND != interface % SECOND
            && view.packets[side] == 0
            && view.packets[1 - side] > 0;
        if !fits || view.is_reused(segment) {
            return None;
        }
        view.seen_at[side] = interface;
        Some(index)
    }

    /// A new view, if there is room.
    fn opened(&mut self, interface: usize, segment: &Segment) -> Option<usize> {
        if self.views.len() >= self.most {
            return None;
        }
        let index = self.views.len();
        let mut view = View::new(interface, segment);
        let last = self.anywhere.insert(ends(segment), index);
        if let Some(other) = last.and_then(|last| self.views.get_mut(last))
            && passed_on(other, interface, segment)
        {
            (other.forwarded, view.forwarded) = (true, true);
        }
        self.views.push(Box::new(view));
        Some(index)
    }

    /// All packets were taken.
    pub fn finish(&mut self) {
        for view in &mut self.views {
            for half in &mut view.halves {
                half.sender.finish();
                half.wire.finish(view.span_ns.1);
            }
        }
    }
}
