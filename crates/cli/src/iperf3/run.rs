//! The loop of a client: the portable turn with sleep, signals and output around it.

use super::print::Printer;
use crate::logging;
use crate::serve::engine::HostEngine;
use crate::serve::worker::Machine;
use linerate_linux::files::AnyFiles;
use linerate_linux::signals::Signals;
use linerate_nic::DeviceError;
use linerate_serve::iperf3::client::{Client, ClientError};
use linerate_serve::{Host as _, Loop, Service as _};
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Longest that the client waits for duplicate address detection.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(4);
/// Longest that the last words to the server may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often a busy loop looks at signals and the log.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How often a loop that is to end looks whether it can.
const END_INTERVAL: Duration = Duration::from_millis(20);

/// A client on its way.
pub struct Running {
    /// Sockets and their device, files, and the client.
    pub core: Loop<Box<dyn HostEngine>, AnyFiles, Client>,
    /// Clock and random numbers.
    pub machine: Machine,
    /// Signals of the process.
    pub signals: Signals,
    /// What is printed.
    pub printer: Printer,
}

impl Running {
    /// One turn; true when something moved, or would in another turn.
    fn turn(&mut self) -> Result<bool, DeviceError> {
        let taken_in = self.core.take_in(&mut self.machine)?;
        let served = self.core.serve(&mut self.machine)?;
        let busy = taken_in || served;
        Ok(busy && !self.core.settle(&mut self.machine)?)
    }

    /// Sleeps until there is something to do, or until `deadline`; true when a signal may have come.
    fn sleep(&mut self, deadline: Option<Instant>) -> bool {
        let now = self.machine.now();
        if self.core.arm(now) {
            return false;
        }
        let logged = logging::settle(now);
        let deadlines = [self.core.poll_timeout(), deadline, logged];
        let timeout = deadlines.iter().flatten().min().map(|at| *at - now);
        match self.core.engine.sleep(&[self.core.files.as_fd(), self.signals.as_fd()], timeout) {
            Ok(ready) => ready >> 1 != 0,
            Err(error) => {
                log::error!("waiting failed: {error}");
                false
            }
        }
    }

    /// Turns until all `addresses` can be used, or patience is over.
    pub fn settle(&mut self, addresses: &[IpAddr]) -> Result<(), DeviceError> {
        let until = self.machine.now() + ADDRESS_PATIENCE;
        loop {
            // First of all: the stack learns the time by it.
            let busy = self.turn()?;
            let usable = self.core.engine.addresses_in_use();
            // One that is told by the network is not known before.
            let is_ready =
                |usable: &[IpAddr]| !usable.is_empty() && addresses.iter().all(|ip| usable.contains(ip));
            if usable.is_none_or(|usable| is_ready(&usable)) || self.machine.now() >= until {
                return Ok(());
            }
            if !busy {
                self.sleep(Some(until));
            }
        }
    }

    /// Runs the test to its end; tells how it went.
    pub fn run(&mut self) -> Result<Result<(), ClientError>, DeviceError> {
        self.core.with(&mut self.machine, |client, ctx| {
            // A client opens no listener that could fail.
            let _ = client.start(ctx);
        });
        let mut next_look = self.machine.now();
        let outcome = loop {
            let busy = self.turn()?;
            self.printer.print_events(self.core.services_mut());
            // Before it sleeps: a turn that ended the test may leave nothing that would wake it.
            if let Some(outcome) = self.core.services().outcome() {
                break outcome;
            }
            let look = !busy && self.sleep(None);
            let now = self.machine.now();
            if look || now >= next_look {
                next_look = now + LOOK_INTERVAL;
                logging::settle(now);
                if self.signals.take().is_some() {
                    self.core.with(&mut self.machine, |client, ctx| client.drain(ctx));
                }
            }
        };
        self.say_farewell()?;
        Ok(outcome)
    }

    /// Lets the last words and the ends of connections leave.
    fn say_farewell(&mut self) -> Result<(), DeviceError> {
        let until = self.machine.now() + FAREWELL;
        while self.machine.now() < until {
            let busy = self.turn()?;
            if !busy && self.core.is_idle() {
                break;
            }
            if !busy {
                let at = self.machine.now() + END_INTERVAL;
                self.sleep(Some(at.min(until)));
            }
        }
        Ok(())
    }
}
