//! The device contract: address, link and filter. There are no offloads but the sum of received frames.

use super::{Lan9118, Registers, regs};
use linerate_nic::{Capabilities, Device, DeviceError, Filter, LinkState, MacAddr};
use regs::mac;

/// What the device can do: a packet's pieces are written one after the other.
pub(super) const CAPABILITIES: Capabilities = Capabilities { gather: true, ..Capabilities::NONE };

impl<R: Registers> Device for Lan9118<R> {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        // Pieces can be had and left: a packet without them is one of one piece.
        if wanted.and(CAPABILITIES) == wanted { Ok(()) } else { Err(DeviceError::Unsupported) }
    }

    fn link(&self) -> LinkState {
        self.link
    }

    fn set_filter(&mut self, filter: &Filter<'_>) -> Result<(), DeviceError> {
        self.filter = mac::HASH_PERFECT;
        if filter.promiscuous {
            self.filter |= mac::PROMISCUOUS;
        }
        if filter.all_groups {
            self.filter |= mac::ALL_GROUPS;
        }
        let table = filter.groups.iter().fold(0u64, |table, group| table | 1 << hash(*group));
        self.write_mac(mac::HASHL, table as u32)
            .and_then(|()| self.write_mac(mac::HASHH, (table >> 32) as u32))
            .and_then(|()| self.write_mac(mac::CR, self.mac_cr | self.filter))
            .map_err(|_| DeviceError::Gone)
    }
}

/// The bit of a group in the hash table: the upper six bits of its CRC-32 (IEEE 802.3 section 3.2.9), which the chip keeps with
/// the first bit sent on top.
pub(super) fn hash(group: MacAddr) -> u32 {
    let mut crc = u32::MAX;
    for byte in group.0 {
        for bit in 0..8 {
            let out = crc >> 31 ^ u32::from(byte >> bit & 1);
            crc = crc << 1 ^ if out == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    crc >> 26
}
