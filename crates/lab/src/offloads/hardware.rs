//! What offloads do on the interface in simulation: figures in its own clock.

use super::plan::{Direction, Protocol, Setting, case};
use crate::report::grid::{Cell, Grid};
use crate::schema::{Origin, Record};
use serde::Serialize;

/// One transfer over the simulated interface.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cycles {
    /// The protocol.
    pub protocol: Protocol,
    /// The direction, as the interface with the setting sees it.
    pub direction: Direction,
    /// What it was let do.
    pub setting: Setting,
    /// Payload bytes that arrived.
    pub bytes: u64,
    /// Clocks from the first byte to the last.
    pub clocks: u64,
    /// Picoseconds of a clock.
    pub clock_ps: u64,
    /// Frames that passed between software and driver.
    pub frames: u64,
    /// Frames that software summed or checked.
    pub software_sums: u64,
    /// Beats of descriptors read and written.
    pub descriptor_beats: u64,
    /// Beats of data read and written.
    pub data_beats: u64,
}

impl Cycles {
    /// Payload in Mbit/s of the hardware's own time.
    pub fn throughput_mbps(&self) -> f64 {
        let seconds = self.clocks as f64 * self.clock_ps as f64 / 1e12;
        if seconds > 0.0 { self.bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
    }

    /// So many for each megabyte of payload.
    fn per_megabyte(&self, count: u64) -> f64 {
        count as f64 * 1e6 / (self.bytes as f64).max(1.0)
    }

    /// Its figures in the common form.
    pub fn records(&self) -> Vec<Record> {
        let workload =
            format!("stack-{}-1", case(self.protocol, self.direction).to_lowercase().replace(' ', "-"));
        let record = |figure: &str, unit: &str, value: f64| Record {
            board: "rtl-simulation".to_owned(),
            workload: workload.clone(),
            tuning: self.setting.name().to_owned(),
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            value,
            origin: Origin::Measured,
            source: format!("{} clocks of {} ps", self.clocks, self.clock_ps),
        };
        vec![
            record("throughput", "Mbit/s", self.throughput_mbps()),
            record("frames between software and driver", "frames/MB", self.per_megabyte(self.frames)),
            record("sums by software", "frames/MB", self.per_megabyte(self.software_sums)),
            record("descriptor beats", "beats/MB", self.per_megabyte(self.descriptor_beats)),
            record("data beats", "beats/MB", self.per_megabyte(self.data_beats)),
        ]
    }
}

/// All transfers as a table; `None` without any.
pub fn grid(of: &[Cycles]) -> Option<Grid> {
    let first = of.first()?;
    let headers = [
        "use case",
        "setting",
        "throughput, Mbit/s",
        "frames for software, a MB",
        "sums by software, a MB",
        "descriptor beats, a MB",
        "data beats, a MB",
    ];
    let mut grid = Grid::new("rtl", "On the interface in simulation, in its own clock", &headers);
    for one in of {
        let per_megabyte = |count: u64| Cell::number(one.per_megabyte(count), 0);
        grid.rows.push(vec![
            Cell::text(case(one.protocol, one.direction)),
            Cell::text(one.setting.title()),
            Cell::number(one.throughput_mbps(), 0),
            per_megabyte(one.frames),
            per_megabyte(one.software_sums),
            per_megabyte(one.descriptor_beats),
            per_megabyte(one.data_beats),
        ]);
    }
    grid.notes.push(format!(
        "{:.2} MHz, {} bytes each. The processor beside the interface takes no time here: what offloads save it shows in what \
         it is handed (frames, sums), not as a load.",
        1e6 / first.clock_ps as f64,
        first.bytes
    ));
    Some(grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_become_a_rate() {
        let one = Cycles {
            protocol: Protocol::Tcp,
            direction: Direction::Tx,
            setting: Setting::Segmentation,
            bytes: 1_000_000,
            clocks: 156_250,
            clock_ps: 6_400,
            frames: 30,
            software_sums: 0,
            descriptor_beats: 500,
            data_beats: 125_000,
        };
        assert_eq!(one.throughput_mbps(), 8_000.0);
        let grid = grid(&[one]).unwrap();
        assert_eq!(grid.rows[0][3], Cell::number(30.0, 0));
        assert!(grid.notes[0].starts_with("156.25 MHz"), "{:?}", grid.notes);
        assert_eq!(one.records()[0].unit, "Mbit/s");
    }
}
