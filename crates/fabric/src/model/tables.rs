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

/// The table whose rows are transfers as text: measurements of one's own.
pub const TRANSFER: &str = "transfer";

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
            TRANSFER => (column == 1).then(|| crate::ask::answer(self, row).ok()).flatten(),
            _ => self.links.cell(table, row, column),
        }
    }

    fn figure(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        if table == TRANSFER {
            return (column == 1).then(|| crate::ask::figure(self, row).ok()).flatten();
        }
        let aggregate = self.aggregate(table, row, column);
        aggregate.or_else(|| Some(self.cell(table, row, column)?.predicted))
    }
}

impl Soc {
    /// The figure of an aggregate alone, where the cell is one.
    fn aggregate(&self, table: &str, row: &str, column: usize) -> Option<f64> {
        if !row.starts_with("Aggregate") {
            return None;
        }
        edma::figure(self, &complex(table, column.checked_sub(1)?)?).ok()
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
        let prediction = edma::predict(self, &setup, false).ok()?;
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

/// Whether a table is about memories, cores and EDMA, rather than links.
pub(super) fn is_memory_table(table: &str) -> bool {
    table.parse::<u32>().is_ok_and(|number| number <= 15)
}

/// Shared by models that change one value that stands in a file.
pub(super) fn set_count(cycles: &mut At<crate::units::Cycles>, count: f64) {
    cycles.value_mut().count = count.max(0.0);
}
