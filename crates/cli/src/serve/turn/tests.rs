//! The loop with an engine that never rests.

use super::*;
use crate::args::{Cli, Command};
use crate::serve::banner::{Announcements, Banner};
use crate::serve::engine::{Figures, HostEngine};
use crate::serve::services::{Place, Ports, Services};
use crate::serve::worker::Machine;
use crate::settings::Settings;
use crate::status::collect::Observed;
use clap::Parser as _;
use linerate_linux::files::{AnyFiles, DemoFile, DemoFiles};
use linerate_linux::kernel::{KernelConfig, KernelTransport};
use linerate_nic::{Capabilities, DeviceError};
use linerate_serve::Loop;
use linerate_transport::{Engine, Input, Left, Output, Transport};
use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::process::Command as Program;
use std::rc::Rc;

/// Says after every turn that there is more to do, and takes its time for each.
struct Busy {
    sockets: KernelTransport,
    turns: Rc<Cell<u32>>,
    /// Turns until the process gets SIGTERM.
    signal_at: u32,
}

impl Engine for Busy {
    type Error = DeviceError;

    fn net(&mut self) -> &mut dyn Transport {
        &mut self.sockets
    }

    fn input(&mut self, _now: Instant) -> Result<Input, DeviceError> {
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() == self.signal_at {
            let pid = std::process::id().to_string();
            Program::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
        }
        std::thread::sleep(Duration::from_millis(10));
        Ok(Input { moved: true, more: true })
    }

    fn output(&mut self, _now: Instant) -> Result<Output, DeviceError> {
        Ok(Output { moved: true, left: Left::More })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn waits_for_room(&self) -> bool {
        false
    }

    fn memory_used(&self) -> usize {
        0
    }

    fn refused(&self) -> u64 {
        0
    }

    fn unfinished(&self) -> usize {
        0
    }

    fn abort_all(&mut self, _now: Instant) -> usize {
        0
    }
}

impl HostEngine for Busy {
    fn sleep(&mut self, others: &[BorrowedFd<'_>], timeout: Option<Duration>) -> std::io::Result<u32> {
        self.sockets.sleep(others, timeout)
    }

    fn figures(&mut self) -> Figures {
        Figures { accepted: 7, ..Figures::default() }
    }

    fn observed(&mut self) -> &mut dyn Observed {
        &mut self.sockets
    }

    fn addresses_in_use(&self) -> Option<Vec<IpAddr>> {
        Some(Vec::new())
    }

    fn set_offloads(&mut self, _allowed: Capabilities) -> Result<Capabilities, DeviceError> {
        Ok(Capabilities::NONE)
    }
}

/// A worker that is never done, and gets SIGTERM in the turn of this number.
fn worker(turns: &Rc<Cell<u32>>, signal_at: u32) -> Worker {
    let files = DemoFiles::new(&[DemoFile { path: "a", bytes: b"", modified_ns: 0 }]).unwrap();
    let sockets = KernelTransport::new(KernelConfig::default(), files.access()).unwrap();
    let cli = Cli::try_parse_from(["linerate", "serve", "--device", "kernel"]).unwrap();
    let Command::Serve(args) = cli.command else { panic!("the arguments say serve") };
    let settings = Settings::load(&args).unwrap();
    let ports = Ports { http: None, ftp: None, iperf3: None, kernel: true };
    let engine: Box<dyn HostEngine> = Box::new(Busy { sockets, turns: Rc::clone(turns), signal_at });
    let services = Services::new(&settings, Vec::new(), ports, 512, Vec::new(), &Place::ALONE).unwrap();
    Worker::new(Loop::new(engine, AnyFiles::Demo(files), services), Machine::default(), None)
}

fn process(worker: Worker) -> Process {
    let started = worker.now();
    let ports = Ports { http: None, ftp: None, iperf3: None, kernel: true };
    Process {
        signals: Signals::catch().unwrap(),
        worker,
        company: Company::default(),
        stats: None,
        started,
        banner: Banner {
            dir: None,
            device: String::new(),
            ports,
            writable: false,
            memory_files: true,
            user: None,
        },
        announcements: Announcements::default(),
    }
}

// One test: signals belong to the whole process.
#[test]
fn a_busy_loop_sees_a_signal_within_a_few_turns() {
    let turns = Rc::new(Cell::new(0));
    let mut serving = process(worker(&turns, 10));
    // An address that never comes is not waited for either.
    serving.settle(&["192.0.2.1".parse().unwrap()], Duration::from_secs(3_600)).unwrap();
    assert!((10..30).contains(&turns.get()), "{} turns", turns.get());
    assert_eq!(serving.run(|_| {}).unwrap(), 0);
    // By turns it would be a multiple of hundreds.
    assert!((10..30).contains(&turns.get()), "{} turns", turns.get());
    assert_eq!(serving.summary(3).figures.accepted, 7);
}

#[test]
fn a_loop_asks_on_for_as_long_as_it_is_told() {
    let mut worker = worker(&Rc::new(Cell::new(0)), u32::MAX);
    assert!(worker.turn().unwrap() && !worker.asks_on(worker.now()), "by default it sleeps");
    worker.busy_poll = Duration::from_secs(3_600);
    assert!(!worker.asks_on(worker.now()) && worker.turn().unwrap() && worker.asks_on(worker.now()));
    assert!(!worker.asks_on(worker.now() + worker.busy_poll));
}
