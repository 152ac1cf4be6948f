//! The resources that flows share: found by what they are, named only where somebody reads the name.

use crate::soc::Direction;
use crate::units::BytesPerSecond;

/// What a resource is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commands,
    Controller,
    FabricPort,
    Bridge,
    Memory,
    Rows,
    Port,
}

/// A resource by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'a> {
    kind: Kind,
    name: &'a str,
    of: &'a str,
    /// Reads or writes; neither where both take turns.
    side: Option<usize>,
}

impl<'a> Key<'a> {
    pub(super) const fn new(kind: Kind, name: &'a str) -> Self {
        Self { kind, name, of: "", side: None }
    }

    pub(super) const fn of(mut self, of: &'a str) -> Self {
        self.of = of;
        self
    }

    pub(super) const fn side(mut self, side: usize) -> Self {
        self.side = Some(side);
        self
    }

    /// Reads and writes of a memory that does both at once are two resources.
    pub(super) fn way(mut self, direction: Direction, side: usize) -> Self {
        self.side = (direction == Direction::Full).then_some(side);
        self
    }

    fn text(&self) -> String {
        let side = match self.side {
            None => "",
            Some(0) => " read",
            Some(_) => " write",
        };
        let name = self.name;
        match self.kind {
            Kind::Commands => format!("{name} commands"),
            Kind::Controller => format!("{name}{side} bus"),
            Kind::FabricPort => format!("{}{side} port of {name}", self.of),
            Kind::Bridge => format!("bridge {name}{side}"),
            Kind::Memory => format!("{name}{side}"),
            Kind::Rows => format!("{name} rows"),
            Kind::Port => format!("{name} port{side}"),
        }
    }
}

/// The resources that flows share, by name.
#[derive(Debug, Clone, Default)]
pub struct Resources<'a> {
    keys: Vec<Key<'a>>,
    raw: Vec<BytesPerSecond>,
}

impl<'a> Resources<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The name of one; empty for one that is not there.
    pub fn name(&self, index: usize) -> String {
        self.keys.get(index).map_or_else(String::new, Key::text)
    }

    /// What its width and clock allow.
    pub fn raw(&self, index: usize) -> BytesPerSecond {
        self.raw.get(index).copied().unwrap_or_default()
    }

    pub(super) fn index(&mut self, key: Key<'a>, raw: BytesPerSecond) -> usize {
        match self.keys.iter().position(|known| *known == key) {
            Some(index) => index,
            None => {
                self.keys.push(key);
                self.raw.push(raw);
                self.keys.len() - 1
            }
        }
    }
}
