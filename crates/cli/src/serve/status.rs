//! The status port of a running server: questions in, reports out.

use super::services;
use super::worker::Worker;
use crate::settings::Settings;
use crate::status::address::StatusAddress;
use crate::status::collect::{Around, Collector};
use crate::status::exchange::{self, Desk};
use crate::status::listener;
use linerate_linux::clock::wall_clock_ns;
use linerate_wire::units::Instant;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use std::{fmt, io};

/// The port cannot be had.
#[derive(Debug)]
pub struct StatusError {
    address: StatusAddress,
    why: io::Error,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatusError { address, why } = self;
        write!(f, "the status cannot be served on {address} (--status): ")?;
        match why.kind() {
            io::ErrorKind::AddrInUse => f.write_str("another program listens there; name another port"),
            io::ErrorKind::AddrNotAvailable => {
                f.write_str("the address does not belong to this host (it is the host's, not the stack's)")
            }
            io::ErrorKind::PermissionDenied => {
                f.write_str("ports below 1024 need the CAP_NET_BIND_SERVICE capability")
            }
            _ => why.fmt(f),
        }
    }
}

/// The loop's end of the status port.
#[derive(Debug)]
pub struct Status {
    desk: Desk,
    collector: Collector,
}

impl Status {
    /// Listens where the settings say, and gives each of so many loops its end; none where they say nothing.
    pub fn start(settings: &Settings, now: Instant, loops: usize) -> Result<Vec<Status>, StatusError> {
        let Some(address) = settings.status else { return Ok(Vec::new()) };
        let failed = |why| StatusError { address, why };
        let (asker, desks) = exchange::open(loops).map_err(failed)?;
        listener::start(address.0, asker).map_err(failed)?;
        let end = |desk| Status { desk, collector: Collector::new(now, String::new()) };
        Ok(desks.into_iter().map(end).collect())
    }

    /// How the device is described.
    pub fn set_device(&mut self, device: &str) {
        self.collector.set_device(device.to_owned());
    }

    /// When somebody is to be answered.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.desk.poll_timeout()
    }
}

impl AsFd for Status {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.desk.as_fd()
    }
}

impl Worker {
    /// Answers who asks for the status, one report at a time.
    pub fn answer_status(&mut self) {
        let begun = self.machine.clock.now();
        let Some(status) = &mut self.status else { return };
        let Some(query) = status.desk.due(begun) else { return };
        let around = Around {
            now: begun,
            wall: Duration::from_nanos(wall_clock_ns()),
            memory_peak: self.memory.since_start(),
            tallies: self.core.services().tallies(&self.core.files),
            server_name: &services::name,
        };
        let mut report = status.collector.report(self.core.engine.observed(), around, query);
        let now = self.machine.clock.now();
        report.process.report = now.saturating_since(begun).as_secs_f64();
        status.desk.answer(begun, now, query, report);
    }
}

/// The most memory that sockets held: since the start, and since it was last asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryPeak {
    before: u64,
    since: u64,
}

impl MemoryPeak {
    /// Notes what is held now.
    pub fn note(&mut self, bytes: u64) {
        self.since = self.since.max(bytes);
    }

    /// The most since the start.
    pub fn since_start(&self) -> u64 {
        self.before.max(self.since)
    }

    /// The most since this was last called.
    pub fn take(&mut self) -> u64 {
        self.before = self.since_start();
        std::mem::take(&mut self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_between_two_lines_is_in_the_second() {
        let mut peak = MemoryPeak::default();
        peak.note(5);
        peak.note(3);
        assert_eq!((peak.take(), peak.since_start()), (5, 5));
        peak.note(2);
        assert_eq!((peak.take(), peak.take(), peak.since_start()), (2, 0, 5));
    }

    #[test]
    fn an_address_that_cannot_be_had_is_said_with_its_flag() {
        let error =
            StatusError { address: "9180".parse().unwrap(), why: io::Error::from(io::ErrorKind::AddrInUse) };
        let text = error.to_string();
        assert!(
            text.contains("127.0.0.1:9180") && text.contains("--status") && text.contains("another"),
            "{text}"
        );
    }
}
