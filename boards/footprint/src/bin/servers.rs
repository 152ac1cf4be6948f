//! The stack and all three servers.
#![no_std]
#![no_main]

use linerate_serve::{ftp, http, iperf3};
use linerate_transport::Owner;

/// Where the processor starts.
#[no_mangle]
pub extern "C" fn _start() -> ! {
    let Ok(mut ftp) = ftp::Server::new(Owner(2), ftp::Config::default()) else { panic!("bad settings") };
    let mut iperf3 = iperf3::Server::new(iperf3::Config { owner: Owner(3), ..iperf3::Config::default() });
    let mut http = http::Server::new(Owner(1), http::Config::default());
    footprint::run(&mut [Some(&mut http), Some(&mut ftp), Some(&mut iperf3)])
}
