//! The stack alone, with an echo server on port 7 (RFC 862) over the transport contract.
#![no_std]
#![no_main]

use core::hint::black_box;
use footprint::Machine;
use linerate_transport::{ListenAddr, ListenOptions, Owner, Ready, Source, Transport};

/// Where the processor starts.
#[no_mangle]
pub extern "C" fn _start() -> ! {
    let Some(mut machine) = Machine::new() else { panic!("the interface refuses") };
    let net: &mut dyn Transport = black_box(&mut machine.node.stack);
    black_box(net.listen(Owner(1), ListenAddr { ip: None, port: 7 }, &ListenOptions::default()).is_ok());
    loop {
        machine.turn();
        let net: &mut dyn Transport = black_box(&mut machine.node.stack);
        let Some(event) = net.poll_event() else { continue };
        match event.source {
            Source::Listener(listener) => while net.accept(listener).is_some() {},
            Source::Conn(conn) => {
                let mut piece = [0; 512];
                let len = net.peek(conn).len().min(piece.len());
                piece[..len].copy_from_slice(&net.peek(conn)[..len]);
                if net.write(conn, &piece[..len]).is_ok() {
                    net.consume(conn, len);
                }
                if event.ready.contains(Ready::CLOSED) {
                    net.close(conn);
                }
            }
            Source::Udp(_) => {}
        }
    }
}
