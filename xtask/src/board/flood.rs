//! A flood of forged SYNs and hostile frames, as long as it is wanted.

use super::machine::Machine;
use super::network::TAP;
use anyhow::{Context, Result, ensure};
use std::process::{Child, Stdio};

/// It goes on until it is told to end, so that what is done meanwhile may take as long as it likes.
pub struct Flood(Child);

impl Flood {
    pub fn start(machine: &mut Machine<'_>) -> Result<Flood> {
        let mac = machine.mac()?;
        let mut flood = machine.network.command("python3");
        flood.args(["-c", include_str!("flood.py"), TAP, machine.board.address, &mac]);
        Ok(Flood(flood.stdin(Stdio::piped()).spawn().context("cannot start python3")?))
    }

    /// Ends it, and says if it had ended before.
    pub fn end(mut self) -> Result<()> {
        ensure!(self.0.try_wait()?.is_none(), "the flood ended by itself");
        // The end of its input ends it.
        let status = self.0.wait()?;
        ensure!(status.success(), "the flood: {status}");
        Ok(())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // An error on the way leaves it running; `wait` closes its input first.
        let _ended = self.0.wait().is_ok();
    }
}
