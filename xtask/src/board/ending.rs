//! An emulator that is served beside: it ends when this command is told to.

use crate::shell;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long the emulator has to put the terminal right, before it is ended without asking.
const PATIENCE: Duration = Duration::from_secs(3);
const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
const INTERVAL: Duration = Duration::from_millis(50);

/// Whether somebody told this command to end, by a signal that would have ended it and left namespace and emulator behind.
#[derive(Clone, Debug)]
pub struct Ending(Arc<AtomicBool>);

impl Ending {
    /// From here on such a signal is noted. (Control-C is the board's while its console has the terminal.)
    pub fn listen() -> Result<Ending> {
        let ending = Ending(Arc::default());
        for signal in SIGNALS {
            signal_hook::flag::register(signal, Arc::clone(&ending.0))
                .with_context(|| format!("cannot listen to signal {signal}"))?;
        }
        Ok(ending)
    }

    fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does `work` until `child` has ended, by itself or because a signal has come. How it ended, which is no error of its own after
    /// a signal, and what came of the work.
    pub fn watch<T>(&self, child: &mut Child, work: impl FnOnce() -> T) -> Result<(Option<ExitStatus>, T)> {
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.wait(child));
            let done = work();
            let status =
                watcher.join().map_err(|_| anyhow::anyhow!("who waits for the emulator panicked"))??;
            Ok((status, done))
        })
    }

    /// Its status if it ended by itself.
    fn wait(&self, child: &mut Child) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait().context("the emulator")? {
                return Ok((!self.has_come()).then_some(status));
            }
            if self.has_come() {
                return end(child).map(|()| None);
            }
            std::thread::sleep(INTERVAL);
        }
    }
}

/// Namespaces that a signal removes.
struct Namespaces {
    names: Mutex<Vec<String>>,
    /// There are none: a signal does what it always does.
    is_empty: Arc<AtomicBool>,
}

/// One for all steps of a command, as listening to a signal has no end: what listened for the namespace of an earlier step would
/// let the signal end this command at once.
static NAMESPACES: OnceLock<Namespaces> = OnceLock::new();

/// Removes this namespace, and what runs inside, when a signal comes before [`remove`], and ends this command.
pub fn clears(namespace: &str) -> Result<()> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = lock(&STARTING);
    let namespaces = match NAMESPACES.get() {
        Some(namespaces) => namespaces,
        None => listen_for_namespaces()?,
    };
    let mut names = lock(&namespaces.names);
    names.push(namespace.to_owned());
    namespaces.is_empty.store(false, Ordering::Relaxed);
    Ok(())
}

fn listen_for_namespaces() -> Result<&'static Namespaces> {
    let (ending, is_empty) = (Ending::listen()?, Arc::new(AtomicBool::new(true)));
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_empty))
            .with_context(|| format!("cannot listen to signal {signal}"))?;
    }
    let namespaces = NAMESPACES.get_or_init(|| Namespaces { names: Mutex::default(), is_empty });
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        while !ending.has_come() {
            std::thread::sleep(INTERVAL);
        }
        // Held to the end: no step goes on meanwhile.
        let names = lock(&namespaces.names);
        names.iter().for_each(|name| clear(name));
        std::process::exit(1);
    })?;
    Ok(namespaces)
}

/// Removes a namespace in which nothing runs any more.
pub fn remove(namespace: &str) -> Result<()> {
    let delete = || shell::output(Command::new("ip").args(["netns", "del", namespace])).map(drop);
    let Some(namespaces) = NAMESPACES.get() else { return delete() };
    let mut names = lock(&namespaces.names);
    let deleted = delete();
    names.retain(|name| name != namespace);
    namespaces.is_empty.store(names.is_empty(), Ordering::Relaxed);
    deleted
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends what runs in a namespace, and removes it.
fn clear(namespace: &str) {
    let ip = |args: &[&str]| shell::output(Command::new("ip").args(args));
    if let Ok(pids) = ip(&["netns", "pids", namespace]) {
        for pid in pids.split_whitespace() {
            // It may have ended by itself.
            let _ended = Command::new("kill").args(["-KILL", pid]).status().is_ok();
        }
    }
    match ip(&["netns", "del", namespace]) {
        Ok(_) => eprintln!("ended by a signal; {namespace} is removed"),
        Err(error) => eprintln!("ended by a signal; the namespace {namespace} stays: {error:#}"),
    }
}

/// Asks a process to end, and ends it where it does not.
fn end(child: &mut Child) -> Result<()> {
    let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    let started = Instant::now();
    while asked.as_ref().is_ok_and(|status| status.success()) && started.elapsed() < PATIENCE {
        if child.try_wait().context("the emulator")?.is_some() {
            return Ok(());
        }
        std::thread::sleep(INTERVAL);
    }
    child.kill().and_then(|()| child.wait()).context("the emulator does not end")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::network::Network;
    use std::io::Read;
    use std::path::Path;
    use std::process::Stdio;

    /// Runs a line of a shell that prints, and is told to end as soon as it has; how it ended and what it printed.
    fn told_to_end(line: &str) -> (Option<ExitStatus>, String) {
        let ending = Ending(Arc::default());
        let mut child = Command::new("sh").args(["-c", line]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (status, printed) = ending
            .watch(&mut child, || {
                let mut byte = [0];
                out.read_exact(&mut byte).unwrap();
                ending.0.store(true, Ordering::Relaxed);
                let mut rest = String::new();
                out.read_to_string(&mut rest).unwrap();
                rest
            })
            .unwrap();
        assert!(child.try_wait().unwrap().is_some(), "it still runs");
        (status, printed)
    }

    #[test]
    fn the_emulator_ends_with_the_command_and_puts_things_right_before() {
        let line = "trap 'echo put right; kill $!; exit' TERM; sleep 600 >&- & printf .; wait";
        assert_eq!(told_to_end(line), (None, "put right\n".to_owned()));
        // One that does not listen.
        assert_eq!(told_to_end("trap '' TERM; printf .; exec sleep 600").0, None);
    }

    #[test]
    fn a_signal_removes_the_namespace_of_a_later_step_too() {
        const CHILD: &str = "LINERATE_TEST_NAMESPACES";
        let name = |step: &str, pid: u32| format!("/run/netns/linerate-{step}-{pid}");
        if std::env::var_os(CHILD).is_some() {
            drop(Network::in_namespace("first").unwrap());
            // Whoever looks after the first one has noticed.
            std::thread::sleep(INTERVAL * 4);
            let second = Network::in_namespace("second").unwrap();
            assert!(Path::new(&name("second", std::process::id())).exists());
            signal_hook::low_level::raise(SIGTERM).unwrap();
            std::thread::sleep(Duration::from_secs(20));
            drop(second);
            return;
        }
        if shell::output(Command::new("id").arg("-u")).unwrap().trim() != "0" {
            return;
        }
        let test = "board::ending::tests::a_signal_removes_the_namespace_of_a_later_step_too";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "it ended as one that has cleared up does");
        for step in ["first", "second"] {
            assert!(!Path::new(&name(step, child.id())).exists(), "{step} is left");
        }
    }

    #[test]
    fn an_emulator_that_ends_by_itself_tells_how() {
        let ending = Ending::listen().unwrap();
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let (status, done) = ending.watch(&mut child, || 5).unwrap();
        assert_eq!((status.and_then(|status| status.code()), done), (Some(3), 5));
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert!(ending.has_come());
    }
}
