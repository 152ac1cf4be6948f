//! Whether explanations name causes that were injected.

use linerate_lab::explain::truth::{accounts, cases, run};

#[test]
fn what_was_injected_is_what_limited() {
    let mut wrong = Vec::new();
    for case in cases::cases().unwrap() {
        let start = std::time::Instant::now();
        let ran = run::run(&case);
        let found = accounts::Accounts::of(&ran.outcome);
        let verdict = found.map_or(Err("no transfer".to_owned()), |found| accounts::bear_out(case.cause, &found));
        println!("{} {:.2}s {} segments {}, {}: {verdict:?} {:.1} Mbit/s", if verdict.is_ok() {"ok "} else {"BAD"}, start.elapsed().as_secs_f64(), found.map_or(0, |f| f.segments), case.cause, case.name, ran.outcome.flows[0].goodput_bps() / 1e6);
        if let Some(dir) = std::env::var_os("LINERATE_EXPLAIN") {
            let name: String = format!("{}-{}.pcapng", case.cause.name(), case.name).chars().map(|c| if c.is_alphanumeric() || c == '.' || c=='-' { c } else { '_' }).collect();
            std::fs::write(std::path::Path::new(&dir).join(name), &ran.capture).unwrap();
        }
        if let Err(why) = verdict {
            wrong.push(format!("{}, {}: {why}", case.cause, case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
