//! `linerate sim`: runs a scenario in virtual time, and says what limited it.

pub mod args;
pub mod json;
pub mod text;

use crate::apart::{Clash, apart};
use args::{Format, Sim};
use linerate_lab::quantity::count;
use linerate_lab::scenario::error::SimError;
use linerate_lab::scenario::{build, load, plot, watch};
use linerate_lab::trace::simulated;
use linerate_sim::Instant;
use std::io::{self, Write};
use std::path::Path;

/// Runs the command and prints its result on standard output.
pub fn run(args: &Sim) -> Result<(), SimError> {
    let text = output(args)?;
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Who reads only the beginning has what it wants.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|why| SimError::Write { to: "standard output".to_owned(), why }),
    }
}

/// What the command prints; it writes the plot and the capture that were asked for.
pub fn output(args: &Sim) -> Result<String, SimError> {
    let written = [("--trace", &args.trace), ("--pcap", &args.pcap), ("--plot", &args.plot)]
        .map(|(option, file)| (option, file.as_deref()));
    apart(&[&args.file], &written).map_err(|Clash { option, file, expected }| SimError::Value {
        name: option,
        value: file.display().to_string(),
        why: format!("expected {expected}"),
    })?;
    let mut scenario = load::load(&args.file, &args.set)?;
    if let Some(queues) = args.queues {
        for host in [&mut scenario.client, &mut scenario.server] {
            host.queues = Some(toml::Spanned::new(0..0, queues));
        }
    }
    let mut setup = build::build(&scenario, args.seed);
    if args.pcap.is_some() {
        setup.world.capture_all();
    }
    if args.trace.is_some() {
        simulated::keep(&mut setup, simulated::ENTRIES);
    }
    let begin = setup.world.now();
    let outcome = watch(&mut setup, &scenario);
    if let Some(file) = &args.trace {
        trace(file, &setup)?;
    }
    if let Some(file) = &args.pcap {
        capture(file, &setup, begin)?;
    }
    if let Some(file) = &args.plot {
        let svg = plot::svg(&outcome).map_err(SimError::Plot)?;
        write(file, svg.as_bytes())?;
    }
    Ok(match args.chosen() {
        Format::Text => text::text(&outcome),
        Format::Json => json::json(&outcome),
    })
}

/// Writes the trace of a world that has run.
fn trace(file: &Path, setup: &build::Setup) -> Result<(), SimError> {
    let failed = |why| SimError::Write { to: file.display().to_string(), why };
    let out = io::BufWriter::new(std::fs::File::create(file).map_err(failed)?);
    let written = simulated::write(setup, out).map_err(failed)?;
    if written.lost > 0 {
        eprintln!("linerate: the trace holds the last events; {} older ones are not in it", written.lost);
    }
    Ok(())
}

/// Writes the frames of a world that has run since `begin`.
fn capture(file: &Path, setup: &build::Setup, begin: Instant) -> Result<(), SimError> {
    let failed = |why| SimError::Write { to: file.display().to_string(), why };
    let mut out = io::BufWriter::new(std::fs::File::create(file).map_err(failed)?);
    setup.world.write_pcapng(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    if let Some(cut) = setup.world.capture_cut() {
        eprintln!(
            "linerate: the capture ends after {} frames ({}), {} into the run; {} later ones are not in it",
            count(cut.kept),
            text::bytes(cut.bytes),
            text::span(cut.at - begin),
            count(cut.missing)
        );
    }
    Ok(())
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), SimError> {
    std::fs::write(file, bytes).map_err(|why| SimError::Write { to: file.display().to_string(), why })
}
