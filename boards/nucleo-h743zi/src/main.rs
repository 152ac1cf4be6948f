//! linerate on ST's board NUCLEO-H743ZI (Cortex-M7 at 400 MHz), with embassy's driver for the Ethernet: HTTP, FTP and iperf3.
//!
//! There is one loop, which sleeps where it has nothing to do; interrupts only wake it.
#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod caches;
mod clock;
mod ethernet;
mod heap;
mod interrupts;
mod panic;
mod phy;
mod rates;
mod trace;
mod uart;

use cortex_m_rt::entry;
use embassy_stm32::rng::Rng;
use embassy_stm32::wdg::IndependentWatchdog;
use linerate_firmware::{Parts, log};

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

#[entry]
fn main() -> ! {
    heap::mend_reads();
    let p = embassy_stm32::init(rates::config());
    heap::start();
    caches::start();
    clock::start(BUILT_NS);
    uart::start(p.USART3, p.PD8, p.PD9);
    log::to_ring(clock::now);
    // A loop that does not turn for so long is started anew, and so is a board after its last report, or one whose interface does not
    // come out of its reset.
    let watchdog = (SETTINGS.watchdog > 0).then(|| {
        let mut watchdog = IndependentWatchdog::new(p.IWDG1, SETTINGS.watchdog * 1_000_000);
        watchdog.unleash();
        watchdog
    });
    trace::TRACE.prepare(SETTINGS.trace, clock::now);
    let wires = ethernet::Wires {
        ref_clk: p.PA1,
        mdio: p.PA2,
        crs_dv: p.PA7,
        mdc: p.PC1,
        rxd0: p.PC4,
        rxd1: p.PC5,
        tx_en: p.PG11,
        txd0: p.PG13,
        txd1: p.PB13,
    };
    let opened = match ethernet::open(p.ETH, p.ETH_SMA, wires) {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    };
    let mut board = board::Nucleo::new(Rng::new(p.RNG, interrupts::Lines), watchdog);
    let parts = Parts {
        device: opened.device,
        receive: opened.receive,
        device_queue: ethernet::RECEIVE_RING,
        batch: ethernet::BATCH,
        flash: FILES,
        built_ns: BUILT_NS,
        tracer: &trace::TRACE,
        exchange: None,
    };
    match linerate_firmware::run(&mut board, &SETTINGS, parts) {
        Ok(never) => match never {},
        Err(error) => panic!("the network ended: {error}"),
    }
}
