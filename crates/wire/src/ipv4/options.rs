//! IPv4 options: a list of kinds, most with a length (RFC 791 section 3.1).

use crate::error::{Field, ParseError};

const END: u8 = 0;
const NOP: u8 = 1;

/// An option's type byte: copied flag, class and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptionKind(pub u8);

impl OptionKind {
    /// Record route.
    pub const RECORD_ROUTE: OptionKind = OptionKind(7);
    /// Timestamp.
    pub const TIMESTAMP: OptionKind = OptionKind(68);
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: OptionKind = OptionKind(131);
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: OptionKind = OptionKind(137);
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: OptionKind = OptionKind(148);

    /// Whether it steers the packet; hosts refuse such packets (RFC 7126 section 4.3).
    pub const fn is_source_route(self) -> bool {
        matches!(self, OptionKind::LOOSE_SOURCE_ROUTE | OptionKind::STRICT_SOURCE_ROUTE)
    }
}

/// One option with a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Option<'a> {
    /// Its type.
    pub kind: OptionKind,
    /// What follows type and length.
    pub data: &'a [u8],
}

/// Walks the options; padding is skipped, and the walk ends at the end of the list or at the first malformed option.
#[derive(Clone, Debug)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
}

impl<'a> OptionIter<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        OptionIter { rest }
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Ipv4Option<'a>;

    fn next(&mut self) -> Option<Ipv4Option<'a>> {
        while let [NOP, rest @ ..] = self.rest {
            self.rest = rest;
        }
        let [kind, len, ..] = *self.rest else {
            self.rest = &[];
            return None;
        };
        match (kind, self.rest.get(2..usize::from(len)), self.rest.get(usize::from(len)..)) {
            (1.., Some(data), Some(rest)) => {
                self.rest = rest;
                Some(Ipv4Option { kind: OptionKind(kind), data })
            }
            _ => {
                self.rest = &[];
                None
            }
        }
    }
}

/// Checks that the options can be walked to their end. The error's value is the offset of the faulty option in bytes
/// from the start of the header: the pointer of an ICMP parameter problem.
pub(super) fn validate(options: &[u8]) -> Result<(), ParseError> {
    let mut rest = options;
    while let [kind, tail @ ..] = rest {
        rest = match *kind {
            END => return Ok(()),
            NOP => tail,
            _ => match tail.first().map(|&len| (len, rest.get(usize::from(len)..))) {
                Some((2.., Some(after))) => after,
                _ => {
                    // At most 20 + 40.
                    let pointer = (super::MIN_HEADER_LEN + options.len() - rest.len()) as u32;
                    return Err(ParseError::invalid(Field::Ipv4Option, pointer));
                }
            },
        };
    }
    Ok(())
}
