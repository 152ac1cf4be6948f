//! A board's serial console, at the other end.

use anyhow::{Context, Result, bail};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The console, and everything that it has said.
pub struct Console {
    line: UnixStream,
    said: String,
    /// How much of it was looked at.
    seen: usize,
}

impl Console {
    /// Takes the emulator's end of the line.
    pub fn open(socket: &Path) -> Result<Console> {
        let line = UnixStream::connect(socket)?;
        line.set_read_timeout(Some(Duration::from_millis(50)))?;
        Ok(Console { line, said: String::new(), seen: 0 })
    }

    /// Waits until it says this, and returns all that came before.
    pub fn wait_for(&mut self, text: &str, limit: Duration) -> Result<String> {
        let started = Instant::now();
        loop {
            let new = self.said.get(self.seen..).unwrap_or_default();
            if let Some(at) = new.find(text) {
                let before = new[..at].to_owned();
                self.seen += at + text.len();
                return Ok(before);
            }
            if started.elapsed() > limit {
                bail!("the console did not say {text:?} within {limit:?}, but {new:?}");
            }
            let mut bytes = [0; 4_096];
            match self.line.read(&mut bytes) {
                Ok(0) => bail!("the console ended with {new:?}"),
                // All of it is ASCII; a return before each new line is left out.
                Ok(len) => {
                    self.said.extend(bytes[..len].iter().map(|byte| char::from(*byte)).filter(|c| *c != '\r'))
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error).context("the console"),
            }
        }
    }

    /// Types a command and returns the answer.
    pub fn ask(&mut self, command: &str) -> Result<String> {
        self.type_line(command)?;
        self.wait_for(&format!("{command}\n"), Duration::from_secs(5))?;
        self.wait_for("> ", Duration::from_secs(5))
    }

    /// The same for a command with editing keys in it, whose echo is not what was typed.
    pub fn ask_edited(&mut self, keys: &str) -> Result<String> {
        self.type_line(keys)?;
        self.wait_for("\n", Duration::from_secs(5))?;
        self.wait_for("> ", Duration::from_secs(5))
    }

    /// Whether a panic or a fault was printed, or the network task ended.
    pub fn has_ended(&mut self) -> bool {
        // What was printed meanwhile is read on the way to something that is never said.
        let _not_said = self.wait_for("\0", Duration::from_millis(1)).is_err();
        ["\n*** ", "\nthe network ended"].iter().any(|end| self.said.contains(end))
    }

    /// Sends lines all at once, as a terminal does that somebody pastes into, and returns what comes until so many were answered.
    pub fn paste(&mut self, lines: &str, answers: usize) -> Result<String> {
        self.line.write_all(lines.as_bytes())?;
        let mut said = String::new();
        for _ in 0..answers {
            said.push_str(&self.wait_for("> ", Duration::from_secs(5))?);
        }
        Ok(said)
    }

    /// Types a command that nothing answers.
    pub fn say(&mut self, command: &str) -> Result<()> {
        self.type_line(command)
    }

    fn type_line(&mut self, command: &str) -> Result<()> {
        // A person does not type faster than the UART takes it: it holds one byte.
        for byte in command.bytes().chain(*b"\r") {
            self.line.write_all(&[byte])?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// All that it said.
    pub fn transcript(&self) -> &str {
        &self.said
    }
}
