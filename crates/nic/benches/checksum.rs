//! Prints how many bytes a second each version of the checksum sums, and their ratio.
//!
//! `cargo bench -p linerate-nic --bench checksum`. Wall clock, so for comparing within one run only.

use linerate_nic::checksum;
use linerate_wire::checksum::raw_sum;
use std::hint::black_box;
use std::time::Instant;

/// Sums `bytes` often enough for a stable figure; best of five, in GB/s.
fn rate(bytes: &[u8], sum: fn(&[u8]) -> u64) -> f64 {
    let rounds = (256 << 20) / bytes.len().max(1);
    let mut best = 0f64;
    for _ in 0..5 {
        let begin = Instant::now();
        for _ in 0..rounds {
            black_box(sum(black_box(bytes)));
        }
        let seconds = begin.elapsed().as_secs_f64();
        best = best.max((rounds * bytes.len()) as f64 / seconds / 1e9);
    }
    best
}

fn main() {
    println!("{:>8} {:>16} {:>14} {:>14}", "bytes", "portable GB/s", "chosen GB/s", "portable/chosen");
    for len in [20, 64, 256, 536, 1460, 4096, 8960, 65536] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let (portable, chosen) = (rate(&bytes, raw_sum), rate(&bytes, checksum::raw_sum));
        println!("{len:>8} {portable:>16.2} {chosen:>14.2} {:>14.2}", portable / chosen);
    }
}
