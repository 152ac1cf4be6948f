//! A program that runs beside the measurement: started, waited for until it is ready, its processor time counted, and ended
//! with the value.

use super::group::Group;
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest that a server may take until it is ready.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// Most that is kept of what a program logs, in bytes.
const LOG_MAX: usize = 1 << 20;

/// A program that runs until it is told to stop, with its processor time counted.
pub struct Running {
    child: Child,
    group: Option<Group>,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts it, in a group of its own where the system has such.
    pub fn start(command: &Command) -> Result<Running> {
        let group = Group::new();
        let mut command = match &group {
            Some(group) => group.around(command),
            None => copy(command),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, keep) = (child.stderr.take(), Arc::clone(&log));
        // Read to the end, so that the program never waits for a reader.
        let reader = stderr.map(|pipe| {
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let mut log = keep.lock().unwrap_or_else(PoisonError::into_inner);
                    if log.len() < LOG_MAX {
                        log.push_str(&line);
                        log.push('\n');
                    }
                }
            })
        });
        Ok(Running { child, group, log, reader })
    }

    /// What it wrote on standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts it and waits for a line that begins like this.
    pub fn start_ready(command: &Command, sign: &str) -> Result<Running> {
        let mut running = Running::start(command)?;
        let Some(stdout) = running.child.stdout.take() else { bail!("no standard output of {command:?}") };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Read to the end, so that the program never waits for a reader.
                let _ = tell.send(line);
            }
        });
        let until = Instant::now() + START_PATIENCE;
        loop {
            match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(sign) => return Ok(running),
                Ok(_) => {}
                Err(_) => {
                    let said = running.stop();
                    bail!("{command:?} did not become ready: {said}");
                }
            }
        }
    }

    /// Processor seconds that it has used; `None` where nobody counts.
    pub fn seconds(&self) -> Option<f64> {
        self.group.as_ref().and_then(Group::seconds)
    }

    /// Waits for its end; what it printed.
    pub fn output(mut self) -> Result<(bool, String, String)> {
        let mut out = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut out)?;
        }
        let status = self.child.wait()?;
        if let Some(reader) = self.reader.take() {
            // It ends with the pipe.
            let _ = reader.join();
        }
        let err = self.log();
        Ok((status.success(), out, err))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and waits a little; what it wrote on standard error.
    pub fn stop(&mut self) -> String {
        let pid = self.child.id().to_string();
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-TERM", &pid]).output();
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.log()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args());
    copy
}
