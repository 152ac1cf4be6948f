//! Caches, and the region that they leave alone: frames and descriptors, which a DMA engine reads and writes beside them.

use cortex_m::Peripherals;
use cortex_m::asm::{dsb, isb};

/// The memory of the Ethernet's domain, rounded up to a power of two: nothing else lies there.
const PACKETS: u32 = 0x3000_0000;
const PACKETS_LOG2: u32 = 19;
/// RBAR: the region's number is in the same word.
const VALID: u32 = 1 << 4;
/// RASR: never executed; full access; normal memory, not cached (TEX 1, C 0, B 0), shared; the size; on (Armv7-M manual, B3.5).
const ATTRIBUTES: u32 = 1 << 28 | 0b011 << 24 | 0b001 << 19 | 1 << 18 | (PACKETS_LOG2 - 1) << 1 | 1;
/// CTRL: on, and where no region is, all as without it.
const ON: u32 = 1 | 1 << 2;

/// Switches both caches on; before the Ethernet, and once.
pub fn start() {
    embassy_stm32::pac::RCC.ahb2enr().modify(|w| {
        w.set_sram1en(true);
        w.set_sram2en(true);
        w.set_sram3en(true);
    });
    let Some(core) = Peripherals::take() else { return };
    let (mpu, mut scb, mut cpuid) = (core.MPU, core.SCB, core.CPUID);
    dsb();
    // SAFETY: nothing but frames and descriptors is in the region, and nothing has used it yet; everywhere else memory stays what it
    // was.
    unsafe {
        mpu.rbar.write(PACKETS | VALID);
        mpu.rasr.write(ATTRIBUTES);
        mpu.ctrl.write(ON);
    }
    dsb();
    isb();
    scb.enable_icache();
    scb.enable_dcache(&mut cpuid);
}
