//! The stack and the iperf3 client.
#![no_std]
#![no_main]

use core::hint::black_box;
use linerate_serve::iperf3::client::{json, text, Client, Config};
use linerate_transport::Owner;

/// Where the processor starts.
#[no_mangle]
pub extern "C" fn _start() -> ! {
    let server = black_box(([192, 168, 1, 1], 5201).into());
    let mut client = Client::new(Config { owner: Owner(1), ..Config::new(server) });
    // What a console prints of it.
    black_box(text::end(&client.report()));
    black_box(json::report(&client.report(), &[], &Default::default(), Ok(())));
    footprint::run(&mut [Some(&mut client)])
}
