//! The commands of the serial console, and the editing of its line.

mod desk;
mod line;

pub use desk::Desk;
pub use line::{Key, Line};

use crate::board::Board;
use crate::caller;
use crate::disk::Disk;
use crate::exchange::{Spread, iperf3_port};
use crate::instruments;
use crate::probe::Probe;
use crate::report::{self, Told};
use crate::reserve;
use crate::settings::Settings;
use crate::sums;
use alloc::string::String;
use core::fmt::Write;
use linerate_nic::Interface;
use linerate_stack::{MemoryStats, Node};

/// What stands in front of a line.
pub const PROMPT: &str = "> ";
/// The same in place of what is on the line.
const PROMPT_AGAIN: &str = "\r\x1b[K> ";
const HELP: &str = "help      this\n\
    ifconfig  link and addresses\n\
    stats     what was counted and is not zero\n\
    tasks     load, state and stack of every task\n\
    cores     load of every core, and what it has handled\n\
    mem       heap, pools, RAM disk\n\
    conns     connections\n\
    log       the last lines of the log\n\
    sums      compare the processor's fast checksums and copies with slow ones\n";

/// The console of a board without an operating system: keys in, answers out, between two turns of the loop.
pub struct Console {
    take: fn() -> Option<u8>,
    print: fn(&str),
    line: Line,
    command: Option<String>,
}

impl Console {
    /// On a serial line: how a byte is taken that has come, and how text is sent.
    pub const fn new(take: fn() -> Option<u8>, print: fn(&str)) -> Console {
        Console { take, print, line: Line::new(), command: None }
    }

    /// Takes what has been typed; whether a command is complete.
    pub fn read(&mut self) -> bool {
        while self.command.is_none() {
            let Some(byte) = (self.take)() else { return false };
            match self.line.key(byte) {
                Key::Echo(text) => (self.print)(text),
                Key::Char(char) => (self.print)(char.encode_utf8(&mut [0; 4])),
                Key::Instead(text) => {
                    (self.print)(PROMPT_AGAIN);
                    (self.print)(&text);
                }
                Key::Enter(text) => {
                    (self.print)("\n");
                    self.command = Some(text);
                }
                Key::Nothing => {}
            }
        }
        true
    }

    /// A command that waits to be carried out.
    pub fn command(&mut self) -> Option<String> {
        self.read();
        self.command.take()
    }

    /// Shows the answer to the last one.
    pub fn answer(&self, text: &str) {
        (self.print)(text);
        (self.print)(PROMPT);
    }
}

/// The first lines of a console.
pub(crate) fn greeting(settings: &Settings, seats: u16) -> String {
    let mut text = alloc::format!("linerate on {}\n", settings.name);
    for (name, ports) in [("http", settings.http), ("ftp", settings.ftp), ("iperf3", settings.iperf3)] {
        for port in ports {
            // Writing to a String does not fail.
            let _fits = writeln!(text, "{name} port {port}");
        }
    }
    if let Some(first) = iperf3_port(settings, 0) {
        let _fits = writeln!(text, "iperf3 port {first} and up, one for each of {seats} cores");
    }
    text.push_str("help tells the commands\n");
    text
}

/// Whether a command shows what each core tells.
pub(crate) fn shows_all(line: &str) -> bool {
    matches!(line.trim(), "stats" | "tasks" | "cores" | "mem" | "conns")
}

/// Carries out a command; `all` is what each core tells, if it [shows](shows_all) that.
pub(crate) fn run<D: Interface>(
    line: &str,
    board: &mut impl Board,
    settings: &Settings,
    node: &mut Node<Spread<Probe<D>>>,
    disk: &Disk,
    all: &[Told],
) -> String {
    let mut out = String::new();
    let written = match line.trim() {
        "" => Ok(()),
        "help" => [HELP, caller::HELP, reserve::HELP, instruments::HELP, &board.help_of_its_own()]
            .into_iter()
            .try_for_each(|text| out.write_str(text)),
        "ifconfig" => ifconfig(&mut out, settings, node),
        "stats" => stats(&mut out, all),
        "tasks" => tasks(&mut out, board, all),
        "cores" => cores(&mut out, board, all),
        "mem" => memory(&mut out, board, disk, all),
        "conns" => connections(&mut out, all),
        "log" => out.write_str(&board.log()),
        "sums" => out.write_str(&(sums::compare() + &sums::compare_copies())),
        other => match instruments::run(other, node).or_else(|| board.command_of_its_own(other)) {
            Some(answer) => out.write_str(&answer),
            None => writeln!(out, "no command {other:?}; help tells which there are"),
        },
    };
    debug_assert!(written.is_ok(), "writing to a String does not fail");
    out
}

type Written = core::fmt::Result;

fn ifconfig<D: Interface>(out: &mut String, settings: &Settings, node: &Node<D>) -> Written {
    let link = node.port.link();
    write!(out, "{}: link {}", settings.name, if link.is_up { "up" } else { "down" })?;
    if let Some(speed) = link.speed.filter(|_| link.is_up) {
        let duplex = if link.is_full_duplex { "full" } else { "half" };
        write!(out, ", {} Mb/s, {duplex} duplex", speed.as_bps() / 1_000_000)?;
    }
    writeln!(out, "\nethernet {}", node.port.mac())?;
    node.stack.addresses().try_for_each(|address| writeln!(out, "address {address}"))
}

fn stats(out: &mut String, all: &[Told]) -> Written {
    let is_counted = |(_, value): &report::Named| *value != 0;
    let mut interface = report::sums(all, |told| &told.interface).into_iter().filter(is_counted);
    interface.try_for_each(|(name, value)| writeln!(out, "interface {name:<24}{value:>12}"))?;
    let mut counters = report::sums(all, |told| &told.counters).into_iter().filter(is_counted);
    counters.try_for_each(|(name, value)| writeln!(out, "{name:<34}{value:>12}"))
}

/// A line for each core: load, and what it has handled.
fn cores(out: &mut String, board: &mut impl Board, all: &[Told]) -> Written {
    let uptime_us = board.now().as_nanos() / 1_000;
    writeln!(
        out,
        "{:<5}{:>6}{:>10}{:>12}{:>12}{:>7}{:>14}{:>14}{:>9}",
        "core",
        "%",
        "idle ms",
        "frames in",
        "frames out",
        "conns",
        "tcp bytes in",
        "tcp bytes out",
        "dropped"
    )?;
    all.iter().try_for_each(|told| {
        let busy_us = told.busy_us();
        let dropped = told.counters.iter().filter(|(name, _)| name.starts_with("drop_mailbox"));
        writeln!(
            out,
            "{:<5}{:>6}{:>10}{:>12}{:>12}{:>7}{:>14}{:>14}{:>9}",
            told.seat,
            report::percent(busy_us, uptime_us),
            uptime_us.saturating_sub(busy_us) / 1_000,
            told.counter("frames_in"),
            told.counter("frames_out"),
            told.memory.connections,
            told.counter("tcp_bytes_in"),
            told.counter("tcp_bytes_out"),
            dropped.map(|(_, value)| value).sum::<u64>()
        )
    })
}

fn tasks(out: &mut String, board: &mut impl Board, all: &[Told]) -> Written {
    let uptime_us = board.now().as_nanos() / 1_000;
    writeln!(
        out,
        "{:<12}{:<11}{:>8}{:>10}{:>6}{:>12}",
        "task", "state", "priority", "ms", "%", "stack free"
    )?;
    all.iter().flat_map(|told| &told.tasks).try_for_each(|task| {
        let load = report::percent(task.run_us, uptime_us);
        let (name, state, free) = (&task.name, task.state, task.stack_free);
        writeln!(
            out,
            "{name:<12}{state:<11}{:>8}{:>10}{load:>6}{free:>12}",
            task.priority,
            task.run_us / 1_000
        )
    })
}

fn memory(out: &mut String, board: &mut impl Board, disk: &Disk, all: &[Told]) -> Written {
    let heap = board.heap();
    let sum = |of: fn(&MemoryStats) -> usize| all.iter().map(|told| of(&told.memory)).sum::<usize>();
    let (used, total) = disk.ram_usage();
    writeln!(out, "heap {} of {} free, {} at least so far", heap.free, heap.total, heap.lowest)?;
    writeln!(out, "sockets {} of {}", sum(|memory| memory.used), sum(|memory| memory.limit))?;
    let receive = report::pool(all, |memory| memory.receive);
    let pools = [("receive", receive), ("pages", report::pool(all, |memory| Some(memory.pages)))];
    for (name, pool) in pools.into_iter().filter_map(|(name, pool)| Some((name, pool?))) {
        let (free, total, lowest) = (pool.free, pool.total, pool.low_water);
        writeln!(
            out,
            "{name} {free} of {total} free, {lowest} at least so far; {} bytes each",
            pool.buffer_size
        )?;
    }
    writeln!(out, "RAM disk {used} of {total}")
}

fn connections(out: &mut String, all: &[Told]) -> Written {
    writeln!(
        out,
        "{:<6}{:<9}{:<13}{:>12}{:>12}{:>8}",
        "core", "server", "state", "sent", "received", "memory"
    )?;
    for told in all {
        for conn in &told.conns {
            let server = report::owner(conn.owner.map(|owner| owner.0));
            writeln!(
                out,
                "{:<6}{server:<9}{:<13}{:>12}{:>12}{:>8}",
                told.seat, conn.state, conn.sent, conn.received, conn.memory
            )?;
        }
    }
    Ok(())
}
