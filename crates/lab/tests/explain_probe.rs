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
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let found = analysis.connections.first().map(|c| &c.verdict);
        let good = found.is_some_and(|v| name.starts_with(&format!("{:?}_", v.cause)) || name.starts_with(&format!("{}-", v.cause.name().replace(|c: char| !c.is_ascii_alphanumeric(), "_"))));
        println!("== {} {name} {:?}", if good { "ok   " } else { "WRONG" }, found.map(|v| (v.cause, v.runner_up, (v.confidence * 100.0).round())));
        if good && std::env::var_os("ALL").is_none() { continue; }
        for c in analysis.connections.iter().take(2) {
            let e = &c.evidence;
            let ms = |s: Option<f64>| s.map_or("-".to_owned(), |s| format!("{:.3}", s * 1e3));
            println!("  {:?} near {} {:.2}s {:.2} Mbit/s segs {} mss {} mean {:.0} rtt {}/{}/{} ms flight {:.0}/{} window {:.0}/{}", c.verdict.cause, e.near_sender, e.time_s, e.rate * 8e-6, e.segments, e.mss, e.mean_segment, ms(e.rtt_least_s), ms(e.rtt_median_s), ms(e.rtt_mean_s), e.flight_mean, e.flight_most, e.window_mean, e.window_most);
            let waits: Vec<String> = Wait::ALL.iter().zip(e.waits).filter(|(_, w)| *w > 0.005).map(|(w, s)| format!("{w:?} {:.1}%", s * 100.0)).collect();
            println!("     {} | trains {} queued {:?} open {:.2} gapcv {:.2} nagle {:?} short {:.2} refill {} ms", waits.join(" "), e.train_rates.map_or("-".to_owned(), |r| r.map(|r| format!("{:.2}", r * 8e-6)).join("/")), e.queued_time.map(|q| (q * 100.0).round()), e.open, e.gap_variation.unwrap_or(0.0), e.nagle, e.pushed_short, ms(e.refill_s));
            let k = &e.counts;
            let u = e.train_rates.map_or(0.0, |r| e.rate / r[0]); println!("     after_short {:.2} closed {:.2} U {u:.2} flat {:.2} lost {} run {:.1} recov {} late {} | fast {} to {} needless {} filled {} late {} beyond {} missed {} dsack {} echoed {} healed {} dup {} zero {} ({:.1} ms) full {} upd {} supers {} acks {}", e.after_short, e.closed, e.flight_mean / e.flight_high.max(1) as f64, e.lost, e.run, k.recoveries, e.late, k.fast, k.timeouts, k.needless, k.filled, k.late, k.late_beyond, k.missed_bytes, k.dsacks, k.echoed, k.healed, k.duplicate_acks, k.zero_windows, k.zero_window_ns as f64 / 1e6, k.window_full, k.window_updates, k.super_frames, k.pure_acks);
        }
    }
}

#[test]
fn generate() {
    use linerate_lab::explain::truth::{cases, run};
    let Some(dir) = std::env::var_os("GEN") else { return };
    let dir = std::path::Path::new(&dir);
    for sub in ["train", "held"] {
        std::fs::create_dir_all(dir.join(sub)).unwrap();
    }
    for sub in ["data", "acks", "lost", "datar"] {
        std::fs::create_dir_all(dir.join(sub)).unwrap();
    }
    use linerate_lab::explain::truth::view::{Direction, End, View};
    for case in cases::cases().unwrap() {
        let name: String = format!("{:?} {}.pcapng", case.cause, case.name).replace(['/', ' ', ','], "_");
        if case.held_out {
            if std::env::var_os("HELD").is_some() {
                std::fs::write(dir.join("held").join(name), &run::run(&case).capture).unwrap();
            }
            continue;
        }
        std::fs::write(dir.join("train").join(&name), &run::run(&case).capture).unwrap();
        for (sub, view) in [
            ("data", View { direction: Direction::Data, end: End::Sender, ..View::default() }),
            ("datar", View { direction: Direction::Data, end: End::Receiver, ..View::default() }),
            ("acks", View { direction: Direction::Acks, end: End::Sender, ..View::default() }),
            ("lost", View { missing: 0.02, snap: Some(64), ..case.view }),
        ] {
            let mut case = case.clone();
            case.view = view;
            std::fs::write(dir.join(sub).join(&name), &run::run(&case).capture).unwrap();
        }
    }
}
