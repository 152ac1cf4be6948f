//! Where a server's processor time goes: samples of its stacks by `perf`, sorted by what was being done.

use crate::server::Server;
use anyhow::{Context, Result, bail};
use linerate_lab::measure::place::run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Samples a second: no multiple of the timer's rate, with which turns of a server may keep step.
const HERTZ: &str = "1999";
/// Longest time until its file is there, and what it takes from there until it samples.
const PATIENCE: Duration = Duration::from_secs(5);
const BEGIN: Duration = Duration::from_millis(100);

/// What a sample is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Place {
    /// The program's own code.
    Program,
    /// Shared libraries, and what the kernel maps into each process.
    Libraries,
    /// Falling asleep, and what follows until the process runs again.
    Sleep,
    /// Waking others up, as the client for which data came.
    Wake,
    /// Packets on their way up through the kernel, in whoever's time: the client's within a write to a device.
    Arrival,
    /// Copies from and to the process, of pages and files.
    Copy,
    /// Sending and writing, as far as it is none of the above.
    Send,
    /// Receiving and reading.
    Receive,
    /// Asking what is ready.
    Poll,
    /// Opening, closing and looking at files.
    Files,
    /// Memory of the process that is not there yet.
    Fault,
    /// Everything else of the kernel.
    Kernel,
}

impl Place {
    /// All of them, in the order of tables.
    pub const ALL: [Place; 12] = [
        Place::Program,
        Place::Libraries,
        Place::Send,
        Place::Receive,
        Place::Copy,
        Place::Arrival,
        Place::Wake,
        Place::Sleep,
        Place::Poll,
        Place::Files,
        Place::Fault,
        Place::Kernel,
    ];

    /// Its name in tables and sentences.
    pub fn name(self) -> &'static str {
        match self {
            Place::Program => "program",
            Place::Libraries => "libraries",
            Place::Sleep => "sleep",
            Place::Wake => "wake-ups",
            Place::Arrival => "arrival",
            Place::Copy => "copies",
            Place::Send => "send",
            Place::Receive => "receive",
            Place::Poll => "poll",
            Place::Files => "files",
            Place::Fault => "page faults",
            Place::Kernel => "other kernel",
        }
    }
}

/// What was sampled while a server was measured once more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// How many samples.
    pub samples: u64,
    /// Shares of them.
    pub shares: BTreeMap<Place, f64>,
    /// The function of the program with most samples of its own, and its share.
    pub largest: Option<(String, f64)>,
}

/// Samples a server until it is told to stop.
#[derive(Debug)]
pub struct Sampler {
    child: Child,
    file: PathBuf,
}

impl Sampler {
    /// Begins, and comes back when it has: with all processes of the server's group, or, where there is none, with those that
    /// run now.
    pub fn start(server: &Server, file: &Path) -> Result<Sampler> {
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "cpu-clock", "-F", HERTZ, "-g"]);
        match server.group() {
            Some(group) => perf.args(["-a", "-G", group.name()]),
            None => {
                let pids: Vec<String> = server.processes().iter().map(u32::to_string).collect();
                perf.args(["-p", &pids.join(",")])
            }
        };
        let _ = std::fs::remove_file(file);
        let out = Stdio::null;
        let child = perf.arg("-o").arg(file).stdin(out()).stdout(out()).stderr(out()).spawn();
        let child = child.context("cannot start perf: install linux-perf")?;
        let end = Instant::now() + PATIENCE;
        while std::fs::metadata(file).map_or(0, |meta| meta.len()) == 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(BEGIN);
        Ok(Sampler { child, file: file.to_owned() })
    }

    /// Ends, and sorts what was sampled.
    pub fn stop(mut self) -> Result<Profile> {
        run(Command::new("kill").args(["-INT", &self.child.id().to_string()]))?;
        self.child.wait()?;
        let text = run(Command::new("perf").args(["script", "-F", "ip,sym,dso", "-i"]).arg(&self.file))?;
        let found = sort(&text);
        if found.samples == 0 {
            bail!("perf took no samples");
        }
        Ok(found)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A function on a stack, and the object that it is in.
type Frame<'a> = (&'a str, &'a str);

/// Sorts what `perf script` prints: a stack for each sample, the innermost function first, an empty line between.
fn sort(text: &str) -> Profile {
    let mut counts: BTreeMap<Place, u64> = BTreeMap::new();
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    let mut samples = 0;
    for stack in text.split("\n\n") {
        let frames: Vec<Frame<'_>> = stack.lines().filter_map(frame).collect();
        let Some((innermost, _)) = frames.first() else { continue };
        samples += 1;
        let place = place(&frames);
        *counts.entry(place).or_default() += 1;
        if place == Place::Program {
            *own.entry(innermost).or_default() += 1;
        }
    }
    let share = |count: u64| count as f64 / samples.max(1) as f64;
    let largest = own.into_iter().max_by_key(|(_, count)| *count);
    Profile {
        samples,
        shares: counts.into_iter().map(|(place, count)| (place, share(count))).collect(),
        largest: largest.map(|(name, count)| (name.to_owned(), share(count))),
    }
}

/// `ffffffff81234567 tcp_ack ([kernel.kallsyms])`
fn frame(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = line.trim().split_once(' ')?;
    let (symbol, object) = rest.rsplit_once(" (")?;
    Some((symbol.trim(), object.trim_end_matches(')')))
}

/// What a stack is of.
fn place(frames: &[Frame<'_>]) -> Place {
    let is_kernel =
        |frame: &&Frame<'_>| frame.1.starts_with("[kernel") || frame.1.starts_with("[guest.kernel");
    let kernel: Vec<&str> = frames.iter().take_while(is_kernel).map(|frame| frame.0).collect();
    if kernel.is_empty() {
        let object = frames.first().map_or("", |frame| frame.1);
        let name = object.rsplit('/').next().unwrap_or_default();
        let library = name.contains(".so") || name.starts_with('[');
        return if library { Place::Libraries } else { Place::Program };
    }
    let any = |names: &[&str]| kernel.iter().any(|frame| names.iter().any(|name| frame.starts_with(name)));
    let innermost =
        |names: &[&str]| kernel.first().is_some_and(|frame| names.iter().any(|name| frame.starts_with(name)));
    if any(&["try_to_wake_up", "__wake_up", "wake_up_", "ep_poll_callback", "sock_def_readable"]) {
        Place::Wake
    } else if kernel
        .iter()
        .any(|frame| ["schedule", "__schedule"].contains(&frame.split('.').next().unwrap_or(frame)))
    {
        Place::Sleep
    } else if innermost(&[
        "copy_",
        "_copy_",
        "__copy_",
        "rep_movs",
        "clear_page",
        "memcpy",
        "__memcpy",
        "csum_partial_copy",
    ]) {
        Place::Copy
    } else if any(&["__netif_receive_skb", "netif_receive_skb", "process_backlog", "napi_", "__napi_"]) {
        Place::Arrival
    } else if any(&["asm_exc_page_fault", "exc_page_fault"]) {
        Place::Fault
    } else {
        kernel.iter().rev().find_map(|frame| call(frame)).unwrap_or(Place::Kernel)
    }
}

/// The kind of a system call, by a function of the kernel for it: the outermost one is often left out of the stack.
fn call(function: &str) -> Option<Place> {
    let name =
        ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_", "__sys_", "vfs_", "do_sys_", "do_"]
            .iter()
            .find_map(|prefix| function.strip_prefix(prefix))?;
    let is = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    if is(&["send", "write", "pwrite", "splice", "vmsplice", "tee"]) {
        Some(Place::Send)
    } else if is(&["recv", "read", "pread"]) && !is(&["readlink"]) {
        Some(Place::Receive)
    } else if is(&["epoll", "poll", "ppoll", "select", "pselect"]) {
        Some(Place::Poll)
    } else if is(&[
        "open",
        "close",
        "newfstat",
        "fstat",
        "stat",
        "lstat",
        "access",
        "readlink",
        "lseek",
        "filp_open",
    ]) {
        Some(Place::Files)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: &str = "[kernel.kallsyms]";

    fn stack(kernel: &[&str], user: Frame<'_>) -> String {
        let kernel = kernel.iter().map(|symbol| format!("\tffffffff81000000 {symbol} ({K})\n"));
        let user = format!("\t    55d0c0ffee00 {} ({})\n", user.0, user.1);
        kernel.chain([user]).collect()
    }

    #[test]
    fn a_stack_is_of_the_first_place_that_fits() {
        let main = ("main", "/usr/bin/server");
        let check = |kernel: &[&str], user, expected| {
            let found = sort(&stack(kernel, user));
            assert_eq!((found.samples, found.shares), (1, BTreeMap::from([(expected, 1.0)])), "{kernel:?}");
        };
        check(&[], ("<a::B as c::D<E (F)>>::g", "/x/linerate"), Place::Program);
        check(&[], ("memmove", "/usr/lib/libc.so.6"), Place::Libraries);
        check(&[], ("clock_gettime", "[vdso]"), Place::Libraries);
        check(
            &["tun_get_user", "tun_chr_write_iter", "__x64_sys_writev", "do_syscall_64"],
            main,
            Place::Send,
        );
        check(&["tcp_ack", "__netif_receive_skb", "__x64_sys_write", "do_syscall_64"], main, Place::Arrival);
        check(&["_copy_to_iter", "tcp_recvmsg", "__x64_sys_recvfrom", "do_syscall_64"], main, Place::Copy);
        check(&["tcp_recvmsg", "__x64_sys_recvfrom", "do_syscall_64"], main, Place::Receive);
        check(
            &["ttwu_do_activate", "try_to_wake_up", "__netif_receive_skb", "__x64_sys_write"],
            main,
            Place::Wake,
        );
        check(
            &["__schedule", "schedule", "ep_poll", "__x64_sys_epoll_pwait", "do_syscall_64"],
            main,
            Place::Sleep,
        );
        check(&["ep_send_events", "__x64_sys_epoll_pwait", "do_syscall_64"], main, Place::Poll);
        check(&["path_openat", "__x64_sys_openat2", "do_syscall_64"], main, Place::Files);
        check(&["clear_page_erms", "exc_page_fault", "asm_exc_page_fault"], main, Place::Copy);
        check(&["handle_mm_fault", "exc_page_fault", "asm_exc_page_fault"], main, Place::Fault);
        check(&["do_accept", "__x64_sys_accept4", "do_syscall_64"], main, Place::Kernel);
        check(&["entry_SYSCALL_64"], main, Place::Kernel);
    }

    #[test]
    fn shares_and_the_largest_function() {
        let user = |name| stack(&[], (name, "/x/server"));
        let call = stack(&["fdget", "__x64_sys_read", "do_syscall_64"], ("read", "/usr/lib/libc.so.6"));
        let found = sort(&[user("a"), user("b"), call, user("b")].join("\n"));
        assert_eq!(found.samples, 4);
        assert_eq!(found.shares, BTreeMap::from([(Place::Program, 0.75), (Place::Receive, 0.25)]));
        assert_eq!(found.largest, Some(("b".into(), 0.5)));
        assert_eq!(sort(""), Profile::default());
    }
}
