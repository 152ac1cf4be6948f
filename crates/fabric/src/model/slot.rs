//! A parameter of a chip by its name, with how it is read and written.

use crate::soc::Soc;

/// Reads a parameter from a chip that has it.
pub(super) type Read = Box<dyn Fn(&Soc) -> Option<f64>>;
/// Writes it to every place where it stands.
pub(super) type Write = Box<dyn Fn(&mut Soc, f64)>;

/// One parameter that may stand at several places of the file, then with the same value.
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) read: Read,
    pub(super) write: Write,
}
