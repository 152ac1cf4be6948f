//! What a driver asks of the board: registers, and memory that both sides see without a cache.

use crate::dma::Dma;
use linerate_wire::units::Rate;

/// Registers, and the memory of descriptors.
///
/// On hardware these are volatile accesses with barriers, the only `unsafe` of a port to a board, a dozen lines; in the tests it is
/// the model. One value of it is shared by control and queues, which may be on several cores: every access is one word, which
/// the implementation swaps where processor and device differ in the order of its bytes.
///
/// `linerate_linux::uio` has the dozen lines for Linux; these are those for a board without an operating system:
///
/// ```
/// use core::sync::atomic::{Ordering, fence};
/// use linerate_nic::{Bus, Coherent, Dma};
///
/// /// A board whose device sees the caches and uses the program's addresses; registers lie from here on.
/// #[derive(Clone, Copy)]
/// struct Board(usize);
///
/// impl Bus for Board {
///     fn read(&self, register: u32) -> u32 {
///         // SAFETY: the board's registers, mapped, which only this driver uses.
///         unsafe { core::ptr::read_volatile((self.0 + register as usize) as *const u32) }
///     }
///
///     fn write(&self, register: u32, value: u32) {
///         // Orders accesses among cores. Where a device needs more (Arm: `dsb st`), that goes here.
///         fence(Ordering::SeqCst);
///         // SAFETY: as above.
///         unsafe { core::ptr::write_volatile((self.0 + register as usize) as *mut u32, value) }
///     }
///
///     fn load(&self, address: u64) -> u32 {
///         // SAFETY: the descriptor memory that the driver was opened with, which nothing else uses.
///         let value = unsafe { core::ptr::read_volatile(address as usize as *const u32) };
///         fence(Ordering::SeqCst);
///         value
///     }
///
///     fn store(&self, address: u64, value: u32) {
///         // SAFETY: as above.
///         unsafe { core::ptr::write_volatile(address as usize as *mut u32, value) }
///     }
/// }
///
/// impl Dma for Board {
///     fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
///         Coherent.bus_address(bytes)
///     }
///
///     fn clean(&self, bytes: &[u8]) {
///         Coherent.clean(bytes);
///     }
///
///     fn invalidate(&self, bytes: &mut [u8]) {
///         Coherent.invalidate(bytes);
///     }
/// }
/// ```
pub trait Bus {
    /// Reads the register at this offset.
    fn read(&self, register: u32) -> u32;

    /// Writes the register at this offset. It reaches the device after every [`Bus::store`] and every
    /// [`Dma::clean`] before it: this is where the barrier of a doorbell is.
    fn write(&self, register: u32, value: u32);

    /// Loads a word of descriptor memory, given by its bus address. No access after it comes before it: who has seen that a
    /// descriptor is complete also sees what the device wrote before it said so.
    fn load(&self, address: u64) -> u32;

    /// Stores a word of descriptor memory, given by its bus address.
    fn store(&self, address: u64, value: u32);

    /// Called between two looks at a reset that has not come to an end: where a thread can sleep, for some microseconds.
    fn pause(&self) {}

    /// Called when the link has come up at another speed than before, before packets are sent at it: where the clock of the lines to
    /// the PHY goes by the speed and is the board's to make (RGMII: 125, 25 or 2.5 MHz). The [`gem`](crate::gem) driver calls it.
    fn set_speed(&self, _speed: Rate) {}
}

/// A board: registers, descriptor memory, bus addresses and caches.
pub trait Platform: Bus + Dma + Clone {}

impl<T: Bus + Dma + Clone> Platform for T {}
