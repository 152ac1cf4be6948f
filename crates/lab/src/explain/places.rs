//! The interfaces of frames that tell more of them than the file does: cooked frames of version 2, from a capture on all interfaces,
//! have the number of theirs.

use super::reader::{Frame, Interface};
use super::table::Table;
use linerate_wire::cooked;
use std::collections::HashMap;

/// Number of the link type.
const COOKED_V2: u32 = 276;
/// Numbers from here on are those of interfaces that the file does not describe; a file describes fewer.
const UNDESCRIBED: usize = 1 << 20;
/// Most of them: more would be no machine's, and take memory.
const MOST: usize = 1 << 12;

/// The interfaces that frames named.
#[derive(Debug, Default)]
pub struct Places {
    numbers: HashMap<(usize, u32), usize>,
    /// In the order of their numbers.
    named: Vec<(usize, u32)>,
}

impl Places {
    /// The number of the interface that saw a frame.
    pub fn of(&mut self, frame: &Frame<'_>) -> usize {
        let header = (frame.link == COOKED_V2).then(|| cooked::Header::parse_v2(frame.data).ok()).flatten();
        let Some(index) = header.and_then(|header| header.interface()) else { return frame.interface };
        let key = (frame.interface, index);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.named.len() >= MOST {
            return frame.interface;
        }
        let number = UNDESCRIBED + self.named.len();
        self.numbers.insert(key, number);
        self.named.push(key);
        number
    }

    /// Puts them behind those that the file describes, and adds their names.
    pub fn settle(self, table: &mut Table, interfaces: &mut Vec<Interface>) {
        let described = interfaces.len();
        let settled = |number: usize| match number.checked_sub(UNDESCRIBED) {
            Some(place) => described + place,
            None => number,
        };
        for view in &mut table.views {
            view.interface = settled(view.interface);
            view.seen_at = view.seen_at.map(settled);
        }
        for (interface, index) in self.named {
            if let Some(mut named) = interfaces.get(interface).cloned() {
                named.name = format!("{}, index {index}", named.name);
                interfaces.push(named);
            }
        }
    }
}
