//! The interface of this board. So far there is none: the link is down, no frame comes, and what is to be sent is dropped.

extern crate alloc;

use crate::SETTINGS;
use crate::interrupts::Interrupt;
use alloc::collections::VecDeque;
use core::convert::Infallible;
use linerate_firmware::Counting;
use linerate_firmware_freertos::Opened;
use linerate_nic::{
    Capabilities, DeviceError, LinkState, MacAddr, Pool, QueuePair, RxBatch, TxQueue, TxToken,
};
use linerate_wire::units::Instant;

/// Bytes of a receive buffer.
const BUFFER: usize = 2_048;
/// The interrupts of the 32 places that an interface may be at.
const FIRST: u32 = 48;
const PLACES: u32 = 32;

/// The interface.
pub struct Device {
    dropped: u64,
    completions: VecDeque<TxToken>,
}

/// Why it cannot be used.
pub type OpenError = Infallible;

/// The interface and the pool that it receives into; once.
pub fn open() -> Result<Opened<Device>, OpenError> {
    let device = Device { dropped: 0, completions: VecDeque::new() };
    Ok(Opened { device, receive: Pool::new(SETTINGS.receive_buffers, BUFFER), queue: 0 })
}

/// Whether an interrupt is the interface's.
pub fn is_mine(interrupt: Interrupt) -> bool {
    (FIRST..FIRST + PLACES).contains(&interrupt.0)
}

/// What the interrupt handler does with the interface.
pub fn hold_interrupts() {}

impl linerate_nic::Device for Device {
    fn mac(&self) -> MacAddr {
        MacAddr(SETTINGS.mac)
    }

    fn mtu(&self) -> usize {
        1_500
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        if wanted == Capabilities::default() { Ok(()) } else { Err(DeviceError::Unsupported) }
    }

    fn link(&self) -> LinkState {
        LinkState { is_up: false, ..LinkState::UP }
    }
}

impl QueuePair for Device {
    fn enabled(&self) -> Capabilities {
        Capabilities::default()
    }

    fn receive(&mut self, _: Instant, _: &mut RxBatch) -> Result<usize, DeviceError> {
        Ok(0)
    }

    fn transmit(&mut self, _: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
        let mut taken = 0;
        while let Some(packet) = queue.front() {
            self.completions.push_back(packet.meta.token);
            queue.pop();
            taken += 1;
        }
        self.dropped += taken as u64;
        Ok(taken)
    }

    fn poll_completion(&mut self) -> Option<TxToken> {
        self.completions.pop_front()
    }
}

impl Counting for Device {
    fn count(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("drop_no_interface", self.dropped);
    }
}
