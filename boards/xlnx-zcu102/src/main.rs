//! linerate on the Zynq UltraScale+ board ZCU102, on four Cortex-A53 without an operating system: HTTP, FTP and iperf3.
//!
//! Each core has one loop, and no interrupt but the watchdog's ever interrupts it: where it has nothing to do it sleeps, and asks when it wakes what is
//! due. The first core has the interface; the others have their frames from it (`linerate_firmware::exchange`).
#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod clock;
mod cores;
mod ethernet;
mod heap;
mod interrupts;
mod marks;
mod panic;
mod processor;
mod registers;
mod rgmii;
mod stack;
mod start;
mod trace;
mod uart;
mod watchdog;

use alloc::boxed::Box;
use linerate_firmware::exchange::{Exchange, INBOUND, NoQueue};
use linerate_firmware::{Chance, Parts, log};
use linerate_nic::{Device as _, Member, Pool};

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Where the start goes on, on the first core; at which exception level the image began.
fn run(level: u64) -> ! {
    heap::start();
    uart::start();
    watchdog::note_start(level);
    interrupts::start();
    clock::start(BUILT_NS);
    log::to_ring(clock::now);
    trace::TRACE.prepare(SETTINGS.trace, clock::now);
    let cores = cores::start(SETTINGS.cores, level);
    let opened = match ethernet::open(cores) {
        Ok(opened) => opened,
        Err(error) => panic!("{error}"),
    };
    let exchange = (cores > 1).then(|| {
        let mut chance = Chance::new(clock::wall_ns() as u64 ^ clock::now().as_nanos().rotate_left(32));
        let mut random = || chance.next(clock::now());
        &*Box::leak(Box::new(Exchange::new(&SETTINGS, BUILT_NS, cores as u16, interrupts::ring, &mut random)))
    });
    if let Some(exchange) = exchange {
        let device = &opened.device;
        let (mac, mtu, capabilities) = (device.mac(), device.mtu(), device.capabilities());
        cores::hand_over(cores::Work { exchange, mac, mtu, capabilities }, opened.second);
    }
    let board = board::Zcu102::first(opened.device.interrupt());
    let device = ethernet::Device::First(opened.device);
    let parts = parts(device, opened.receive, ethernet::QUEUE, exchange.map(|exchange| (exchange, 0)));
    serve(board, parts)
}

/// What another core does.
fn run_member(core: usize, work: cores::Work) -> ! {
    let none = NoQueue::new(work.mac, work.mtu, work.capabilities);
    let (device, receive, queued) = match cores::take_queue(core).map(ethernet::start) {
        Some(Ok((queue, receive))) => {
            (ethernet::Device::Second(Member::new(queue, &none)), receive, ethernet::QUEUE)
        }
        Some(Err(error)) => panic!("{error}"),
        None => {
            let receive = Pool::new(SETTINGS.receive_buffers, ethernet::RECEIVE_BUFFER);
            (ethernet::Device::None(none), receive, INBOUND)
        }
    };
    serve(board::Zcu102::other(core), parts(device, receive, queued, Some((work.exchange, core as u16))))
}

fn parts(
    device: ethernet::Device,
    receive: Pool,
    device_queue: usize,
    exchange: Option<(&'static Exchange, u16)>,
) -> Parts<ethernet::Device> {
    Parts {
        device,
        receive,
        device_queue,
        batch: ethernet::BATCH,
        flash: FILES,
        built_ns: BUILT_NS,
        tracer: &trace::TRACE,
        exchange,
    }
}

fn serve(mut board: board::Zcu102, parts: Parts<ethernet::Device>) -> ! {
    watchdog::start();
    match linerate_firmware::run(&mut board, &SETTINGS, parts) {
        Ok(never) => match never {},
        Err(error) => panic!("the network ended: {error}"),
    }
}
