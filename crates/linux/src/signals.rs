//! Signals as something to poll.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::{pipe, unregister};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal that the servers listen to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// SIGINT: somebody pressed Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager wants the process to end.
    Terminate,
    /// SIGHUP: read the configuration again.
    Hangup,
    /// SIGUSR1 or SIGUSR2: what other servers open their logs again at, or are asked for something else by. Only
    /// [`Signals::catch_all`] gives it.
    User,
}

impl Signal {
    fn numbers(self) -> &'static [i32] {
        match self {
            Signal::Interrupt => &[SIGINT],
            Signal::Terminate => &[SIGTERM],
            Signal::Hangup => &[SIGHUP],
            Signal::User => &[SIGUSR1, SIGUSR2],
        }
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP. Readable ([`AsFd`]) when one has come. Several of a kind before
/// [`Signals::take`] are one.
pub struct Signals {
    wakeup: UnixStream,
    pending: Vec<(Signal, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
}

impl Signals {
    /// Begins to catch them, for the whole process.
    pub fn catch() -> io::Result<Self> {
        Signals::register(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
    }

    /// The same with SIGUSR1 and SIGUSR2, which would end the process: a server outlives what a script for other servers sends.
    pub fn catch_all() -> io::Result<Self> {
        Signals::register(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup, Signal::User])
    }

    fn register(wanted: &[Signal]) -> io::Result<Self> {
        let (wakeup, writer) = UnixStream::pair()?;
        wakeup.set_nonblocking(true)?;
        let pending = wanted.iter().map(|signal| (*signal, Arc::new(AtomicBool::new(false)))).collect();
        let mut signals = Signals { wakeup, pending, registered: Vec::new() };
        for (signal, flag) in &signals.pending {
            for number in signal.numbers() {
                // Actions run in the order of registration: when the wake-up can be read, the flag is set.
                signals.registered.push(signal_hook::flag::register(*number, Arc::clone(flag))?);
                signals.registered.push(pipe::register(*number, writer.try_clone()?)?);
            }
        }
        Ok(signals)
    }

    /// Whether [`Signals::take`] has one to give. Costs no system call.
    pub fn has_any(&self) -> bool {
        self.pending.iter().any(|(_, flag)| flag.load(Ordering::SeqCst))
    }

    /// A signal that has come since, each once; `None` when there is no more.
    pub fn take(&mut self) -> Option<Signal> {
        // The wake-ups go first: a signal that comes between shows in its flag now, or wakes again.
        let mut bytes = [0; 64];
        while let Ok(1..) | Err(Errno::INTR) = rustix::io::read(&self.wakeup, &mut bytes) {}
        let (signal, _) = self.pending.iter().find(|(_, flag)| flag.swap(false, Ordering::SeqCst))?;
        Some(*signal)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

impl Drop for Signals {
    /// Stops catching. The signals are ignored from then on: their first meaning does not come back.
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poller::{PollFd, PollFlags, wait};
    use signal_hook::low_level::raise;
    use std::time::Duration;

    fn ready(signals: &Signals) -> bool {
        wait(&mut [PollFd::new(signals, PollFlags::IN)], Some(Duration::ZERO)).unwrap() == 1
    }

    // One test: signals belong to the whole process.
    #[test]
    fn signals_come_once_and_wake() {
        let mut signals = Signals::catch_all().unwrap();
        assert_eq!(signals.take(), None);
        assert!(!ready(&signals));
        for (number, wanted) in [
            (SIGINT, Signal::Interrupt),
            (SIGTERM, Signal::Terminate),
            (SIGHUP, Signal::Hangup),
            (SIGUSR1, Signal::User),
            (SIGUSR2, Signal::User),
        ] {
            raise(number).unwrap();
            raise(number).unwrap();
            assert!(ready(&signals) && signals.has_any(), "{wanted:?}");
            assert_eq!(signals.take(), Some(wanted));
            assert_eq!(signals.take(), None);
            assert!(!signals.has_any() && !ready(&signals), "{wanted:?}");
        }
        // More than the socket buffers: none is lost and none blocks.
        for _ in 0..10_000 {
            raise(SIGHUP).unwrap();
        }
        raise(SIGTERM).unwrap();
        let both = [signals.take(), signals.take()];
        assert!(both.contains(&Some(Signal::Hangup)) && both.contains(&Some(Signal::Terminate)));
        assert_eq!(signals.take(), None);
        assert!(!ready(&signals));
        drop(signals);
        raise(SIGHUP).unwrap();
        assert_eq!(Signals::catch().unwrap().take(), None);
    }
}
