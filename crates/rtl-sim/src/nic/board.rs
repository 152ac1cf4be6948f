//! What the driver sees of the simulated hardware.

use super::Simulation;
use linerate_nic::mcdma::{self, Bus, Control, Queue, Settings};
use linerate_nic::{Dma, Joined, Pool};
use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

/// Where descriptor memory lies on the bus: above everything that a program has.
const DESCRIPTORS: u64 = 0xf000_0000_0000;

/// A processor beside the interface. Clones are the same board.
#[derive(Clone, Debug)]
pub struct Board(Rc<RefCell<Simulation>>);

impl Board {
    /// A board with this hardware.
    pub fn new(simulation: Simulation) -> Self {
        Board(Rc::new(RefCell::new(simulation)))
    }

    /// The hardware, to look at.
    pub fn hardware(&self) -> Ref<'_, Simulation> {
        self.0.borrow()
    }

    /// The hardware, to clock, and to give it frames.
    pub fn hardware_mut(&self) -> RefMut<'_, Simulation> {
        self.0.borrow_mut()
    }
}

impl Bus for Board {
    /// A register that does not answer reads as all ones, as on a bus with pull-ups.
    fn read(&self, register: u32) -> u32 {
        let mut hardware = self.hardware_mut();
        hardware.read_register(register).unwrap_or_else(|fault| {
            hardware.fault.get_or_insert(fault);
            u32::MAX
        })
    }

    fn write(&self, register: u32, value: u32) {
        let mut hardware = self.hardware_mut();
        if let Err(fault) = hardware.write_register(register, value) {
            hardware.fault.get_or_insert(fault);
        }
    }

    fn load(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        self.hardware_mut().memory().load(address, &mut word);
        u32::from_le_bytes(word)
    }

    fn store(&self, address: u64, value: u32) {
        self.hardware_mut().memory().store(address, &value.to_le_bytes());
    }
}

/// The program's memory is the processor's cache; the device sees what was cleaned, and the program what was invalidated.
impl Dma for Board {
    fn bus_address(&self, bytes: &[u8]) -> Option<u64> {
        Some(bytes.as_ptr() as u64)
    }

    fn clean(&self, bytes: &[u8]) {
        self.hardware_mut().memory().store(bytes.as_ptr() as u64, bytes);
    }

    fn invalidate(&self, bytes: &mut [u8]) {
        let address = bytes.as_ptr() as u64;
        self.hardware_mut().memory().load(address, bytes);
    }
}

/// Why there is no device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The driver does not like the hardware, or the settings.
    Driver(mcdma::OpenError),
    /// A queue does not start.
    Start(mcdma::StartError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Driver(error) => error.fmt(f),
            OpenError::Start(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// A device with one queue: the driver on the simulated hardware. Pools as the driver wants them; buffers for received frames
/// begin at multiples of 64.
///
/// # Errors
/// What the driver says.
pub fn open(
    board: &Board,
    settings: &Settings,
    receive: Pool,
    transmit: Pool,
) -> Result<Joined<Control<Board>, Queue<Board>>, OpenError> {
    let settings = Settings { queues: 1, ..*settings };
    let (control, queues) = mcdma::open(board.clone(), DESCRIPTORS, settings.memory_needed(), &settings)
        .map_err(OpenError::Driver)?;
    let mut queues = queues.into_iter();
    let (Some(queue), None) = (queues.next(), queues.next()) else {
        return Err(OpenError::Driver(mcdma::OpenError::Queues { want: 1, have: 0 }));
    };
    let queue = queue.start(receive, transmit).map_err(OpenError::Start)?;
    Ok(Joined { control, queue })
}
