//! The processor's side of an AXI4-Lite slave: registers read and written, one after the other.
//!
//! In each clock: [`AxiLite::drive`], [`Dut::settle`], [`AxiLite::observe`], [`Dut::edge`].

use crate::dut::{Dut, Port};

/// A master for one slave.
#[derive(Debug)]
pub struct AxiLite {
    aw: [Port; 3],
    w: [Port; 4],
    b: [Port; 3],
    ar: [Port; 3],
    r: [Port; 4],
    job: Option<Job>,
    answer: Option<Result<u32, u64>>,
}

/// An access under way, and what of it is still to be taken.
#[derive(Clone, Copy, Debug)]
enum Job {
    Write { address: u64, data: u32, address_waits: bool, data_waits: bool },
    Read { address: u64, address_waits: bool },
}

impl AxiLite {
    /// For the slave whose ports begin with `prefix` (`s_axil`).
    ///
    /// # Errors
    /// Names a port that is missing.
    pub fn new(dut: &Dut, prefix: &str) -> Result<Self, String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        Ok(AxiLite {
            aw: [port("awaddr")?, port("awvalid")?, port("awready")?],
            w: [port("wdata")?, port("wstrb")?, port("wvalid")?, port("wready")?],
            b: [port("bresp")?, port("bvalid")?, port("bready")?],
            ar: [port("araddr")?, port("arvalid")?, port("arready")?],
            r: [port("rdata")?, port("rresp")?, port("rvalid")?, port("rready")?],
            job: None,
            answer: None,
        })
    }

    /// Begins a write. Nothing else may be under way.
    pub fn write(&mut self, address: u32, data: u32) {
        debug_assert!(self.job.is_none(), "one access at a time");
        self.job =
            Some(Job::Write { address: u64::from(address), data, address_waits: true, data_waits: true });
    }

    /// Begins a read. Nothing else may be under way.
    pub fn read(&mut self, address: u32) {
        debug_assert!(self.job.is_none(), "one access at a time");
        self.job = Some(Job::Read { address: u64::from(address), address_waits: true });
    }

    /// The answer, when it has come: what was read, or 0 after a write.
    ///
    /// # Errors
    /// The slave's response, if it was an error.
    pub fn take(&mut self) -> Option<Result<u32, u64>> {
        self.answer.take()
    }

    /// Sets what the slave sees in this clock.
    pub fn drive(&mut self, dut: &mut Dut) {
        let (mut aw, mut w, mut ar, mut b, mut r) = (0, 0, 0, 0, 0);
        match self.job {
            Some(Job::Write { address, data, address_waits, data_waits }) => {
                (aw, w, b) = (u64::from(address_waits), u64::from(data_waits), 1);
                dut.set(self.aw[0], address);
                dut.set(self.w[0], u64::from(data));
                dut.set(self.w[1], 0xf);
            }
            Some(Job::Read { address, address_waits }) => {
                (ar, r) = (u64::from(address_waits), 1);
                dut.set(self.ar[0], address);
            }
            None => {}
        }
        dut.set(self.aw[1], aw);
        dut.set(self.w[2], w);
        dut.set(self.b[2], b);
        dut.set(self.ar[1], ar);
        dut.set(self.r[3], r);
    }

    /// Sees what the slave does in this clock.
    pub fn observe(&mut self, dut: &Dut) {
        let response = match &mut self.job {
            Some(Job::Write { address_waits, data_waits, .. }) => {
                *address_waits &= dut.get(self.aw[2]) == 0;
                *data_waits &= dut.get(self.w[3]) == 0;
                (dut.get(self.b[1]) != 0).then(|| (dut.get(self.b[0]), 0))
            }
            Some(Job::Read { address_waits, .. }) => {
                *address_waits &= dut.get(self.ar[2]) == 0;
                (dut.get(self.r[2]) != 0).then(|| (dut.get(self.r[1]), dut.get(self.r[0]) as u32))
            }
            None => None,
        };
        if let Some((response, data)) = response {
            self.job = None;
            self.answer = Some(if response == 0 { Ok(data) } else { Err(response) });
        }
    }
}
