//! The stack under tasks: an echo server on the sockets of `linerate-embedded`, over a driver of `embassy-net-driver`.
#![no_std]
#![no_main]

use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embedded_io_async::{Read, Write};
use footprint as _;
use linerate_embedded::{Clock, EmbassyDevice, Listener, Net};
use linerate_nic::{Pool, Port, PortConfig};
use linerate_stack::{Node, NodeConfig, StackConfig, StackPools};
use linerate_transport::{ListenAddr, ListenOptions};
use linerate_wire::units::Instant;

/// An interface with one frame each way.
struct Registers([u8; 1_514]);

struct Token<'a>(&'a mut [u8; 1_514]);

impl RxToken for Token<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, f: F) -> R {
        let len = black_box(0).min(self.0.len());
        f(&mut black_box(self.0)[..len])
    }
}

/// Nothing where it comes along with a received frame, for nobody here makes use of it.
struct Room<'a>(Option<&'a mut [u8; 1_514]>);

impl TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let Some(frame) = self.0 else { return f(&mut []) };
        let len = len.min(frame.len());
        let result = f(&mut frame[..len]);
        black_box(frame);
        result
    }
}

impl Driver for Registers {
    type RxToken<'a> = Token<'a>;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: &mut Context<'_>) -> Option<(Token<'_>, Room<'_>)> {
        black_box(true).then(|| (Token(&mut self.0), Room(None)))
    }

    fn transmit(&mut self, _: &mut Context<'_>) -> Option<Room<'_>> {
        black_box(true).then(|| Room(Some(&mut self.0)))
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        if black_box(true) {
            LinkState::Up
        } else {
            LinkState::Down
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = self.0.len();
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet([2, 0, 0, 0, 0, 1])
    }
}

/// A clock that is asked again and again.
struct Polled;

impl Clock for Polled {
    fn now(&self) -> Instant {
        black_box(Instant::ZERO)
    }

    async fn sleep_until(&self, at: Instant) {
        core::future::poll_fn(|_| if self.now() >= at { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

async fn echo(listener: &Listener<'_>) {
    let mut buffer = [0; 512];
    loop {
        let mut socket = listener.accept().await;
        while let Ok(len @ 1..) = socket.read(&mut buffer).await {
            if socket.write_all(&buffer[..len]).await.is_err() {
                break;
            }
        }
    }
}

/// Where the processor starts.
#[no_mangle]
pub extern "C" fn _start() -> ! {
    let frames = Pool::new(16, 1_536);
    let Ok(device) = EmbassyDevice::new(Registers([0; 1_514]), frames.clone()) else { panic!("no Ethernet") };
    let Ok(port) = Port::new(device, PortConfig::default()) else { panic!("the interface refuses") };
    let config = StackConfig { dhcp: true, max_connections: 8, ..StackConfig::default() };
    let pools = StackPools::new(16, 1).with_receive(frames);
    let sizes = NodeConfig { rx_batch: 16, tx_queue: 16, ..NodeConfig::default() };
    let net = Net::new(Node::new(port, config, black_box([0; 32]), pools, sizes), Polled);
    let options = ListenOptions::default();
    let Ok(listener) = net.listen(ListenAddr { ip: None, port: 7 }, &options) else { panic!("no port 7") };
    let mut server = pin!(echo(&listener));
    let mut runner = pin!(net.run(|node, waker| node.port.device_mut().set_waker(waker)));
    let cx = &mut Context::from_waker(Waker::noop());
    loop {
        black_box(server.as_mut().poll(cx).is_ready());
        black_box(runner.as_mut().poll(cx).is_ready());
    }
}
