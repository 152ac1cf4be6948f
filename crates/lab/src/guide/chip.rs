//! The chip file of the machine: a first one from levels and rates that were seen, to be calibrated.

use super::plan::CORE;
use linerate_fabric::soc::{self, Soc};
use std::fmt::Write as _;

/// What a first description starts from.
#[derive(Clone, PartialEq, Debug)]
pub struct Start {
    /// Name of the processor.
    pub title: String,
    /// The clock of a core in Hz.
    pub clock_hz: f64,
    /// How many cores.
    pub cores: usize,
    /// Bytes of a cache line.
    pub line: u64,
    /// Bytes of a page.
    pub page: u64,
    /// Levels from the nearest; the last is the memory.
    pub levels: Vec<StartLevel>,
    /// Entries of translation buffers and cycles of a miss.
    pub tlbs: Vec<(f64, f64)>,
}

/// A level as it was seen.
#[derive(Clone, PartialEq, Debug)]
pub struct StartLevel {
    /// Bytes; none for the memory.
    pub size: Option<f64>,
    /// Bytes that a miss brings.
    pub fetch: u64,
    /// Cycles of a load.
    pub latency: f64,
    /// How many cores share it.
    pub shared_by: u32,
    /// What one core reads, fills and copies, in MB/s.
    pub rates: [f64; 3],
}

/// The name of a level by its place.
pub fn name(at: usize, levels: usize) -> String {
    if at + 1 == levels { "memory".to_owned() } else { format!("l{}", at + 1) }
}

/// Below this a figure is none.
const NOTHING: f64 = 1e-6;

/// Four significant digits: what a file shows is what is predicted with.
pub fn rounded(value: f64) -> f64 {
    if value.abs() < NOTHING {
        return 0.0;
    }
    if !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

impl Start {
    /// As a file.
    pub fn text(&self) -> String {
        let mut text = format!(
            "[chip]\nname = \"host\"\ntitle = {:?}\n\n[clocks]\ncore = {{ frequency = \"{} MHz\" }}\n\n[cores.{CORE}]\ncount = {}\n\
             clock = \"core\"\nwidth = \"64 B/cycle\"\nline = \"{} B\"\n\n[cores.{CORE}.outstanding]\n",
            self.title,
            rounded(self.clock_hz / 1e6),
            self.cores,
            self.line
        );
        let count = self.levels.len();
        for at in 0..count {
            // As many as hide a latency at a guess; measured soon.
            let _ = writeln!(text, "{} = {}.0", name(at, count), 4 << at.min(4));
        }
        if !self.tlbs.is_empty() {
            text.push_str("translation = 8.0\n");
        }
        for (at, level) in self.levels.iter().enumerate() {
            self.level(at, level, &mut text);
        }
        for (at, (entries, cycles)) in self.tlbs.iter().enumerate() {
            let (page, name) = (self.page, at + 1);
            let _ = write!(
                text,
                "\n[cores.{CORE}.tlbs.l{name}]\nentries = {entries:?}\nunevenness = \"20 %\"\npage = \"{page} B\"\n\
                 miss = \"{cycles} cycles @ core\"\npipeline = \"translation\"\n"
            );
        }
        let _ = write!(text, "\n[cores.{CORE}.loops]\n");
        for (key, cycles) in [
            ("read", 5),
            ("fill", 5),
            ("copy", 5),
            ("element", 2),
            ("wide_element", 3),
            ("gather", 1),
            ("scatter", 1),
            ("source_split", 1),
            ("destination_split", 1),
        ] {
            let _ = writeln!(text, "{key} = \"{cycles} cycles @ core\"");
        }
        text
    }

    /// One level with its reads.
    fn level(&self, at: usize, level: &StartLevel, text: &mut String) {
        let name = name(at, self.levels.len());
        let cycles = rounded(level.latency);
        let _ = write!(
            text,
            "\n[cores.{CORE}.reads.{name}]\nlatency = \"{cycles} cycles @ core\"\npipeline = \"{name}\"\n\n\
             [cores.{CORE}.levels.{name}]\n"
        );
        if let Some(size) = level.size {
            let _ = write!(
                text,
                "size = \"{} KiB\"\nunevenness = \"{} %\"\nfetch = \"{} B\"\nshared_by = {}\n",
                rounded(size / 1024.0),
                if at == 0 { 3 } else { 20 },
                level.fetch,
                level.shared_by
            );
            if at > 0 {
                text.push_str("conflict = \"1024 B\"\n");
            }
        }
        for (what, rate) in ["read", "fill", "copy"].into_iter().zip(level.rates) {
            let _ = writeln!(text, "{what} = \"{} MB/s\"", rounded(rate.max(1.0)));
            if self.cores > 1 {
                let _ =
                    writeln!(text, "{what}_all = \"{} MB/s\"", rounded(rate.max(1.0) * self.cores as f64));
            }
        }
        let line = rounded(self.line as f64 / level.rates[0].max(1.0) * self.clock_hz / 1e6);
        let _ =
            writeln!(text, "per_line = \"{line} cycles @ core\"\nper_conflict = \"{line} cycles @ core\"");
    }

    /// As a chip.
    ///
    /// # Errors
    /// What the loader finds wrong with it.
    pub fn chip(&self) -> Result<Soc, String> {
        soc::load(&self.text()).map_err(|error| error.to_string())
    }
}

/// A port over which packets cost a time each and a time for every 64 B.
#[derive(Clone, PartialEq, Debug)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// Nanoseconds a packet.
    pub per_packet_ns: f64,
    /// Nanoseconds of every 64 B.
    pub per_piece_ns: f64,
    /// How far packets that were seen lie from that, as a share.
    pub spread: f64,
    /// The largest packet that was seen.
    pub most: u64,
}

/// What data of a packet is counted in.
pub const PIECE: f64 = 64.0;

impl Port {
    /// The port that comes closest to packets seen: their bytes and nanoseconds. None for fewer than two.
    pub fn of(name: &'static str, seen: &[(f64, f64)]) -> Option<Port> {
        // Least squares of the relative error: minimise the sum of ((a + b x) / t - 1)^2.
        let (mut aa, mut ab, mut bb, mut a1, mut b1) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (bytes, ns) in seen {
            let (one, pieces) = (1.0 / ns, (bytes / PIECE).ceil() / ns);
            aa += one * one;
            ab += one * pieces;
            bb += pieces * pieces;
            a1 += one;
            b1 += pieces;
        }
        let determinant = aa * bb - ab * ab;
        if seen.len() < 2 || determinant.abs() < 1e-30 {
            return None;
        }
        let per_packet_ns = ((a1 * bb - b1 * ab) / determinant).max(1.0);
        let per_piece_ns = ((b1 - per_packet_ns * ab) / bb).max(0.0);
        let error = |(bytes, ns): &(f64, f64)| {
            ((per_packet_ns + per_piece_ns * (bytes / PIECE).ceil()) / ns - 1.0).abs()
        };
        let spread = seen.iter().map(error).fold(0.0, f64::max).clamp(0.01, 0.9);
        let most = seen.iter().map(|(bytes, _)| *bytes).fold(0.0, f64::max) as u64;
        Some(Port { name, per_packet_ns, per_piece_ns, spread, most })
    }

    /// As a part of a chip file, on a core of this clock. `most` is the largest packet that may be asked about.
    pub fn text(&self, clock_hz: f64, most: u64) -> String {
        let time = |ns: f64| {
            let mhz = rounded(clock_hz / 1e6);
            format!("{{ time = \"{} ns\", clock = \"core\", measured_at = \"{mhz} MHz\" }}", rounded(ns))
        };
        format!(
            "\n# No line limits it: what a packet takes is the time of the core.\n[links.ethernet.{}]\nrate = \"100000 Gbit/s\"\n\
             preamble = \"0 B\"\ngap = \"0 B\"\nheader = \"0 B\"\ncheck_sequence = \"0 B\"\nmtu = \"{} B\"\n\n\
             [links.ethernet.{}.packet_dma]\nper_packet = {}\nburst = \"{PIECE} B\"\nper_burst = {}\nspread = \"{} %\"\n",
            self.name,
            most.max(self.most),
            self.name,
            time(self.per_packet_ns),
            time(self.per_piece_ns),
            rounded(self.spread * 100.0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::ask::answer;

    /// A machine of numbers.
    fn start(cores: usize) -> Start {
        let level = |size: Option<f64>, latency: f64, rate: f64| StartLevel {
            size,
            fetch: 64,
            latency,
            shared_by: 1,
            rates: [rate, rate * 1.2, rate * 0.7],
        };
        Start {
            title: "a \"machine\" of numbers".into(),
            clock_hz: 4.2e9,
            cores,
            line: 64,
            page: 4096,
            levels: vec![
                level(Some(49152.0), 5.0, 130_000.0),
                level(Some(1048576.0), 14.0, 120_000.0),
                level(None, 400.0, 30_000.0),
            ],
            tlbs: vec![(64.0, 7.0), (2048.0, 40.0)],
        }
    }

    #[test]
    fn a_first_chip_loads_and_answers() {
        for cores in [1, 2, 64] {
            let start = start(cores);
            let chip = start.chip().unwrap_or_else(|error| panic!("{error}\n{}", start.text()));
            for transfer in [
                "load:cpu:16KiB",
                "load:cpu:16MiB:burst",
                "store:cpu:1MiB",
                "memory:cpu:copy:64KiB,from=1,to=0",
            ] {
                let found = answer(&chip, transfer).unwrap();
                assert!(found.predicted > 0.0 && found.low <= found.predicted, "{transfer} {found:?}");
            }
            let l1 = answer(&chip, "load:cpu:16KiB").unwrap();
            assert!((l1.predicted - 5.0).abs() < 0.3, "{l1:?}");
            let single = answer(&chip, "core:cpu:memory:single").unwrap();
            assert!((single.predicted - 400.0).abs() < 1e-6, "{single:?}");
        }
    }

    #[test]
    fn packets_give_their_port_back() {
        let seen: Vec<(f64, f64)> = [64.0, 512.0, 1472.0, 8972.0]
            .map(|bytes: f64| (bytes, 900.0 + 3.0 * (bytes / PIECE).ceil()))
            .to_vec();
        let port = Port::of("udp", &seen).unwrap();
        assert!(
            (port.per_packet_ns - 900.0).abs() < 1e-6 && (port.per_piece_ns - 3.0).abs() < 1e-9,
            "{port:?}"
        );
        let text = format!("{}{}", start(1).text(), port.text(4.2e9, 65_536));
        let chip = soc::load(&text).unwrap();
        let found = answer(&chip, "ethernet:512,port=udp").unwrap();
        assert!((found.predicted / (512.0 * 8.0 / 924.0 * 1e3) - 1.0).abs() < 1e-3, "{found:?}");
        assert_eq!(Port::of("udp", &seen[..1]), None);
    }

    #[test]
    fn figures_are_rounded_to_four_digits() {
        for (value, expected) in [(12345.6, 12350.0), (0.0012345, 0.001235), (0.0, 0.0), (99.999, 100.0)] {
            assert!((rounded(value) - expected).abs() < 1e-12, "{value}");
        }
    }
}
