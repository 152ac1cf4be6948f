//! The interfaces of frames that tell more of them than the file does: cooked frames of version 2, from a capture on all interfaces,
//! have the number of theirs.

use super::copies::SECOND;
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
        let settled = |number: usize| {
            let number = number % SECOND;
            number.checked_sub(UNDESCRIBED).map_or(number, |place| described + place)
        };
        for view in &mut table.views {
            view.second = view.interface >= SECOND;
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

#[cfg(test)]
mod tests {
    use super::super::segment::{Held, held};
    use super::*;

    /// A segment under a cooked header of version 2: received by the interface of this index, or sent by it.
    fn cooked(index: u32, is_sent: bool) -> Vec<u8> {
        let cooked =
            [&[8, 0, 0, 0][..], &index.to_be_bytes(), &[0, 1, if is_sent { 4 } else { 0 }, 6], &[2; 8]];
        let ip = [0x45, 0, 0, 50, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2];
        let tcp = [3, 232, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
        [&cooked.concat()[..], &ip, &tcp, &[7; 10]].concat()
    }

    fn frame(interface: usize, link: u32, data: &[u8]) -> Frame<'_> {
        Frame { interface, link, at_ns: 0, len: data.len() as u32, data, outgoing: None }
    }

    fn interface(name: &str) -> Interface {
        Interface { name: name.to_owned(), link: COOKED_V2, per_second: 1_000_000_000, offset_s: 0 }
    }

    #[test]
    fn an_interface_is_told_by_its_frames_where_they_name_it() {
        let (mut places, data) = (Places::default(), cooked(5, false));
        for link in [1, 113, 101] {
            assert_eq!(places.of(&frame(1, link, &data)), 1);
        }
        assert_eq!(places.of(&frame(1, COOKED_V2, &data[..19])), 1, "cut within the header");
        let fifth = places.of(&frame(0, COOKED_V2, &data));
        assert_eq!(places.of(&frame(0, COOKED_V2, &cooked(6, false))), fifth + 1);
        assert_eq!(places.of(&frame(0, COOKED_V2, &cooked(5, true))), fifth);
        // The same index of another capture in the file is another interface.
        assert_eq!(places.of(&frame(1, COOKED_V2, &data)), fifth + 2);
    }

    #[test]
    fn no_more_are_told_apart_than_a_machine_has() {
        let mut places = Places::default();
        for index in 0..=MOST as u32 {
            let number = places.of(&frame(3, COOKED_V2, &cooked(index, false)));
            assert_eq!(number == 3, index as usize == MOST, "{index}");
        }
    }

    /// What a router passes on is seen twice, and counts once at each interface.
    #[test]
    fn a_router_has_a_view_for_each_of_its_interfaces() {
        let (mut places, mut table) = (Places::default(), Table::default());
        for (index, is_sent) in [(2, false), (3, true)] {
            let data = cooked(index, is_sent);
            let frame = frame(0, COOKED_V2, &data);
            let Held::Segment(segment) = held(&frame) else { panic!("a segment") };
            assert_eq!((segment.len, segment.outgoing), (10, Some(is_sent)));
            table.take(places.of(&frame), &segment);
        }
        let mut interfaces = vec![interface("any"), interface("other")];
        places.settle(&mut table, &mut interfaces);
        let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
        assert_eq!(names, ["any", "other", "any, index 2", "any, index 3"]);
        let views: Vec<usize> = table.views.iter().map(|view| view.interface).collect();
        assert_eq!(views, [2, 3]);
    }
}
