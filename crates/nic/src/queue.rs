//! The contract of a queue pair: batches in, batches out, completions, interrupts; and how queues and control make an
//! interface.

use crate::device::{Capabilities, Device, DeviceError};
use crate::frame::RxBatch;
use crate::meta::{MacAddr, TxToken};
use crate::pacing::PacingConfig;
use crate::pass_on;
use crate::tx::TxQueue;
use linerate_wire::units::Instant;

/// A receive and a transmit queue with their interrupt. It belongs to one core, and shares nothing with other queues that
/// its user would have to know of.
///
/// Call order in one turn of the loop: [`QueuePair::receive`], again only after a full batch, let the stack take
/// the batch and fill the transmit queue, [`QueuePair::transmit`] once for the whole queue (one doorbell), then
/// [`QueuePair::poll_completion`] until `None`. Before the loop sleeps, [`QueuePair::arm`].
pub trait QueuePair {
    /// What is switched on, for this queue.
    fn enabled(&self) -> Capabilities;

    /// Appends received frames to `batch` until it is full or none is waiting; returns how many.
    fn receive(&mut self, now: Instant, batch: &mut RxBatch) -> Result<usize, DeviceError>;

    /// Takes packets from the front of `queue` until it is empty or the ring is full; returns how many. A packet that
    /// asks for something that is not switched on is never given to this method (see the offload layer).
    fn transmit(&mut self, now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError>;

    /// The token of a packet that has left or was dropped, each once, at any time and in any order. Packets with token 0 are
    /// not reported.
    fn poll_completion(&mut self) -> Option<TxToken>;

    /// Asks for an interrupt as soon as there is something to receive, a completion, or room again in a ring that was full;
    /// true if there is already, and the loop must not sleep. The order matters: the interrupt is armed first and the rings are
    /// looked at afterwards, so that nothing comes unseen in between.
    ///
    /// The default is for devices that the host can wait for without arming (a descriptor that stays readable).
    fn arm(&mut self, _now: Instant) -> bool {
        false
    }

    /// Frames that wait to be received, as far as a look tells at little cost: more than none if there are any. 0, the default,
    /// where a look says nothing.
    fn waiting(&mut self) -> u32 {
        0
    }

    /// As [`QueuePair::arm`], for a loop that lets frames wait until there are so many (at least one): true if there are.
    /// It may interrupt earlier. `None`, the default, where the queue cannot count; nothing is armed then.
    fn arm_for(&mut self, _now: Instant, _frames: u32) -> Option<bool> {
        None
    }

    /// Most frames that [`QueuePair::arm_for`] waits for. `None`, the default, where the queue cannot count.
    fn most_counted(&self) -> Option<u32> {
        None
    }

    /// When [`QueuePair::receive`] or [`QueuePair::arm`] must be called at the latest though no interrupt came: for a driver that looks
    /// now and then whether its hardware still goes on. `None`, the default, where interrupts tell everything.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Sets when an interrupt follows the frames that have come.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] where the queue does not do it, or not in this mode.
    fn set_pacing(&mut self, _pacing: PacingConfig) -> Result<(), DeviceError> {
        Err(DeviceError::Unsupported)
    }
}

/// A control and the queue of the core that owns it.
#[derive(Debug)]
pub struct Joined<C, Q> {
    /// The control.
    pub control: C,
    /// The queue.
    pub queue: Q,
}

/// A queue whose control belongs to another core: address, MTU and capabilities are as they were when it was made, and
/// what concerns the whole device is left to its owner.
#[derive(Debug)]
pub struct Member<Q> {
    /// The queue.
    pub queue: Q,
    mac: MacAddr,
    mtu: usize,
    capabilities: Capabilities,
    /// What of the device's capabilities this queue's owner allows.
    allowed: Capabilities,
}

impl<Q: QueuePair> Member<Q> {
    /// The queue of a device with this control.
    pub fn new(queue: Q, control: &impl Device) -> Self {
        let capabilities = control.capabilities();
        Member { queue, mac: control.mac(), mtu: control.mtu(), capabilities, allowed: Capabilities::ALL }
    }
}

impl<C, Q: QueuePair> QueuePair for Joined<C, Q> {
    pass_on!(queue: all of QueuePair);
}

impl<C: Device, Q> Device for Joined<C, Q> {
    pass_on!(control: all of Device);
}

impl<Q: QueuePair> QueuePair for Member<Q> {
    pass_on!(queue: receive, transmit, poll_completion, arm, waiting, arm_for, most_counted, poll_timeout, set_pacing);

    fn enabled(&self) -> Capabilities {
        self.queue.enabled().and(self.allowed)
    }
}

impl<Q: QueuePair> Device for Member<Q> {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Narrows what this queue is asked for; the device stays as its owner switched it, now or later.
    fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
        self.allowed = wanted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::LinkState;
    use crate::meta::ChecksumRequest;
    use crate::port::{Port, PortConfig};
    use crate::tx::TxPacket;
    use alloc::rc::Rc;
    use alloc::vec::Vec;
    use core::cell::Cell;

    /// What control and queues share: what is switched on.
    #[derive(Clone, Default)]
    struct Registers(Rc<Cell<Capabilities>>);

    struct Control(Registers);

    impl Device for Control {
        fn mac(&self) -> MacAddr {
            MacAddr([2, 0, 0, 0, 0, 7])
        }

        fn mtu(&self) -> usize {
            1_500
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::ALL
        }

        fn enable(&mut self, wanted: Capabilities) -> Result<(), DeviceError> {
            self.0.0.set(wanted);
            Ok(())
        }

        fn link(&self) -> LinkState {
            LinkState::DOWN
        }

        fn queues(&self) -> usize {
            2
        }
    }

    /// Takes packets, and remembers which left their checksum to it.
    struct Ring(Registers, Vec<bool>);

    impl QueuePair for Ring {
        fn enabled(&self) -> Capabilities {
            self.0.0.get()
        }

        fn receive(&mut self, _now: Instant, _batch: &mut RxBatch) -> Result<usize, DeviceError> {
            Ok(0)
        }

        fn transmit(&mut self, _now: Instant, queue: &mut TxQueue) -> Result<usize, DeviceError> {
            let mut count = 0;
            while let Some(packet) = queue.pop_front() {
                self.1.push(packet);
                count += 1;
            }
            Ok(count)
        }

        fn poll_completion(&mut self) -> Option<TxToken> {
            None
        }
    }

    impl TxQueue {
        /// Whether the first packet leaves its checksum to the device; takes it.
        fn pop_front(&mut self) -> Option<bool> {
            let asks = self.front()?.meta.checksum.is_some();
            self.pop();
            Some(asks)
        }
    }

    /// A UDP packet over IPv4 that leaves its checksum to the device.
    fn fill(packet: &mut TxPacket) {
        let header = packet.header_mut(42);
        header.fill(0);
        header[12..15].copy_from_slice(&[8, 0, 0x45]);
        header[17] = 28;
        header[23] = 17;
        header[39] = 8;
        packet.meta.header_len = 42;
        packet.meta.checksum = Some(ChecksumRequest { start: 34, offset: 6 });
    }

    #[test]
    fn what_the_control_switches_holds_for_the_queues_of_other_cores() {
        let registers = Registers::default();
        let control = Control(registers.clone());
        let member = Member::new(Ring(registers.clone(), Vec::new()), &control);
        let owner = Joined { control, queue: Ring(registers.clone(), Vec::new()) };
        assert_eq!((owner.mac(), owner.queues()), (member.mac(), 2));
        assert_eq!((owner.link(), member.link()), (LinkState::DOWN, LinkState::UP));
        // In this order: what the owner switches on later holds too.
        let mut member = Port::new(member, PortConfig::default()).unwrap();
        assert_eq!(member.enabled(), Capabilities::NONE);
        let mut owner = Port::new(owner, PortConfig::default()).unwrap();
        let mut queue = TxQueue::with_capacity(1);
        let mut send = |member: &mut Port<Member<Ring>>| {
            fill(queue.vacant().unwrap());
            queue.commit();
            assert_eq!(member.transmit(Instant::ZERO, &mut queue), Ok(1));
        };
        send(&mut member);
        owner.set_offloads(Capabilities::NONE).unwrap();
        send(&mut member);
        owner.set_offloads(Capabilities::ALL).unwrap();
        send(&mut member);
        assert_eq!(member.device().queue.1, [true, false, true]);
        assert_eq!(member.stats().tx.software_checksums, 1);
        // A member takes less than there is, and never more.
        member.set_offloads(Capabilities::NONE).unwrap();
        send(&mut member);
        assert_eq!(member.device().queue.1.last(), Some(&false));
        assert_eq!(registers.0.get(), Capabilities::ALL, "the device is not switched by it");
    }
}
