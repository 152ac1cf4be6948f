//! Tables 1 to 15 of the guide as questions to the chip.

use crate::edma::{self, Transfer};
use crate::memory::{self, Pattern};
use crate::predict::{Prediction, TableModel, Unit};
use crate::soc::{At, Soc};
use crate::units::{Bytes, BytesPerSecond};

/// What each controller moves in each direction (section 5.2).
const CHANNEL: Bytes = Bytes::new(32_768.0);

/// The transfer controllers of the columns of tables 9 and 10.
const TO_DDR: [&[&str]; 3] = [&["TC0", "TC1"], &["TC2", "TC6"], &["TC7", "TC8", "TC9"]];
/// Those of tables 11 to 15.
const AT_DDR: [&[&str]; 3] = [&["TC0", "TC1"], &["TC2", "TC6"], &["TC10", "TC11"]];

impl TableModel for Soc {
    fn cell(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        match table {
            "1" => (column == 1).then(|| self.master(row)).flatten(),
            "2" => (column == 1).then(|| self.memory_rate(row)).flatten(),
            "3" => self.core_read("c66x", DSP_SOURCES, row, column.checked_sub(2)?),
            "4" => self.core_read("a15", ARM_SOURCES, row, column),
            "6" | "7" | "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15" => {
                self.complex(table, row, column.checked_sub(1)?)
            }
            _ => self.links.cell(table, row, column),
        }
    }
}

/// Rows of table 3 and the sources that they mean.
const DSP_SOURCES: &[(&str, &str)] = &[
    ("L1D Hit", "l1d"),
    ("L2 SRAM", "l2"),
    ("L2 Cache Hit", "l2_cache"),
    ("MSMC RAM (SL2)", "msmc_sl2"),
    ("MSMC RAM (SL3)", "msmc_sl3"),
    ("DDR 3A RAM (SL3)", "ddr3a"),
    ("DDR 3B RAM (SL3)", "ddr3b"),
];
/// Rows of table 4.
const ARM_SOURCES: &[(&str, &str)] = &[
    ("L1 Cache Hit", "l1"),
    ("L2 Cache Hit", "l2_cache"),
    ("MSMC RAM (SL3)", "msmc_sl3"),
    ("DDR 3A RAM (SL3)", "ddr3a"),
    ("DDR 3B RAM (SL3)", "ddr3b"),
];

impl Soc {
    fn master(&self, row: &str) -> Option<Prediction> {
        let rate = match row {
            "C66x Core" => self.core_rate("c66x")?,
            "ARM A15 Core" => self.core_rate("a15")?,
            _ => {
                let number = row.strip_prefix("EDMA")?.strip_suffix("(Single TC)")?;
                let controller = self.edma.get(&format!("edma{number}"))?;
                self.bus_rate(controller.width, &controller.clock)?
            }
        };
        Some(exact(rate))
    }

    fn core_rate(&self, core: &str) -> Option<BytesPerSecond> {
        let core = self.cores.get(core)?;
        self.bus_rate(core.width, core.bus_clock.as_ref().unwrap_or(&core.clock))
    }

    fn memory_rate(&self, row: &str) -> Option<Prediction> {
        let name = match row {
            "DSP L1D" => "l1d",
            "DSP L1P" => "l1p",
            "DSP L2" => "l2",
            "MSMC RAM" => "msmc",
            "DDR3A RAM" => "ddr3a",
            "DDR3B RAM" => "ddr3b",
            _ => return None,
        };
        let memory = self.endpoints.get(name)?;
        Some(exact(self.bus_rate(memory.width, &memory.clock)? * f64::from(memory.transfers_per_cycle)))
    }

    fn core_read(
        &self,
        core: &str,
        sources: &[(&str, &str)],
        row: &str,
        column: usize,
    ) -> Option<Prediction> {
        let (_, source) = sources.iter().find(|(name, _)| *name == row)?;
        let pattern = match column {
            1 => Pattern::Single,
            2 => Pattern::Burst,
            _ => return None,
        };
        memory::read(self, core, source, pattern).ok()
    }

    /// A column of the tables of section 5.2; columns from 0.
    fn complex(&self, table: &str, row: &str, column: usize) -> Option<Prediction> {
        let setup = complex(table, column)?;
        let mut prediction = edma::predict(self, &setup, false).ok()?;
        if setup.iter().any(|transfer| transfer.source == "ddr3b")
            && let Some(others) = self.queue_clocks_of("ddr3b")
        {
            prediction = widened(prediction, &others, |soc| edma::predict(soc, &setup, false).ok());
        }
        if row.starts_with("Theoretical") {
            Some(Prediction::exact(prediction.theoretical, Unit::MegabytesPerSecond))
        } else if row.starts_with("Aggregate") {
            Some(prediction)
        } else if row.to_ascii_lowercase().starts_with("total transfer efficiency") {
            let percent = 100.0 / prediction.theoretical;
            Some(Prediction {
                theoretical: 100.0,
                predicted: prediction.predicted * percent,
                low: prediction.low * percent,
                high: prediction.high * percent,
                unit: Unit::Percent,
                bottlenecks: prediction.bottlenecks,
            })
        } else {
            None
        }
    }

    /// The other structures that explain the same core reads of a DRAM whose queues run slower than another's.
    ///
    /// The guide gives one pair of latencies for two differences between DDR3A and DDR3B: the clock of the queues and the
    /// way there. Either may be the whole of it, so both extremes are asked and the interval holds both.
    fn queue_clocks_of(&self, name: &str) -> Option<Vec<Soc>> {
        let dram = self.endpoints.get(name)?.dram.as_ref()?;
        let fast = self.endpoints.values().filter_map(|memory| memory.dram.as_ref()).max_by(|a, b| {
            let rate = |clock: &str| self.frequency(clock).map_or(0.0, crate::units::Hertz::value);
            rate(&a.queues.clock.0).total_cmp(&rate(&b.queues.clock.0))
        })?;
        if fast.queues.clock == dram.queues.clock {
            return None;
        }
        let detour = self.cores.values().find_map(|core| core.reads.get(name)).map_or(0.0, |read| {
            let crossings = read.bridges.iter().filter_map(|bridge| self.bridges.get(bridge.as_str()));
            crossings.filter_map(|bridge| self.time(&bridge.crossing)).map(|time| time.value()).sum()
        });
        let period = self.frequency(&dram.queues.clock.0)?.period().value();
        let saved = self.time(&dram.queues)?.value() - self.time(&fast.queues)?.value();
        let with = |more: f64| {
            let mut soc = self.clone();
            let dram = soc.endpoints.get_mut(name)?.value_mut().dram.as_mut()?;
            let mut queues = dram.queues.clone();
            queues.value_mut().count = (queues.count + more / period).max(0.0);
            dram.value_mut().queues = queues;
            Some(soc)
        };
        // All of the difference is the way, which a DMA master does not take; or all of it is the queues; or the queues
        // also pace the change of direction.
        let (way, queues) = (with(-saved)?, with(detour)?);
        let mut turning = queues.clone();
        let slower =
            self.frequency(&fast.queues.clock.0)?.over(self.frequency(&dram.queues.clock.0)?).value();
        let memory = turning.endpoints.get_mut(name)?.value_mut().dram.as_mut()?.value_mut();
        let turnaround = memory.turnaround.count * slower;
        set_count(&mut memory.turnaround, turnaround);
        Some(vec![way, queues, turning])
    }
}

/// The transfers of a column (from 0) of the tables 6 to 15 of section 5.2; `None` for any other.
pub fn complex(table: &str, column: usize) -> Option<Vec<Transfer>> {
    let (controllers, a, b): (&[&str], &str, &str) = match table {
        "6" => (*[&["TC0", "TC1"], &["TC2", "TC6"]].get(column)?, "l2.0", "l2.1"),
        "7" => {
            let columns: [&[&str]; 3] = [&["TC0", "TC1"], &["TC2", "TC6"], &["TC2", "TC6", "TC10", "TC12"]];
            (*columns.get(column)?, "l2.*", "msmc")
        }
        "8" => {
            let columns: [&[&str]; 4] =
                [&["TC0", "TC1"], &["TC2", "TC6"], &["TC2", "TC4", "TC6"], &["TC2", "TC6", "TC10"]];
            (*columns.get(column)?, "msmc", "msmc")
        }
        "9" => (*TO_DDR.get(column)?, "msmc", "ddr3a"),
        "10" => (*TO_DDR.get(column)?, "msmc", "ddr3b"),
        "11" => (*AT_DDR.get(column)?, "ddr3a", "ddr3a"),
        "12" => (*AT_DDR.get(column)?, "ddr3b", "ddr3b"),
        "13" => (*AT_DDR.get(column)?, "ddr3a", "ddr3b"),
        "14" => (*AT_DDR.get(column)?, "l2.*", "ddr3a"),
        "15" => (*AT_DDR.get(column)?, "l2.*", "ddr3b"),
        _ => return None,
    };
    let mut transfers = Vec::new();
    for (core, controller) in controllers.iter().enumerate() {
        // Where the guide says "different CorePac L2", each controller has a CorePac of its own.
        let a = a.replace('*', &core.to_string());
        transfers.push(Transfer::linear(controller, &a, b, CHANNEL));
        transfers.push(Transfer::linear(controller, b, &a, CHANNEL));
    }
    Some(transfers)
}

fn exact(rate: BytesPerSecond) -> Prediction {
    Prediction::exact(rate.megabytes(), Unit::MegabytesPerSecond)
}

/// The prediction with an interval that holds those of other structures too.
fn widened(
    mut prediction: Prediction,
    others: &[Soc],
    ask: impl Fn(&Soc) -> Option<Prediction>,
) -> Prediction {
    for other in others.iter().filter_map(ask) {
        prediction.low = prediction.low.min(other.low);
        prediction.high = prediction.high.max(other.high);
    }
    prediction
}

/// Whether a table is about memories, cores and EDMA, rather than links.
pub(super) fn is_memory_table(table: &str) -> bool {
    table.parse::<u32>().is_ok_and(|number| number <= 15)
}

/// Shared by models that change one value that stands in a file.
pub(super) fn set_count(cycles: &mut At<crate::units::Cycles>, count: f64) {
    cycles.value_mut().count = count.max(0.0);
}
