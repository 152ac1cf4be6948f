//! The whole interface in simulation: its RTL between a memory, a processor that drives it, and a cable.
//!
//! [`Simulation`] is hardware and memory; [`Board`] is what the driver ([`linerate_nic::mcdma`]) sees of it: registers, descriptor
//! memory, and memory for frames with a cache between that does not see what the device does. [`open`] makes a device of the two,
//! the same that a real chip would be.

mod board;
mod memory;

pub use board::{Board, OpenError, open};
pub use memory::SystemMemory;

use crate::axi::{AxiSlave, Memory, Timing};
use crate::axil::AxiLite;
use crate::dut::{Dut, Port};
use crate::stream::{Pause, Sink, Source, UserAt};
use std::collections::VecDeque;

/// Clocks after which an access to a register is given up.
const ACCESS_CLOCKS: u64 = 10_000;

/// A clock in picoseconds: 156.25 MHz.
pub const CLOCK_PS: u64 = 6_400;

/// Link speed that the MAC tells, in megabits per second.
const SPEED: u64 = 10_000;

/// The interface, its memory, and the cable's end.
#[derive(Debug)]
pub struct Simulation {
    dut: Dut,
    registers: AxiLite,
    data: AxiSlave,
    descriptors: AxiSlave,
    memory: SystemMemory,
    from_mac: Source,
    to_mac: Sink,
    sent: VecDeque<Vec<u8>>,
    interrupts: [Port; 3],
    link_up: Port,
    /// Clocks since anything moved between the interface and anybody else.
    quiet: u64,
    fault: Option<String>,
}

impl Simulation {
    /// An interface after its reset, with the cable plugged in. `seed` decides when memory is slow, if `timing` leaves that open.
    ///
    /// # Errors
    /// What is missing: Verilator, the block, a port.
    pub fn new(timing: Timing, seed: u64) -> Result<Self, String> {
        let mut dut = Dut::open("nic").map_err(|error| error.to_string())?;
        let registers = AxiLite::new(&dut, "s_axil")?;
        let data = AxiSlave::new(&dut, "m_axi", timing, seed)?;
        let descriptors = AxiSlave::new(&dut, "m_axi_sg", timing, seed ^ 1)?;
        let from_mac = Source::new(&dut, "s_axis", Pause::Never, UserAt::Last, seed ^ 2)?;
        let to_mac = Sink::new(&dut, "m_axis", Pause::Never, seed ^ 3)?;
        let interrupts = [dut.port("irq_rx")?, dut.port("irq_tx")?, dut.port("irq_link")?];
        let link_up = dut.port("link_up")?;
        let (full_duplex, speed) = (dut.port("link_full_duplex")?, dut.port("link_speed")?);
        dut.set(full_duplex, 1);
        dut.set(speed, SPEED);
        dut.set(link_up, 1);
        dut.reset()?;
        Ok(Simulation {
            dut,
            registers,
            data,
            descriptors,
            memory: SystemMemory::default(),
            from_mac,
            to_mac,
            sent: VecDeque::new(),
            interrupts,
            link_up,
            quiet: 0,
            fault: None,
        })
    }

    /// One clock of everything.
    pub fn clock(&mut self) {
        let Simulation { dut, registers, data, descriptors, memory, from_mac, to_mac, .. } = self;
        registers.drive(dut);
        data.drive(dut, memory);
        descriptors.drive(dut, memory);
        from_mac.drive(dut);
        to_mac.drive(dut);
        dut.settle();
        registers.observe(dut);
        data.observe(dut, memory);
        descriptors.observe(dut, memory);
        from_mac.observe(dut);
        to_mac.observe(dut);
        dut.edge();
        let busy =
            from_mac.waiting() > 0 || to_mac.is_in_frame() || !data.is_idle() || !descriptors.is_idle();
        self.quiet = if busy { 0 } else { self.quiet + 1 };
        let count = self.sent.len();
        match self.to_mac.pop() {
            Ok(frame) => self.sent.extend(frame.map(|frame| frame.data)),
            Err(fault) => _ = self.fault.get_or_insert(fault.0),
        }
        if self.sent.len() > count {
            self.quiet = 0;
        }
    }

    /// Clocks until nothing has moved for `quiet` clocks, but at most `most`; returns how many.
    pub fn settle(&mut self, quiet: u64, most: u64) -> u64 {
        let began = self.dut.cycles();
        self.quiet = 0;
        while self.quiet < quiet && self.dut.cycles() - began < most {
            self.clock();
        }
        self.dut.cycles() - began
    }

    /// A frame arrives at the MAC, without FCS; `damaged` as the MAC would find it by the FCS.
    pub fn receive(&mut self, frame: Vec<u8>, damaged: bool) {
        if !frame.is_empty() {
            self.from_mac.push(frame, [u32::from(damaged), 0, 0, 0]);
        }
    }

    /// Frames that have arrived and have not passed the MAC.
    pub fn waiting(&self) -> usize {
        self.from_mac.waiting()
    }

    /// The next frame that has left.
    pub fn sent(&mut self) -> Option<Vec<u8>> {
        self.sent.pop_front()
    }

    /// Interrupt lines: receive and transmit queues, a bit each; the link.
    pub fn interrupts(&self) -> (u64, u64, bool) {
        let [receive, transmit, link] = self.interrupts.map(|port| self.dut.get(port));
        (receive, transmit, link != 0)
    }

    /// Plugs the cable in or pulls it.
    pub fn set_link(&mut self, up: bool) {
        self.dut.set(self.link_up, u64::from(up));
    }

    /// Clocks since the beginning.
    pub fn cycles(&self) -> u64 {
        self.dut.cycles()
    }

    /// Beats of data read and written, of descriptors read and written.
    pub fn traffic(&self) -> [u64; 4] {
        [self.data.moved.0, self.data.moved.1, self.descriptors.moved.0, self.descriptors.moved.1]
    }

    /// The first rule of a bus that the interface broke.
    ///
    /// # Errors
    /// Says which.
    pub fn check(&self) -> Result<(), String> {
        self.data.check()?;
        self.descriptors.check()?;
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Reads a register.
    ///
    /// # Errors
    /// The slave's response, or that there was none.
    pub fn read_register(&mut self, address: u32) -> Result<u32, String> {
        self.registers.read(address);
        self.access(address)
    }

    /// Writes a register.
    ///
    /// # Errors
    /// As [`Simulation::read_register`].
    pub fn write_register(&mut self, address: u32, value: u32) -> Result<(), String> {
        self.registers.write(address, value);
        self.access(address).map(drop)
    }

    fn access(&mut self, address: u32) -> Result<u32, String> {
        for _ in 0..ACCESS_CLOCKS {
            self.clock();
            if let Some(answer) = self.registers.take() {
                return answer.map_err(|code| format!("register {address:#x}: response {code}"));
            }
        }
        Err(format!("register {address:#x}: no answer in {ACCESS_CLOCKS} clocks"))
    }

    /// Memory as the device sees it.
    pub fn memory(&mut self) -> &mut SystemMemory {
        &mut self.memory
    }
}

impl Memory for SystemMemory {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> crate::Response {
        self.load(address, bytes);
        crate::Response::Okay
    }

    fn write(&mut self, address: u64, bytes: &[u8], strobes: u64) -> crate::Response {
        self.store_some(address, bytes, strobes);
        crate::Response::Okay
    }
}
