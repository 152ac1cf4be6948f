//! Looks at captures by hand.
use linerate_lab::explain::analyse;
use linerate_lab::explain::wait::Wait;
use std::fs::File;

#[test]
fn probe() {
    let Some(dir) = std::env::var_os("PROBE") else { return };
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let analysis = analyse(File::open(&path).unwrap()).unwrap();
        println!("== {}", path.file_name().unwrap().to_string_lossy());
        for c in analysis.connections.iter().take(2) {
            let e = &c.evidence;
            let ms = |s: Option<f64>| s.map_or("-".to_owned(), |s| format!("{:.3}", s * 1e3));
            println!(
                "  {:?} near {} {:.2}s {:.2} Mbit/s segs {} mss {} mean {:.0} rtt {}/{}/{} ms flight {:.0}/{} window {:.0}/{}",
                c.verdict.cause,
                e.near_sender,
                e.time_s,
                e.rate * 8e-6,
                e.segments,
                e.mss,
                e.mean_segment,
                ms(e.rtt_least_s),
                ms(e.rtt_median_s),
                ms(e.rtt_mean_s),
                e.flight_mean,
                e.flight_most,
                e.window_mean,
                e.window_most
            );
            let waits: Vec<String> = Wait::ALL
                .iter()
                .zip(e.waits)
                .filter(|(_, w)| *w > 0.005)
                .map(|(w, s)| format!("{w:?} {:.1}%", s * 100.0))
                .collect();
            println!(
                "     {} | train {:.2} Mbit/s gapcv {:.2} nagle {:?} short {:.2} refill {} ms",
                waits.join(" "),
                e.train_rate.unwrap_or(0.0) * 8e-6,
                e.gap_variation.unwrap_or(0.0),
                e.nagle,
                e.pushed_short,
                ms(e.refill_s)
            );
            let k = &e.counts;
            println!(
                "     lost {} run {:.1} recov {} late {} | fast {} to {} needless {} filled {} late {} beyond {} missed {} dsack {} echoed {} dup {} zero {} ({:.1} ms) full {} upd {} supers {} acks {}",
                e.lost,
                e.run,
                k.recoveries,
                e.late,
                k.fast,
                k.timeouts,
                k.needless,
                k.filled,
                k.late,
                k.late_beyond,
                k.missed_bytes,
                k.dsacks,
                k.echoed,
                k.duplicate_acks,
                k.zero_windows,
                k.zero_window_ns as f64 / 1e6,
                k.window_full,
                k.window_updates,
                k.super_frames,
                k.pure_acks
            );
        }
    }
}
