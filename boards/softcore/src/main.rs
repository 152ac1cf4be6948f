//! linerate on a RISC-V soft core beside the project's own network interface, without an operating system: HTTP, FTP and iperf3.
//!
//! There is one loop and no interrupt but the watchdog's ever interrupts it: where it has nothing to do it sleeps, and asks when it wakes what is due.
#![no_std]
#![no_main]

extern crate alloc;

mod amo;
mod board;
mod cache_check;
mod caches;
mod clock;
mod copies;
mod counters;
mod ethernet;
mod heap;
mod panic;
mod processor;
mod rates;
mod registers;
mod stack;
mod start;
mod straps;
mod trace;
mod uart;
mod watchdog;

use linerate_firmware::{Parts, log};

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Where the start goes on.
fn run() -> ! {
    heap::start();
    watchdog::note_start();
    log::to_ring(clock::now);
    trace::TRACE.prepare(SETTINGS.trace, clock::now);
    if let Some(left_out) = straps::checks_caches() {
        cache_check::run(left_out);
    }
    let opened = match ethernet::open() {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    };
    if straps::measures() {
        rates::run();
    }
    let mut board = board::Softcore::new(opened.interrupt);
    let parts = Parts {
        device: opened.device,
        receive: opened.receive,
        device_queue: opened.queue,
        batch: opened.batch,
        flash: FILES,
        built_ns: BUILT_NS,
        tracer: &trace::TRACE,
        exchange: None,
    };
    watchdog::listen();
    match linerate_firmware::run(&mut board, &SETTINGS, parts) {
        Ok(never) => match never {},
        Err(error) => panic!("the network ended: {error}"),
    }
}
