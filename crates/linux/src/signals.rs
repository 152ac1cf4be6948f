//! Signals as something to poll.

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
}

impl Signal {
    const ALL: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];

    fn number(self) -> i32 {
        match self {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
            Signal::Hangup => SIGHUP,
        }
    }
}

/// Catches SIGINT, SIGTERM and SIGHUP. Readable ([`AsFd`]) when one has come. Several of a kind before
/// [`Signals::take`] are one.
pub struct Signals {
    wakeup: UnixStream,
    pending: [(Signal, Arc<AtomicBool>); 3],
    registered: Vec<SigId>,
}

impl Signals {
    /// Begins to catch them, for the whole process.
    pub fn catch() -> io::Result<Self> {
        let (wakeup, writer) = UnixStream::pair()?;
        wakeup.set_nonblocking(true)?;
        let pending = Signal::ALL.map(|signal| (signal, Arc::new(AtomicBool::new(false))));
        let mut signals = Signals { wakeup, pending, registered: Vec::with_capacity(6) };
        for (signal, flag) in &signals.pending {
            // Actions run in the order of registration: when the wake-up can be read, the flag is set.
            let number = signal.number();
            signals.registered.push(signal_hook::flag::register(number, Arc::clone(flag))?);
            signals.registered.push(pipe::register(number, writer.try_clone()?)?);
        }
        Ok(signals)
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
        let mut signals = Signals::catch().unwrap();
        assert_eq!(signals.take(), None);
        assert!(!ready(&signals));
        for (number, wanted) in
            [(SIGINT, Signal::Interrupt), (SIGTERM, Signal::Terminate), (SIGHUP, Signal::Hangup)]
        {
            raise(number).unwrap();
            raise(number).unwrap();
            assert!(ready(&signals), "{wanted:?}");
            assert_eq!(signals.take(), Some(wanted));
            assert_eq!(signals.take(), None);
            assert!(!ready(&signals), "{wanted:?}");
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
