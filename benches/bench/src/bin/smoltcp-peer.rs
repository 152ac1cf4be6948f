//! smoltcp behind iperf3's control protocol: `smoltcp-peer TAP`, on a TAP that is there and up. Its own device for TAPs is
//! used as it comes, without offloads; its buffers have 1 MiB.

use anyhow::{Context, Result};
use bench::control::{COOKIE, Control};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::os::fd::AsRawFd;

const PORT: u16 = 5_201;
const BUFFER: usize = 1 << 20;

/// What is under way.
#[derive(Default)]
struct Test {
    control: Option<(SocketHandle, Control)>,
    unsent: Vec<u8>,
    received: u64,
    sent: u64,
}

impl Test {
    fn turn(&mut self, handle: SocketHandle, socket: &mut Socket<'_>, data: &[u8]) {
        match socket.state() {
            State::Closed => {
                if self.control.as_ref().is_some_and(|(control, _)| *control == handle) {
                    *self = Test::default();
                }
                // It is closed, and the port is not zero.
                socket.listen(PORT).expect("it can listen");
            }
            State::Listen => {}
            _ if self.control.as_ref().is_none_or(|(control, _)| *control == handle) => {
                self.talk(handle, socket);
            }
            _ => self.stream(socket, data),
        }
        if socket.state() == State::CloseWait {
            socket.close();
        }
    }

    fn talk(&mut self, handle: SocketHandle, socket: &mut Socket<'_>) {
        let moved = self.received.saturating_sub(COOKIE as u64) + self.sent;
        while socket.can_recv() {
            let (_, control) = self.control.get_or_insert_with(|| (handle, Control::default()));
            let taken = socket.recv(|bytes| {
                control.handle(bytes, moved);
                (bytes.len(), ())
            });
            if taken.is_err() {
                break;
            }
        }
        if let Some((_, control)) = &mut self.control {
            self.unsent.extend(control.take_output());
            let sent = socket.send_slice(&self.unsent).unwrap_or(0);
            self.unsent.drain(..sent);
        }
    }

    fn stream(&mut self, socket: &mut Socket<'_>, data: &[u8]) {
        let Some((_, control)) = &mut self.control else { return };
        while socket.can_recv() {
            self.received += socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap_or(0) as u64;
        }
        if self.received >= COOKIE as u64 {
            control.stream_opened();
        }
        while control.sends() && socket.can_send() {
            self.sent += socket.send_slice(data).unwrap_or(0) as u64;
        }
        if control.ends() {
            socket.close();
        }
    }
}

fn main() -> Result<()> {
    let name = std::env::args().nth(1).context("the name of a TAP")?;
    let mut device = TunTapInterface::new(&name, Medium::Ethernet)?;
    let fd = device.as_raw_fd();
    let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, 4]).into());
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|all| all.push(IpCidr::new(IpAddress::v4(192, 168, 1, 4), 24)).expect("room"));
    let mut sockets = SocketSet::new(Vec::new());
    let buffer = || SocketBuffer::new(vec![0; BUFFER]);
    // The test's two, and one that listens while another's end is not over yet.
    let handles = [(); 3].map(|()| sockets.add(Socket::new(buffer(), buffer())));
    let mut test = Test::default();
    let data = vec![7; 64 << 10];
    println!("Ready");
    loop {
        for handle in handles {
            test.turn(handle, sockets.get_mut(handle), &data);
        }
        let changed = interface.poll(Instant::now(), &mut device, &mut sockets);
        let most = Duration::from_millis(50);
        let delay = interface.poll_delay(Instant::now(), &sockets).unwrap_or(most).min(most);
        if changed == PollResult::None && delay != Duration::ZERO {
            wait(fd, Some(delay))?;
        }
    }
}
