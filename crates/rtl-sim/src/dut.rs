//! A block as an object: ports by name, and a clock.

use core::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

/// A port of a block.
#[derive(Clone, Copy, Debug)]
struct PortInfo {
    name: &'static str,
    bits: u32,
    is_output: bool,
}

/// A block that was compiled in. The functions take the handle that `new` gave.
struct Entry {
    name: &'static str,
    new: extern "C" fn() -> *mut c_void,
    delete: unsafe extern "C" fn(*mut c_void),
    eval: unsafe extern "C" fn(*mut c_void),
    port: unsafe extern "C" fn(*mut c_void, u32) -> *mut c_void,
    ports: &'static [PortInfo],
}

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

/// Whether Verilator was there when this was built.
pub fn is_available() -> bool {
    cfg!(verilated)
}

/// Why there is no such block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// Verilator was not found when this was built.
    NoVerilator,
    /// There is no block of this name.
    NoBlock(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::NoVerilator => f.write_str(
                "built without Verilator, so there is no simulated hardware: run `cargo xtask rtl setup` and build again",
            ),
            Unavailable::NoBlock(name) => {
                let known: Vec<&str> = BLOCKS.iter().map(|entry| entry.name).collect();
                write!(f, "there is no block {name:?}; compiled in are: {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// A port of a [`Dut`], by [`Dut::port`]. With another block than it is from, it means another port.
#[derive(Clone, Copy, Debug)]
pub struct Port(usize);

/// Where the model keeps a port.
struct Pin {
    data: NonNull<c_void>,
    bits: u32,
    is_output: bool,
}

impl Pin {
    fn words(&self) -> usize {
        self.bits.div_ceil(32) as usize
    }
}

/// A block under test (or in use): a verilated model with its clock.
///
/// A clock is: set inputs, [`Dut::settle`], look at outputs, [`Dut::edge`].
pub struct Dut {
    entry: &'static Entry,
    handle: NonNull<c_void>,
    pins: Vec<Pin>,
    clock: Port,
    cycles: u64,
}

impl Dut {
    /// A new instance of the block `name`, as `rtl/` calls it; `name@128` for one with a stream of that width, if it was compiled in.
    /// Its inputs are zero and it has not been reset.
    ///
    /// # Errors
    /// [`Unavailable`] says what is missing.
    pub fn open(name: &str) -> Result<Dut, Unavailable> {
        if !is_available() {
            return Err(Unavailable::NoVerilator);
        }
        let entry = BLOCKS
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| Unavailable::NoBlock(name.to_owned()))?;
        let clock = entry.ports.iter().position(|port| port.name == "clk");
        let clock = Port(clock.ok_or_else(|| Unavailable::NoBlock(format!("{name} with a clock")))?);
        let handle = NonNull::new((entry.new)()).ok_or_else(|| Unavailable::NoBlock(name.to_owned()))?;
        let mut dut = Dut { entry, handle, pins: Vec::with_capacity(entry.ports.len()), clock, cycles: 0 };
        for (index, info) in entry.ports.iter().enumerate() {
            // SAFETY: the handle is what `new` of this entry gave; an index that is too large gives null.
            let data = unsafe { (entry.port)(handle.as_ptr(), index as u32) };
            let data = NonNull::new(data).ok_or_else(|| Unavailable::NoBlock(name.to_owned()))?;
            dut.pins.push(Pin { data, bits: info.bits, is_output: info.is_output });
        }
        Ok(dut)
    }

    /// The port `name`.
    ///
    /// # Errors
    /// Names the port and the block if there is none.
    pub fn port(&self, name: &str) -> Result<Port, String> {
        self.entry.ports.iter().position(|port| port.name == name).map(Port).ok_or_else(|| {
            let known: Vec<&str> = self.entry.ports.iter().map(|port| port.name).collect();
            format!("block {} has no port {name:?}; it has {}", self.entry.name, known.join(", "))
        })
    }

    /// The width of a port.
    pub fn bits(&self, port: Port) -> u32 {
        self.pins[port.0].bits
    }

    /// Whether there is such a port.
    pub fn has_port(&self, name: &str) -> bool {
        self.entry.ports.iter().any(|port| port.name == name)
    }

    /// Sets an input of up to 64 bits; bits beyond its width are cut off.
    pub fn set(&mut self, port: Port, value: u64) {
        self.set_wide(port, &[value as u32, (value >> 32) as u32]);
    }

    /// Sets an input by its 32-bit words, the lowest first; words that are missing are zero.
    pub fn set_wide(&mut self, port: Port, words: &[u32]) {
        let pin = &self.pins[port.0];
        assert!(!pin.is_output, "an output cannot be set");
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let cut = |value: u64, bits: u32| if bits >= 64 { value } else { value & ((1 << bits) - 1) };
        let low = cut(u64::from(word(0)) | u64::from(word(1)) << 32, pin.bits);
        let data = pin.data.as_ptr();
        // SAFETY: `data` points to the port's storage inside the model, of the type that Verilator gives to a port of this
        // width (8, 16, 32, 64 bits, or an array of 32-bit words). The model lives as long as `self`, which is borrowed alone.
        unsafe {
            match pin.bits {
                0..=8 => data.cast::<u8>().write(low as u8),
                9..=16 => data.cast::<u16>().write(low as u16),
                17..=32 => data.cast::<u32>().write(low as u32),
                33..=64 => data.cast::<u64>().write(low),
                _ => {
                    for index in 0..pin.words() {
                        let rest = pin.bits - index as u32 * 32;
                        data.cast::<u32>().add(index).write(cut(u64::from(word(index)), rest) as u32);
                    }
                }
            }
        }
    }

    /// The value of a port of up to 64 bits (the lowest 64 of a wider one).
    pub fn get(&self, port: Port) -> u64 {
        let pin = &self.pins[port.0];
        let data = pin.data.as_ptr();
        // SAFETY: as in `set_wide`; nobody writes while `self` is borrowed.
        unsafe {
            match pin.bits {
                0..=8 => u64::from(data.cast::<u8>().read()),
                9..=16 => u64::from(data.cast::<u16>().read()),
                17..=32 => u64::from(data.cast::<u32>().read()),
                33..=64 => data.cast::<u64>().read(),
                _ => u64::from(data.cast::<u32>().read()) | u64::from(data.cast::<u32>().add(1).read()) << 32,
            }
        }
    }

    /// The value of a port as 32-bit words, the lowest first; words that it does not have are zero.
    pub fn get_wide<const N: usize>(&self, port: Port) -> [u32; N] {
        let mut words = [0; N];
        self.read_words(port, &mut words);
        words
    }

    /// [`Dut::get_wide`] into a slice.
    pub fn read_words(&self, port: Port, words: &mut [u32]) {
        words.fill(0);
        let pin = &self.pins[port.0];
        if pin.bits <= 64 {
            let value = self.get(port);
            for (index, word) in words.iter_mut().take(2).enumerate() {
                *word = (value >> (32 * index)) as u32;
            }
            return;
        }
        for (index, word) in words.iter_mut().take(pin.words()).enumerate() {
            // SAFETY: as in `get`; `index` is below the number of words of a port of this width.
            *word = unsafe { pin.data.as_ptr().cast::<u32>().add(index).read() };
        }
    }

    /// Lets the inputs reach the outputs, with the clock low.
    pub fn settle(&mut self) {
        self.set(self.clock, 0);
        self.eval();
    }

    /// The rising edge of the clock.
    pub fn edge(&mut self) {
        self.set(self.clock, 1);
        self.eval();
        self.cycles += 1;
    }

    /// Holds `rst` for some clocks.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn reset(&mut self) -> Result<(), String> {
        let reset = self.port("rst")?;
        self.set(reset, 1);
        for _ in 0..4 {
            self.settle();
            self.edge();
        }
        self.set(reset, 0);
        Ok(())
    }

    /// Rising edges so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    fn eval(&mut self) {
        // SAFETY: the handle is what `new` of the same entry gave, and is deleted only when `self` is dropped.
        unsafe { (self.entry.eval)(self.handle.as_ptr()) }
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        // SAFETY: the handle is what `new` gave, deleted once; the pins that point into it go with `self`.
        unsafe { (self.entry.delete)(self.handle.as_ptr()) }
    }
}

impl fmt::Debug for Dut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dut").field("block", &self.entry.name).field("cycles", &self.cycles).finish()
    }
}
