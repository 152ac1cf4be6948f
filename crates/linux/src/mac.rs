//! Ethernet addresses of our own.

use linerate_nic::MacAddr;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Of an address's first byte: for a group, not for one station.
const GROUP: u8 = 0x01;
/// Of an address's first byte: locally administered.
const LOCAL: u8 = 0x02;

/// A random address of one station, locally administered (IEEE 802, 8.2): no card was sold with it.
pub fn random() -> Result<MacAddr, Errno> {
    let mut bytes = [0; 6];
    // Requests of up to 256 bytes are filled whole.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    bytes[0] = (bytes[0] & !GROUP) | LOCAL;
    Ok(MacAddr(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_addresses_are_local_single_and_differ() {
        let addresses: std::collections::HashSet<_> = (0..64).map(|_| random().unwrap()).collect();
        assert!(addresses.len() > 60);
        assert!(addresses.iter().all(|mac| mac.0[0] & (GROUP | LOCAL) == LOCAL));
    }
}
