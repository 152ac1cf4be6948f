//! Counters and gauges that say of themselves what they are: declared once, for every report.
//!
//! [`figures!`](crate::figures!) declares a struct of `u64` fields. The doc comment of a field is its description
//! everywhere: in the status report, in its metrics and in the documentation.

/// Whether a figure only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It counts since the start.
    Counter,
    /// It counts since the start what was thrown away, refused or given up, for one reason.
    Drop,
    /// It says how much there is now.
    Gauge,
}

/// What a figure is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Things, as its description says which.
    Count,
    /// Bytes.
    Bytes,
}

/// The name and the meaning of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figure {
    /// Its name within its struct.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    description: &'static str,
}

impl Figure {
    /// A counter of things; one whose name begins with `drop_` is a [`Kind::Drop`].
    pub const fn new(name: &'static str, description: &'static str) -> Figure {
        let kind = if begins_with(name.as_bytes(), b"drop_") { Kind::Drop } else { Kind::Counter };
        Figure { name, kind, unit: Unit::Count, description }
    }

    /// The same, counted in bytes.
    pub const fn bytes(self) -> Figure {
        Figure { unit: Unit::Bytes, ..self }
    }

    /// The same, of what was thrown away, refused or given up.
    pub const fn drop(self) -> Figure {
        Figure { kind: Kind::Drop, ..self }
    }

    /// The same as a gauge.
    pub const fn gauge(self) -> Figure {
        Figure { kind: Kind::Gauge, ..self }
    }

    /// What it means, in one or two sentences.
    pub fn description(&self) -> &'static str {
        self.description.trim_ascii()
    }
}

const fn begins_with(text: &[u8], start: &[u8]) -> bool {
    let mut at = 0;
    while at < start.len() {
        if at >= text.len() || text[at] != start[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// A struct of figures, as [`figures!`](crate::figures!) declares it.
pub trait Figures {
    /// What its fields are, in their order.
    const FIGURES: &'static [Figure];

    /// The values of its fields, in their order.
    fn values(&self) -> impl Iterator<Item = u64>;

    /// Each with its value.
    fn figures(&self) -> impl Iterator<Item = (&'static Figure, u64)> {
        Self::FIGURES.iter().zip(self.values())
    }
}

/// Declares a struct of public `u64` fields, each with its description:
///
/// ```
/// linerate_wire::figures! {
///     /// What a device counted.
///     pub struct Device {
///         /// Frames received.
///         frames,
///         /// Bytes of these.
///         received [bytes],
///         /// Frames refused for want of a buffer.
///         refused [drop],
///         /// Buffers in use now.
///         held [gauge],
///     }
/// }
/// use linerate_wire::figures::Figures;
/// let device = Device { frames: 3, ..Device::default() };
/// let (figure, value) = device.figures().next().unwrap();
/// assert_eq!((figure.name, figure.description(), value), ("frames", "Frames received.", 3));
/// ```
///
/// The words in brackets are methods of [`Figure`].
#[macro_export]
macro_rules! figures {
    (
        $(#[$meta:meta])*
        pub struct $struct:ident {
            $($(#[doc = $doc:literal])* $name:ident $([$($word:ident)+])?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $struct {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl $crate::figures::Figures for $struct {
            const FIGURES: &'static [$crate::figures::Figure] = &[$(
                $crate::figures::Figure::new(stringify!($name), concat!($($doc),*))$($(.$word())+)?,
            )*];

            fn values(&self) -> impl Iterator<Item = u64> {
                [$(self.$name,)*].into_iter()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::figures! {
        /// A struct.
        pub struct Some {
            /// One line
            /// and another.
            plain,
            /// Dropped.
            drop_this,
            /// Both.
            refused [drop bytes],
            /// Now.
            now [gauge],
        }
    }

    #[test]
    fn a_field_says_what_it_is() {
        let kinds = Some::FIGURES.iter().map(|figure| (figure.kind, figure.unit));
        assert!(kinds.eq([
            (Kind::Counter, Unit::Count),
            (Kind::Drop, Unit::Count),
            (Kind::Drop, Unit::Bytes),
            (Kind::Gauge, Unit::Count),
        ]));
        assert_eq!(Some::FIGURES[0].description(), "One line and another.");
        let some = Some { plain: 1, drop_this: 2, refused: 3, now: 4 };
        assert!(some.figures().map(|(figure, value)| (figure.name, value)).eq([
            ("plain", 1),
            ("drop_this", 2),
            ("refused", 3),
            ("now", 4),
        ]));
    }
}
