//! Passwords from a terminal, which does not show them.

use crate::poller::{self, PollFd, PollFlags};
use crate::signals::Signals;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write};

/// Longest line in bytes.
const LINE_MAX: usize = 4096;

/// Reads a line from the terminal `tty` after writing `prompt`; what is typed does not show. The line's end is not part of
/// it.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when SIGINT, SIGTERM or SIGHUP came instead: the terminal is then as it was before.
/// [`io::ErrorKind::UnexpectedEof`] when the terminal was closed.
pub fn read_hidden(tty: impl AsFd, prompt: &str, mut to: impl Write) -> io::Result<Vec<u8>> {
    let tty = tty.as_fd();
    let mut signals = Signals::catch()?;
    let _hidden = Hidden::new(tty)?;
    to.write_all(prompt.as_bytes())?;
    to.flush()?;
    let mut line = Vec::new();
    loop {
        let mut fds = [PollFd::from_borrowed_fd(tty, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        poller::wait(&mut fds, None)?;
        let has_input = !fds[0].revents().is_empty();
        if signals.take().is_some() {
            // What follows is not to stand behind the prompt.
            to.write_all(b"\n")?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        if !has_input {
            continue;
        }
        let mut bytes = [0; 256];
        let len = match rustix::io::read(tty, &mut bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        line.extend_from_slice(&bytes[..len]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
        if line.len() > LINE_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// How many columns a terminal has; nothing where it does not tell, or is none.
pub fn width(tty: impl AsFd) -> Option<u16> {
    tcgetwinsize(tty).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
}

/// A terminal that shows nothing but the end of a line, until it is dropped.
struct Hidden<'a> {
    tty: BorrowedFd<'a>,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(tty: BorrowedFd<'a>) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(tty, OptionalActions::Flush, &hidden)?;
        Ok(Hidden { tty, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no repair.
        let _ = tcsetattr(self.tty, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::time::Duration;

    #[test]
    fn what_is_typed_does_not_show() {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let tty = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let echoes = || tcgetattr(&tty).unwrap().local_modes.contains(LocalModes::ECHO);
        assert!(echoes());
        let line = std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_hidden(&tty, "Password: ", io::sink()).unwrap());
            for _ in 0..2000 {
                if !echoes() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(!echoes(), "the terminal still shows what is typed");
            rustix::io::write(&ours, b"dingx\x7f dong\n").unwrap();
            reader.join().unwrap()
        });
        assert_eq!(line, b"ding dong");
        assert!(echoes());
        let mut shown = [0; 64];
        let len = rustix::io::read(&ours, &mut shown).unwrap();
        assert!(!String::from_utf8_lossy(&shown[..len]).contains("ding"));
    }
}
