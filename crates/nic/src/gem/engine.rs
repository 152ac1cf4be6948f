//! Where the device's rings lie: told to it anew while it runs, by whichever queue needs it.
//!
//! The registers that name a ring are not to be written while the device uses it (UG1087: `receive_q_ptr`,
//! `transmit_q_ptr`), and what starts and stops it is one register for all queues, which another core may write at any
//! moment. So what was written is read back, and done again if the device did not take it.

use crate::bus::{Bus, Platform};
use crate::gem::descriptor::Table;
use crate::gem::regs;

/// Attempts to name a ring.
const ATTEMPTS: usize = 16;
/// Looks after which sending has not come to an end: a packet of 1,518 bytes takes 1.2 ms at 10 Mb/s.
const MOST_LOOKS: usize = 20_000;
/// What is left of a ring's address in its register.
const BASE: u32 = !3;

/// How a transmit ring was named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Installed {
    /// Between two packets: other queues go on where they were.
    Halted,
    /// By stopping the transmitter: it is at the first descriptor of every queue.
    Stopped,
}

/// Where the device finds these bytes, if it can be told so.
pub(super) fn reach<P: Platform>(board: &P, bytes: &[u8], is_wide: bool) -> Option<u64> {
    let address = board.bus_address(bytes)?;
    fits(address, bytes.len() as u64, is_wide).then_some(address)
}

/// Whether the device can be told this address.
pub(super) fn fits(address: u64, len: u64, is_wide: bool) -> bool {
    is_wide || address.checked_add(len).is_some_and(|end| end <= 1 << 32)
}

/// Names a receive ring, which `clear` makes one without buffers first; false if the device does not take it.
#[must_use]
pub(super) fn install_receive(board: &impl Bus, register: u32, table: Table, clear: impl Fn()) -> bool {
    let base = table.base as u32;
    (0..ATTEMPTS).any(|_| {
        board.write(regs::NETWORK_CONTROL, regs::RUNNING & !regs::ENABLE_RECEIVE);
        clear();
        board.write(register, base);
        board.write(regs::NETWORK_CONTROL, regs::RUNNING);
        board.read(register) & BASE == base
    })
}

/// Names a transmit ring, which `clear` makes one without packets first; `None` if the device does not take it.
#[must_use]
pub(super) fn install_transmit(
    board: &impl Bus,
    register: u32,
    table: Table,
    clear: impl Fn(),
) -> Option<Installed> {
    let (base, mut how) = (table.base as u32, Installed::Halted);
    let is_taken = (0..ATTEMPTS).any(|_| {
        board.write(regs::NETWORK_CONTROL, regs::RUNNING | regs::HALT);
        if !has_halted(board) {
            how = Installed::Stopped;
            board.write(regs::NETWORK_CONTROL, regs::RUNNING & !regs::ENABLE_TRANSMIT);
        }
        clear();
        board.write(register, base);
        board.write(regs::NETWORK_CONTROL, regs::RUNNING);
        board.read(register) & BASE == base
    });
    // What had happened is answered, and other queues go on.
    board.write(regs::TRANSMIT_STATUS, !regs::TRANSMITTING);
    board.write(regs::NETWORK_CONTROL, regs::RUNNING | regs::START);
    is_taken.then_some(how)
}

fn has_halted(board: &impl Bus) -> bool {
    (0..MOST_LOOKS).any(|look| {
        if look > 0 {
            board.pause();
        }
        board.read(regs::TRANSMIT_STATUS) & regs::TRANSMITTING == 0
    })
}
