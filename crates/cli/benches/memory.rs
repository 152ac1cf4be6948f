//! What memory does to uploads: goodput and retransmissions for every size of it, over a TAP device.
//!
//! `cargo bench -p linerate-cli --bench memory [-- --packet]` as root; needs iproute2, iperf3 and a kernel with tcp_bbr. A
//! row has the same number of uploads, congestion control of the sender, and offloads; its cells are sizes of memory. All
//! cells of a row have their turn in each round, so that a change of the machine's speed meets all of them. It ends
//! with 1 where a cell misses: retransmissions at most 0.1 % of the segments, goodput at least 0.8 of the row's best, and
//! every byte sent received.

#[path = "../tests/e2e/lab.rs"]
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
mod lab;
#[path = "../tests/e2e/uploads.rs"]
mod uploads;

use lab::{Lab, Wire};
use uploads::{Congestion, Upload, Uploaded, measure};

const ROUNDS: usize = 3;
const SECONDS: u32 = 2;
const MEMORIES: [&str; 4] = ["4MiB", "16MiB", "64MiB", "1GiB"];

/// What all rounds said of one cell.
struct Cell {
    results: Vec<Uploaded>,
    whole: bool,
}

impl Cell {
    /// The median rate, in bits per second.
    fn rate_bps(&self) -> f64 {
        let mut rates: Vec<f64> = self.results.iter().map(|result| result.rate_bps).collect();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    /// The share of all segments that were sent again.
    fn retransmitted(&self) -> f64 {
        let sent: u64 = self.results.iter().map(|result| result.sent).sum();
        let again: u64 = self.results.iter().map(|result| result.retransmits).sum();
        again as f64 / (sent as f64 / 1448.0)
    }
}

fn main() {
    let wire = if std::env::args().any(|arg| arg == "--packet") { Wire::Packet } else { Wire::Tap };
    println!(
        "{wire:?}, MTU 1500, {ROUNDS} rounds of {SECONDS} s, medians: Gb/s received, % of segments sent again"
    );
    println!("| uploads | sender | offload | {} |", MEMORIES.join(" | "));
    println!("|---:|---|---|{}", "---:|".repeat(MEMORIES.len()));
    let mut misses = 0;
    for offload in ["all", "none"] {
        let labs = MEMORIES.map(|memory| Lab::start(wire, 1500, &["--memory", memory, "--offload", offload]));
        for congestion in [Congestion::Cubic, Congestion::Bbr] {
            for parallel in [1, 8, 100] {
                misses += row(&labs, offload, parallel, congestion);
            }
        }
        labs.into_iter().for_each(Lab::stop);
    }
    println!("{misses} cells miss");
    std::process::exit(i32::from(misses > 0));
}

/// Measures and prints a row; returns how many of its cells miss.
fn row(labs: &[Lab], offload: &str, parallel: u32, congestion: Congestion) -> usize {
    let mut cells: Vec<Cell> = labs.iter().map(|_| Cell { results: Vec::new(), whole: true }).collect();
    for _ in 0..ROUNDS {
        for (lab, cell) in labs.iter().zip(&mut cells) {
            cell.results.push(measure(lab, Upload::seconds(parallel, congestion, SECONDS)));
            let exact = measure(lab, Upload::bytes(parallel, congestion, 50_000_000));
            cell.whole &= exact.received == exact.sent;
        }
    }
    let best = cells.iter().map(Cell::rate_bps).fold(0.0, f64::max);
    let mut misses = 0;
    let mut line = format!("| {parallel} | {congestion:?} | {offload} |");
    for cell in &cells {
        let holds = cell.whole && cell.retransmitted() <= 0.001 && cell.rate_bps() >= 0.8 * best;
        misses += usize::from(!holds);
        let mark = if holds { "" } else { " **misses**" };
        line += &format!(" {:.2}, {:.3} %{mark} |", cell.rate_bps() / 1e9, cell.retransmitted() * 100.0);
    }
    println!("{line}");
    misses
}
