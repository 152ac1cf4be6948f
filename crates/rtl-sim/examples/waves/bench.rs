//! A block with a stream on either side, and the scope on its ports.

use crate::record::{Picture, Scope};
use linerate_rtl_sim::{Dut, Pause, Received, Sink, Source, UserAt};

/// The block and what is around it.
pub struct Bench {
    pub dut: Dut,
    pub source: Source,
    pub sink: Sink,
    pub scope: Scope,
    /// What has come out.
    pub received: Vec<Received>,
}

impl Bench {
    /// The block `name`, ready after its reset, without pauses on either side.
    pub fn open(name: &str, user_at: UserAt) -> Result<Bench, String> {
        let mut dut = Dut::open(name).map_err(|error| error.to_string())?;
        dut.reset()?;
        let source = Source::new(&dut, "s_axis", Pause::Never, user_at, 1)?;
        let sink = Sink::new(&dut, "m_axis", Pause::Never, 2)?;
        let mut bench = Bench { dut, source, sink, scope: Scope::default(), received: Vec::new() };
        // After its reset a block takes nothing for some clocks.
        bench.unseen(4)?;
        Ok(bench)
    }

    /// Sets an input.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
        let port = self.dut.port(name)?;
        self.dut.set(port, value);
        Ok(())
    }

    /// One clock; `record` tells whether it is seen.
    fn clock(&mut self, record: bool) -> Result<(), String> {
        self.source.drive(&mut self.dut);
        self.sink.drive(&mut self.dut);
        self.dut.settle();
        self.source.observe(&self.dut);
        self.sink.observe(&self.dut);
        if record {
            self.scope.sample(&self.dut);
        }
        self.dut.edge();
        self.received.extend(self.sink.pop()?);
        Ok(())
    }

    /// Clocks that nobody sees.
    pub fn unseen(&mut self, clocks: usize) -> Result<(), String> {
        (0..clocks).try_for_each(|_| self.clock(false))
    }

    /// Clocks that are recorded.
    pub fn record(&mut self, clocks: usize) -> Result<(), String> {
        (0..clocks).try_for_each(|_| self.clock(true))
    }

    /// Records until so many frames have come out, and two clocks more.
    pub fn record_frames(&mut self, frames: usize) -> Result<(), String> {
        let limit = self.scope.clocks() + 20_000;
        while self.received.len() < frames {
            self.clock(true)?;
            if self.scope.clocks() > limit {
                return Err(format!("{} of {frames} frames came out", self.received.len()));
            }
        }
        self.record(2)
    }

    /// Ends the recording.
    pub fn picture(self, title: &str, caption: &[&str]) -> Picture {
        self.scope.picture(title, caption)
    }
}
