//! The stack and the HTTP server.
#![no_std]
#![no_main]

use linerate_serve::http;
use linerate_transport::Owner;

/// Where the processor starts.
#[no_mangle]
pub extern "C" fn _start() -> ! {
    footprint::run(&mut [Some(&mut http::Server::new(Owner(1), http::Config::default()))])
}
