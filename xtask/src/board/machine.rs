//! A board that runs in the emulator.

use super::console::Console;
use super::{Board, Network};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The board, its console, and the client's end of its cable.
pub struct Machine<'a> {
    pub board: &'a Board,
    pub network: &'a Network,
    pub console: Console,
    emulator: Child,
    socket: PathBuf,
}

/// The emulator with board, image and network, without a console.
pub fn command(board: &Board, image: &Path, network: &Network) -> Command {
    let mut command = network.command(board.emulator[0]);
    command.args(&board.emulator[1..]).arg("-kernel").arg(image).args(network.options(board));
    command
}

impl<'a> Machine<'a> {
    /// Starts the board, with `more` options of the emulator, and waits until it greets.
    pub fn start(
        board: &'a Board,
        image: &Path,
        network: &'a Network,
        more: &[String],
    ) -> Result<Machine<'a>> {
        let socket = std::env::temp_dir().join(format!("linerate-board-{}", std::process::id()));
        let mut command = command(board, image, network);
        let serial = format!("unix:{},server=on,wait=on", socket.display());
        command
            .args(["-display", "none", "-monitor", "none", "-serial", &serial])
            .args(more)
            .stdin(Stdio::null());
        let mut emulator = command.spawn().context("cannot start the emulator")?;
        let started = Instant::now();
        let console = loop {
            if let Ok(console) = Console::open(&socket) {
                break console;
            }
            if let Some(status) = emulator.try_wait()? {
                bail!("the emulator ended with {status}");
            }
            if started.elapsed() > Duration::from_secs(20) {
                emulator.kill()?;
                bail!("the emulator opened no console within 20 s");
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let mut machine = Machine { board, network, console, emulator, socket };
        machine.console.wait_for("help tells the commands", Duration::from_secs(20))?;
        Ok(machine)
    }

    /// The Ethernet address of its interface.
    pub fn mac(&mut self) -> Result<String> {
        let ifconfig = self.console.ask("ifconfig")?;
        let is_mac = |word: &&str| word.len() == 17 && word.matches(':').count() == 5;
        let mac = ifconfig.split_whitespace().find(is_mac).context("no Ethernet address in ifconfig")?;
        Ok(mac.to_owned())
    }

    /// Runs a client to its end, and returns what it printed.
    pub fn client(&self, program: &str, args: &[&str]) -> Result<Vec<u8>> {
        let mut command = self.network.command(program);
        let output = command.args(args).output().with_context(|| format!("cannot start {program}"))?;
        if !output.status.success() {
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            bail!("{program} {} ended with {}: {out}{err}", args.join(" "), output.status);
        }
        Ok(output.stdout)
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        // `ip netns exec` becomes the emulator: this is its own process.
        let ended = self.emulator.kill().and_then(|()| self.emulator.wait());
        if let Err(error) = ended {
            eprintln!("the emulator did not end: {error}");
        }
        // It may be gone with the emulator.
        let _gone = std::fs::remove_file(&self.socket).is_ok();
    }
}
