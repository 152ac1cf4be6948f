//! The Linux devices that our stack is measured on.

use super::place::{TAP, Wire};
use clap::ValueEnum;
use serde::Serialize;

/// What the device under test runs on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A TAP device.
    Tap,
    /// A packet socket on a veth pair.
    Packet,
}

impl Device {
    /// All of them.
    pub const ALL: [Device; 2] = [Device::Tap, Device::Packet];

    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Tap => "linux-tap",
            Device::Packet => "linux-packet",
        }
    }

    /// What it is in words.
    pub const fn title(self) -> &'static str {
        match self {
            Device::Tap => "TAP device",
            Device::Packet => "packet socket on veth",
        }
    }

    /// What `--device` of the server is given.
    pub fn words(self) -> String {
        match self {
            Device::Tap => format!("tap:{TAP}"),
            Device::Packet => "packet:veth1".to_owned(),
        }
    }

    /// What lies between a server on it and its clients.
    pub const fn wire(self) -> Wire {
        match self {
            Device::Tap => Wire::Tap,
            Device::Packet => Wire::Veth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_serve_and_records_name_them() {
        let named = Device::ALL.map(|device| (device.name(), device.words(), device.wire()));
        let tap = ("linux-tap", "tap:lrtap0".to_owned(), Wire::Tap);
        let packet = ("linux-packet", "packet:veth1".to_owned(), Wire::Veth);
        assert_eq!(named, [tap, packet]);
    }
}
