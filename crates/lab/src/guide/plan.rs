//! What is measured: tables of questions, each a transfer as `linerate fabric` reads it.

use super::measure::packets::Way;
use crate::quantity;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The core of the chip that is written.
pub const CORE: &str = "cpu";

/// A group of tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Latency of loads by size and stride.
    Latency,
    /// Latency of one line a page: translation.
    Pages,
    /// Read, fill and copy by size.
    Copy,
    /// Read by width of the elements.
    Elements,
    /// Copy by alignment.
    Alignment,
    /// Order of the accesses.
    Pattern,
    /// Strides in order: lines, banks and sets.
    Banks,
    /// Several cores at once.
    Threads,
    /// Packets by size.
    Packets,
}

impl Part {
    /// All, in the order in which they are measured.
    pub const ALL: [Part; 9] = [
        Part::Latency,
        Part::Pages,
        Part::Copy,
        Part::Elements,
        Part::Alignment,
        Part::Pattern,
        Part::Banks,
        Part::Threads,
        Part::Packets,
    ];

    /// Its name, which is that of its table.
    pub fn name(self) -> &'static str {
        match self {
            Part::Latency => "latency",
            Part::Pages => "pages",
            Part::Copy => "copy",
            Part::Elements => "elements",
            Part::Alignment => "alignment",
            Part::Pattern => "pattern",
            Part::Banks => "banks",
            Part::Threads => "threads",
            Part::Packets => "packets",
        }
    }

    /// Its caption.
    pub fn title(self) -> &'static str {
        match self {
            Part::Latency => "Latency of a load that waits for the one before, by working set and stride",
            Part::Pages => "Latency of a load on each page, one line of it, by the number of pages",
            Part::Copy => "Read, fill and copy by one core, by size",
            Part::Elements => "Read by one core in elements that wait for each other, by their width",
            Part::Alignment => "Copy by one core, by the distance of source and destination from a line",
            Part::Pattern => "Read and write by one core, by the order of the accesses",
            Part::Banks => {
                "Loads in order by one core, by their distance: powers of two and their neighbours"
            }
            Part::Threads => "Read, fill and copy by several cores at once, all together",
            Part::Packets => "Packets by size, sent and received by one thread",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Part::ALL.into_iter().find(|part| part.name() == text.trim());
        found.ok_or_else(|| {
            let names: Vec<&str> = Part::ALL.iter().map(|part| part.name()).collect();
            format!("no table '{text}'; expected one of {}", names.join(", "))
        })
    }
}

/// The unit of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// Cycles of the core.
    #[serde(rename = "cycles")]
    Cycles,
    /// Millions of bytes a second.
    #[serde(rename = "MB/s")]
    Megabytes,
    /// Millions of bits a second.
    #[serde(rename = "Mb/s")]
    Megabits,
}

impl Unit {
    /// As it is printed.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Cycles => "cycles",
            Unit::Megabytes => "MB/s",
            Unit::Megabits => "Mb/s",
        }
    }
}

/// What a cell asks for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Asked {
    /// The transfer, as `linerate fabric predict` reads it.
    pub transfer: String,
    /// Whether it is read from the end.
    pub backwards: bool,
    /// The way of a packet, and its bytes.
    #[serde(skip)]
    pub packet: Option<(Way, usize)>,
}

impl Asked {
    fn new(transfer: String) -> Option<Asked> {
        Some(Asked { transfer, backwards: false, packet: None })
    }
}

/// A column.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Column {
    /// Its heading.
    pub heading: String,
    /// The unit of its cells.
    pub unit: Unit,
}

/// A table to fill.
#[derive(Clone, PartialEq, Debug)]
pub struct Planned {
    /// What it is of.
    pub part: Part,
    /// The heading of the first column.
    pub corner: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
    /// The first cell of each row and what the others ask for; none where a cell has no meaning or takes too long.
    pub rows: Vec<(String, Vec<Option<Asked>>)>,
}

/// How much is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Scope {
    /// The largest working set of one core in bytes.
    pub most: u64,
    /// The largest of each core when several work.
    pub most_together: u64,
    /// Whether a look is enough.
    pub quick: bool,
    /// How many cores there are to measure with.
    pub cores: usize,
    /// Whether there is a pair of virtual Ethernet devices.
    pub veth: bool,
}

/// The largest datagram that fits a frame of 1500 B.
const VETH_MOST: u64 = 1472;
/// The largest circle, in places: more take longer to make than to follow.
const MOST_PLACES: u64 = 1 << 22;

impl Scope {
    /// Sizes from `least` on: powers of two, with one between two of them where there is time.
    fn sizes(&self, least: u64, most: u64) -> Vec<u64> {
        let powers = (0..40).map(|power| least << power).take_while(|size| *size <= most);
        let steps: &[u64] = if self.quick { &[2] } else { &[2, 3] };
        Self::steps(powers, steps, most)
    }

    /// The same with all steps: levels are found between them.
    fn all_sizes(&self, least: u64, most: u64) -> Vec<u64> {
        let powers = (0..40).map(|power| least << power).take_while(|size| *size <= most);
        Self::steps(powers, &[2, 3], most)
    }

    fn steps(powers: impl Iterator<Item = u64>, steps: &[u64], most: u64) -> Vec<u64> {
        powers
            .flat_map(|size| steps.iter().map(move |step| size / 2 * step))
            .filter(|size| *size <= most)
            .collect()
    }

    /// The tables of a part; empty where there is nothing to measure.
    pub fn table(&self, part: Part) -> Planned {
        let (corner, columns, rows) = match part {
            Part::Latency => self.latency(),
            Part::Pages => self.pages(),
            Part::Copy => self.copy(),
            Part::Elements => self.elements(),
            Part::Alignment => self.alignment(),
            Part::Pattern => self.pattern(),
            Part::Banks => self.banks(),
            Part::Threads => self.threads(),
            Part::Packets => self.packets(),
        };
        let columns = columns.into_iter().map(|(heading, unit)| Column { heading, unit }).collect();
        Planned { part, corner, columns, rows }
    }

    fn latency(&self) -> Layout {
        let strides: &[u64] =
            if self.quick { &[64, 256, 4096] } else { &[8, 64, 128, 256, 512, 1024, 2048, 4096] };
        let row = |size: u64| {
            let cell = |stride: &u64| {
                let places = size / stride;
                let fits = (4..=MOST_PLACES).contains(&places);
                fits.then(|| Asked::new(format!("load:{CORE}:{size}:single,stride={stride}"))).flatten()
            };
            (quantity::bytes(size), strides.iter().map(cell).collect())
        };
        let columns = strides.iter().map(|stride| (format!("{stride} B apart"), Unit::Cycles)).collect();
        ("Working set", columns, self.all_sizes(4 << 10, self.most).into_iter().map(row).collect())
    }

    fn pages(&self) -> Layout {
        // A line more than a page, so that lines do not share sets as pages do.
        let stride = 4096 + 64;
        let most = self.most / stride;
        let row = |pages: u64| {
            let asked = Asked::new(format!("load:{CORE}:{}:single,stride={stride}", pages * stride));
            (pages.to_string(), vec![asked])
        };
        let rows = self.all_sizes(8, most).into_iter().map(row).collect();
        ("Pages", vec![("one line of each".to_owned(), Unit::Cycles)], rows)
    }

    fn copy(&self) -> Layout {
        let row = |size: u64| {
            let cell = |what: &str| Asked::new(format!("memory:{CORE}:{what}:{size}"));
            (quantity::bytes(size), ["read", "fill", "copy"].map(cell).to_vec())
        };
        let columns = ["read", "fill", "copy"].map(|what| (what.to_owned(), Unit::Megabytes)).to_vec();
        ("Bytes", columns, self.sizes(1 << 10, self.most).into_iter().map(row).collect())
    }

    /// One size well inside of what is usually a level, and one beyond all.
    fn few(&self) -> Vec<u64> {
        let sizes = [16 << 10, 256 << 10, 4 << 20, self.most];
        sizes.into_iter().filter(|size| *size <= self.most).collect()
    }

    fn elements(&self) -> Layout {
        let widths = super::measure::kernels::WIDTHS;
        let row = |size: u64| {
            let cell = |width: &usize| Asked::new(format!("memory:{CORE}:read:{size},element={width}"));
            (quantity::bytes(size), widths.iter().map(cell).collect())
        };
        let columns = widths.iter().map(|width| (format!("{width} B"), Unit::Megabytes)).collect();
        let step = if self.quick { 6 } else { 2 };
        let sizes = self.sizes(4 << 10, self.most);
        ("Bytes", columns, sizes.into_iter().step_by(step).map(row).collect())
    }

    fn alignment(&self) -> Layout {
        let mut places = vec![(0, 0), (1, 0), (0, 1), (1, 1), (32, 0), (0, 32)];
        if !self.quick {
            places.extend([
                (8, 0),
                (0, 8),
                (16, 0),
                (0, 16),
                (63, 0),
                (0, 63),
                (8, 8),
                (1, 33),
                (64, 0),
                (0, 64),
            ]);
        }
        let sizes = self.few();
        let row = |(from, to): (u64, u64)| {
            let cell = |size: &u64| Asked::new(format!("memory:{CORE}:copy:{size},from={from},to={to}"));
            (format!("from {from}, to {to}"), sizes.iter().map(cell).collect())
        };
        let columns = sizes.iter().map(|size| (quantity::bytes(*size), Unit::Megabytes)).collect();
        ("Bytes behind a line", columns, places.into_iter().map(row).collect())
    }

    fn pattern(&self) -> Layout {
        let row = |size: u64| {
            let read = Asked::new(format!("memory:{CORE}:read:{size}"));
            let backwards = read.clone().map(|asked| Asked { backwards: true, ..asked });
            let cells = vec![
                read,
                backwards,
                Asked::new(format!("load:{CORE}:{size}:burst,stride=512")),
                Asked::new(format!("load:{CORE}:{size}:burst")),
                Asked::new(format!("store:{CORE}:{size}")),
            ];
            (quantity::bytes(size), cells)
        };
        let columns = [
            ("read in order", Unit::Megabytes),
            ("read backwards", Unit::Megabytes),
            ("loads 512 B apart", Unit::Cycles),
            ("loads at random", Unit::Cycles),
            ("stores at random", Unit::Cycles),
        ];
        let columns = columns.map(|(heading, unit)| (heading.to_owned(), unit)).to_vec();
        ("Working set", columns, self.sizes(8 << 10, self.most).into_iter().map(row).collect())
    }

    fn banks(&self) -> Layout {
        let powers: &[u64] =
            if self.quick { &[64, 512, 4096] } else { &[64, 128, 256, 512, 1024, 2048, 4096, 8192] };
        let sizes = self.few();
        let strides = powers.iter().flat_map(|power| [*power, power + 64]);
        let row = |stride: u64| {
            let cell = |size: &u64| match size / stride {
                0..2 => None,
                _ => Asked::new(format!("load:{CORE}:{size}:burst,stride={stride}")),
            };
            (format!("{stride} B"), sizes.iter().map(cell).collect())
        };
        let columns = sizes.iter().map(|size| (quantity::bytes(*size), Unit::Cycles)).collect();
        let mut seen = Vec::new();
        let strides: Vec<u64> = strides
            .filter(|stride| {
                let first = !seen.contains(stride);
                seen.push(*stride);
                first
            })
            .collect();
        ("Apart", columns, strides.into_iter().map(row).collect())
    }

    /// 1, 2, 4, ... and all cores.
    fn counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> =
            (0..16).map(|power| 1 << power).filter(|count| *count < self.cores).collect();
        counts.push(self.cores.max(1));
        counts
    }

    fn threads(&self) -> Layout {
        let counts = self.counts();
        let asked: Vec<(&str, usize)> = ["read", "fill", "copy"]
            .iter()
            .flat_map(|what| counts.iter().map(move |count| (*what, *count)))
            .collect();
        let row = |size: u64| {
            let cell = |(what, count): &(&str, usize)| {
                Asked::new(format!("memory:{CORE}:{what}:{size},cores={count}"))
            };
            (quantity::bytes(size), asked.iter().map(cell).collect())
        };
        let heading = |(what, count): &(&str, usize)| match count {
            1 => format!("{what}, 1 core"),
            count => format!("{what}, {count} cores"),
        };
        let columns = asked.iter().map(|asked| (heading(asked), Unit::Megabytes)).collect();
        let step = if self.quick { 4 } else { 2 };
        let sizes = self.sizes(8 << 10, self.most_together);
        ("Bytes of each core", columns, sizes.into_iter().step_by(step).map(row).collect())
    }

    fn packets(&self) -> Layout {
        let sizes: Vec<u64> = match self.quick {
            true => vec![64, 512, 1472, 8972],
            false => vec![
                64, 114, 164, 214, 264, 314, 364, 414, 464, 514, 564, 1064, 1472, 3064, 4564, 8972, 16384,
                32768, 61440,
            ],
        };
        let ways: Vec<Way> = Way::ALL.into_iter().filter(|way| *way != Way::UdpVeth || self.veth).collect();
        let row = |size: u64| {
            let cell = |way: &Way| {
                // A datagram that the device cuts is no packet of this size.
                if *way == Way::UdpVeth && size > VETH_MOST {
                    return None;
                }
                let packet = Some((*way, size as usize));
                let transfer = format!("ethernet:{size},port={}", way.port());
                Some(Asked { transfer, backwards: false, packet })
            };
            (size.to_string(), ways.iter().map(cell).collect())
        };
        let columns = ways.iter().map(|way| (way.title().to_owned(), Unit::Megabits)).collect();
        ("Packet size (bytes)", columns, sizes.into_iter().map(row).collect())
    }
}

/// Corner, columns and rows of a table.
type Layout = (&'static str, Vec<(String, Unit)>, Vec<(String, Vec<Option<Asked>>)>);

/// Whether a cell calibrates the chip; the others are predicted. Of two neighbours one does, across and down, as on a chessboard.
pub fn calibrates(row: usize, column: usize) -> bool {
    (row + column).is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_fabric::ask::Transfer;

    fn scope(quick: bool, cores: usize) -> Scope {
        Scope { most: 64 << 20, most_together: 16 << 20, quick, cores, veth: true }
    }

    #[test]
    fn every_cell_is_a_transfer_and_half_of_them_calibrate() {
        for scope in [scope(false, 1), scope(false, 6), scope(true, 2)] {
            for part in Part::ALL {
                let table = scope.table(part);
                let (mut half, mut all) = (0i64, 0i64);
                for (row, (name, cells)) in table.rows.iter().enumerate() {
                    assert_eq!(cells.len(), table.columns.len(), "{part} {name}");
                    for (column, asked) in cells.iter().enumerate() {
                        let Some(asked) = asked else { continue };
                        let parsed: Result<Transfer, _> = asked.transfer.parse();
                        assert!(parsed.is_ok(), "{part} {name}: {} {parsed:?}", asked.transfer);
                        all += 1;
                        half += i64::from(calibrates(row, column));
                    }
                }
                assert!(
                    all >= 4 && (2 * half - all).abs() <= table.rows.len() as i64,
                    "{part}: {half} of {all}"
                );
            }
        }
    }

    #[test]
    fn counts_of_cores_double_up_to_all() {
        for (cores, counts) in [(1, vec![1]), (2, vec![1, 2]), (6, vec![1, 2, 4, 6]), (8, vec![1, 2, 4, 8])] {
            assert_eq!(scope(false, cores).counts(), counts);
        }
    }

    #[test]
    fn a_name_that_is_none_is_refused_with_those_there_are() {
        assert_eq!("copy".parse(), Ok(Part::Copy));
        let error = "cpoy".parse::<Part>().unwrap_err();
        assert!(error.contains("no table 'cpoy'") && error.contains("latency, pages, copy"), "{error}");
    }
}
