//! Offloads switched one by one while data flows, every byte checked: the source document's driver cannot do that.

use super::plan::{Device, Direction, Plan, Setting};
use crate::measure::place::{Place, SERVER, run};
use crate::measure::running::Running;
use crate::schema::{Origin, Record};
use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is switched, in the words of `--offload`.
pub const OFFLOADS: [&str; 5] = ["tx-checksum", "rx-checksum", "tso", "gro", "gather"];
/// Length of the file that goes there and back, in bytes.
const FILE_LEN: usize = 32 << 20;
/// The pace of every second transfer: slow enough that several switches fall into it.
const SLOW: &str = "48M";
/// Time between two switches.
const DWELL: Duration = Duration::from_millis(60);
/// Longest that the server may take to switch.
const PATIENCE: Duration = Duration::from_secs(5);
/// What it logs when it has.
const SIGN: &str = "configuration reloaded";

/// What became of the data.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Switched {
    /// What it ran on.
    pub device: Device,
    /// Offloads switched, each once in a switch.
    pub switches: usize,
    /// Files that came whole from the server.
    pub downloads: usize,
    /// Files that arrived whole at the server.
    pub uploads: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Files that differ from what was sent.
    pub differing: usize,
    /// Most switches while one file was on its way.
    pub most_within: usize,
}

impl Switched {
    /// Its figures in the common form.
    pub fn records(&self) -> Vec<Record> {
        let record = |figure: &str, unit: &str, value: f64| Record {
            board: self.device.name().to_owned(),
            workload: "transfers".to_owned(),
            tuning: "offloads switched under load".to_owned(),
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            value,
            origin: Origin::Measured,
            source: "files compared by SHA-256".to_owned(),
        };
        vec![
            record("switches", "switches", self.switches as f64),
            record("files", "files", (self.downloads + self.uploads) as f64),
            record("bytes", "bytes", self.bytes as f64),
            record("differing files", "files", self.differing as f64),
        ]
    }
}

/// The steps: from all to none, one by one, and back. Each is a value of `--offload`.
pub fn steps() -> Vec<String> {
    let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(",") };
    let off = (1..=OFFLOADS.len()).map(|from| list(&OFFLOADS[from..]));
    let on = (1..=OFFLOADS.len()).map(|to| list(&OFFLOADS[..to]));
    off.chain(on).collect()
}

/// What the workers share.
struct Work<'a> {
    place: &'a Place,
    folder: &'a Path,
    sum: [u8; 32],
    is_over: AtomicBool,
    switches: AtomicUsize,
    uploads: AtomicUsize,
    downloads: AtomicUsize,
    differing: AtomicUsize,
    most_within: AtomicUsize,
}

/// Switches while files go both ways, as long as the plan says.
pub fn under_load(plan: &Plan, device: Device, scratch: &Path) -> Result<Switched> {
    let place = super::ends::place(device, Direction::Rx, Setting::Coalescing)?;
    let folder = scratch.join(format!("served-{}", device.name()));
    std::fs::create_dir(&folder)?;
    let config = scratch.join("switching.toml");
    write_config(&config, "all")?;
    let bytes = bytes(FILE_LEN);
    std::fs::write(folder.join("data"), &bytes)?;
    let mut command = place.server(None, &plan.program.to_string_lossy());
    command.arg("serve").arg(&folder).args(["--device", &device.words(), "--queues", "1"]);
    command.args(["--iperf3-port", "0", "--user", "root", "--writable", "--ftp-user", "lab:lab", "--config"]);
    let server = Running::start_ready(command.arg(&config), "Ready")?;
    let work = Work {
        place: &place,
        folder: &folder,
        sum: Sha256::digest(&bytes).into(),
        is_over: AtomicBool::new(false),
        switches: AtomicUsize::new(0),
        uploads: AtomicUsize::new(0),
        downloads: AtomicUsize::new(0),
        differing: AtomicUsize::new(0),
        most_within: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|number| {
                let work = &work;
                scope.spawn(move || work.transfer_until_over(number))
            })
            .collect();
        let switched = switch(plan.switching, &server, &config, &work.switches);
        work.is_over.store(true, Ordering::SeqCst);
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a transfer ended in a panic"),
            }
        }
        switched
    })?;
    let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
    let (uploads, downloads) = (count(&work.uploads), count(&work.downloads));
    Ok(Switched {
        device,
        switches: count(&work.switches),
        downloads,
        uploads,
        bytes: ((uploads + downloads) * FILE_LEN) as u64,
        differing: count(&work.differing),
        most_within: count(&work.most_within),
    })
}

fn write_config(config: &Path, offload: &str) -> Result<()> {
    std::fs::write(config, format!("offload = \"{offload}\"\n"))
        .with_context(|| format!("cannot write {}", config.display()))
}

/// Switches, each time waiting until the server has done so.
fn switch(time: Duration, server: &Running, config: &Path, switches: &AtomicUsize) -> Result<()> {
    let until = Instant::now() + time;
    let pid = server.pid().to_string();
    let done = || server.log().matches(SIGN).count();
    for offload in steps().iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        write_config(config, offload)?;
        let before = done();
        run(Command::new("kill").args(["-HUP", &pid]))?;
        let patience = Instant::now() + PATIENCE;
        while done() == before {
            ensure!(Instant::now() < patience, "the server does not switch: {}", server.log());
            std::thread::sleep(Duration::from_millis(2));
        }
        switches.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(DWELL);
    }
    Ok(())
}

impl Work<'_> {
    /// Files one after the other: even workers fetch, odd ones store; the first two at full speed.
    fn transfer_until_over(&self, number: usize) -> Result<()> {
        let is_upload = number % 2 == 1;
        let local = self.folder.join(format!("local-{number}"));
        let name = format!("up-{number}");
        while !self.is_over.load(Ordering::SeqCst) {
            let before = self.switches.load(Ordering::SeqCst);
            let mut curl = self.place.client(None, "curl");
            curl.args(["-sS", "--max-time", "60"]);
            if number >= 2 {
                curl.args(["--limit-rate", SLOW]);
            }
            if is_upload {
                curl.arg("-T").arg(self.folder.join("data"));
                curl.arg(format!("ftp://lab:lab@{SERVER}/{name}"));
            } else {
                curl.arg("-o").arg(&local).arg(format!("http://{SERVER}/data"));
            }
            run(&mut curl)?;
            let arrived = if is_upload { self.folder.join(&name) } else { local.clone() };
            let arrived =
                std::fs::read(&arrived).with_context(|| format!("cannot read {}", arrived.display()))?;
            let sum: [u8; 32] = Sha256::digest(&arrived).into();
            self.differing.fetch_add(usize::from(sum != self.sum), Ordering::SeqCst);
            let within = self.switches.load(Ordering::SeqCst) - before;
            self.most_within.fetch_max(within, Ordering::SeqCst);
            let count = if is_upload { &self.uploads } else { &self.downloads };
            count.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Bytes without a period that a lost segment could hide in (xorshift64*).
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    });
    words.take(len.div_ceil(8)).flatten().take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_switch_one_at_a_time_and_come_back() {
        let steps = steps();
        let set =
            |text: &str| OFFLOADS.iter().filter(|name| text.split(',').any(|part| part == **name)).count();
        assert_eq!(steps.len(), 2 * OFFLOADS.len());
        assert_eq!(steps[OFFLOADS.len() - 1], "none");
        let mut before = OFFLOADS.len();
        for step in &steps {
            assert_eq!(set(step).abs_diff(before), 1, "{step}");
            before = set(step);
        }
        assert_eq!(before, OFFLOADS.len());
    }

    #[test]
    fn bytes_have_no_short_period() {
        let bytes = bytes(1 << 16);
        assert_eq!(bytes.len(), 1 << 16);
        for period in [1, 64, 1_448, 4_096] {
            assert_ne!(bytes[..1_024], bytes[period..period + 1_024], "{period}");
        }
    }
}
