//! What work costs the processor: constants with their origin, read by the prediction and by the simulator's rungs.

use clap::ValueEnum;
use linerate_fabric::document;
use serde::{Deserialize, Serialize};
use std::fmt;

const FILE: &str = include_str!("constants.toml");

/// How a constant came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Instructions of our image, counted in the emulator.
    Counted,
    /// Printed in the document.
    Published,
    /// From published figures, by the arithmetic that the source gives.
    Derived,
    /// Nobody measured it.
    Assumed,
    /// Measured on this machine, just before.
    Calibrated,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Basis::Counted => "counted",
            Basis::Published => "published",
            Basis::Derived => "derived",
            Basis::Assumed => "assumed",
            Basis::Calibrated => "calibrated",
        })
    }
}

/// One constant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// How it came to be.
    pub origin: Basis,
    /// Where from.
    pub source: String,
}

/// Whose work the processor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// That of the document's system: from the loads that it prints.
    #[default]
    Document,
    /// That of our stack: its instructions as counted on the emulated board, a cycle each.
    Counted,
}

/// What the parts of the work cost, in cycles.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The driver for each packet sent.
    pub driver: Constant,
    /// The same after it was improved.
    pub driver_after: Constant,
    /// The stack for each segment of data sent, driver and checksum aside.
    pub transmit: Constant,
    /// The same for an acknowledgement.
    pub transmit_acknowledgement: Constant,
    /// Driver and stack for each segment of data received, interrupt and checksum aside.
    pub receive: Constant,
    /// The same for an acknowledgement.
    pub receive_acknowledgement: Constant,
    /// An interrupt.
    pub interrupt: Constant,
    /// A call that writes.
    pub call: Constant,
    /// Giving way to other tasks.
    pub give_way: Constant,
    /// A call that reads.
    pub read: Constant,
    /// A copy of a byte between the application and the stack.
    pub copy: Constant,
    /// The checksum of a byte in software.
    pub checksum: Constant,
}

/// The whole file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// What the processor runs at.
    pub clock: Constant,
    /// The rate of the interface.
    pub line: Constant,
    /// The round trip when nothing waits.
    pub round_trip: Constant,
    /// The longer one of two rungs.
    pub far_round_trip: Constant,
    /// How much more software costs that is compiled for a debugger.
    pub unoptimized: Constant,
    document: Costs,
    counted: Costs,
}

impl Constants {
    /// The constants of the file.
    ///
    /// # Errors
    /// What is wrong with it, in words: it is part of the program, and a test reads it.
    pub fn load() -> Result<Constants, String> {
        document::read(FILE).map_err(|why| format!("the ladder's constants: {why}"))
    }

    /// The costs of one of both systems.
    pub fn costs(&self, whose: Whose) -> &Costs {
        match whose {
            Whose::Document => &self.document,
            Whose::Counted => &self.counted,
        }
    }

    /// All constants that a run uses, with their names.
    pub fn all(&self, whose: Whose) -> Vec<(&'static str, &Constant)> {
        let costs = self.costs(whose);
        vec![
            ("clock", &self.clock),
            ("line", &self.line),
            ("round trip", &self.round_trip),
            ("round trip, far", &self.far_round_trip),
            ("unoptimized build", &self.unoptimized),
            ("driver, a packet sent", &costs.driver),
            ("driver, improved", &costs.driver_after),
            ("stack, a segment sent", &costs.transmit),
            ("stack, an acknowledgement sent", &costs.transmit_acknowledgement),
            ("a segment received", &costs.receive),
            ("an acknowledgement received", &costs.receive_acknowledgement),
            ("an interrupt", &costs.interrupt),
            ("a call that writes", &costs.call),
            ("giving way", &costs.give_way),
            ("a call that reads", &costs.read),
            ("a copy", &costs.copy),
            ("a checksum", &costs.checksum),
        ]
    }
}

/// What the work of a server on this machine costs, in ns, as calibration finds it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Calibrated {
    /// A packet of data, its system call included.
    pub packet: f64,
    /// A turn of the loop.
    pub turn: f64,
    /// An acknowledgement.
    pub acknowledgement: f64,
    /// A byte, whatever is done with it but for the next.
    pub byte: f64,
    /// A byte whose checksum is computed in software, beyond that.
    pub checksum: f64,
    /// The round trip.
    pub round_trip: f64,
}

impl Constants {
    /// Constants of this machine, a cycle each ns: no interface limits, and nothing costs but what was calibrated.
    pub fn of_machine(found: &Calibrated) -> Constants {
        let constant = |value: f64, unit: &str| Constant {
            value,
            unit: unit.to_owned(),
            origin: Basis::Calibrated,
            source: "transfers on this machine".to_owned(),
        };
        let ns = |value| constant(value, "ns");
        let costs = Costs {
            driver: ns(0.0),
            driver_after: ns(0.0),
            transmit: ns(found.packet),
            transmit_acknowledgement: ns(found.acknowledgement),
            receive: ns(found.packet),
            receive_acknowledgement: ns(found.acknowledgement),
            interrupt: ns(found.turn),
            call: ns(0.0),
            give_way: ns(0.0),
            read: ns(0.0),
            copy: constant(found.byte, "ns/B"),
            checksum: constant(found.checksum, "ns/B"),
        };
        Constants {
            clock: constant(1e9, "Hz"),
            line: constant(1e15, "bit/s"),
            round_trip: ns(found.round_trip),
            far_round_trip: ns(found.round_trip),
            unoptimized: constant(1.0, "times"),
            document: costs.clone(),
            counted: costs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_has_a_positive_value_and_a_source() {
        let constants = Constants::load().unwrap();
        for whose in [Whose::Document, Whose::Counted] {
            for (name, constant) in constants.all(whose) {
                assert!(constant.value > 0.0 && !constant.source.is_empty(), "{name}: {constant:?}");
            }
        }
    }

    #[test]
    fn the_driver_costs_the_mean_of_what_is_printed() {
        let figures = crate::published::of("000").unwrap();
        let constants = Constants::load().unwrap();
        let costs = constants.costs(Whose::Document);
        for (tuning, cost) in [
            ("driver before optimization", &costs.driver),
            ("driver after optimization", &costs.driver_after),
        ] {
            let is_count = |figure: &str| figure.starts_with("EmacSend of packet");
            let printed = figures.iter().filter(|record| record.tuning == tuning && is_count(&record.figure));
            let counts: Vec<f64> = printed.map(|record| record.value).collect();
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            assert_eq!((counts.len(), mean.round()), (13, cost.value), "{tuning}");
        }
    }

    /// The sums that were published hold whatever the split.
    #[test]
    fn the_parts_of_the_document_make_its_loads() {
        let constants = Constants::load().unwrap();
        let costs = constants.costs(Whose::Document);
        let value = |constant: &Constant| constant.value;
        let bytes = 1_460.0;
        let acknowledgement = value(&costs.receive_acknowledgement) + value(&costs.interrupt);
        let sending = value(&costs.driver)
            + value(&costs.transmit)
            + value(&costs.call)
            + acknowledgement / 2.0
            + (value(&costs.copy) + value(&costs.checksum)) * bytes;
        let answer = value(&costs.transmit_acknowledgement) + value(&costs.driver);
        let receiving = value(&costs.receive)
            + value(&costs.interrupt)
            + value(&costs.read)
            + answer / 2.0
            + value(&costs.checksum) * bytes;
        let check = |cycles: f64, load: f64, megabytes: f64| {
            let published = load * constants.clock.value / (megabytes * 1e6 / bytes);
            assert!((cycles / published - 1.0).abs() < 0.01, "{cycles} of {published}");
        };
        check(sending, 0.55, 61.0);
        check(receiving, 0.68, 59.0);
    }
}
