//! The board `softcore` as a program: at the end of a TAP, for clients of the kernel, or beside a host in virtual time, for figures.
//!
//! ```text
//! softcore IMAGE serve TAP [without-offloads]     console on standard input and output, until that ends
//! softcore IMAGE measure WHAT [without-offloads] [sdram] [counts=FILE]
//!                                                 receive, send, requests, closing: a figure on standard output; and to the file
//!                                                 what each instruction took; `sdram`: with an FPGA board's memory;
//!                                                 `counters=FILE`: what an image that counts has counted; `way=FILE`: the way that
//!                                                 execution took
//! softcore IMAGE measure rates [sdram]            what memory and the interface's engine carry, beside what is predicted
//! softcore IMAGE measure caches                   whether frames are read rightly, and not where a cache operation is left out
//! softcore IMAGE ramp FOLDER [quick]              load at rising rates: tables, and files in the folder
//! softcore IMAGE ramp check                       one short level, with and without the clocks in which nothing moves
//! ```

mod caches;
mod client;
mod counters;
mod iperf3;
mod measured;
mod ramp;
mod rates;
mod requests;
mod serve;
mod visitors;

use client::Client;
use linerate_rtl_sim::softcore::{Memory, Softcore, Straps};
use std::io::Write as _;
use std::process::ExitCode;

const USAGE: &str = "usage: softcore IMAGE (serve TAP | measure (receive|send|requests|closing|rates|caches) | ramp (FOLDER [quick]|check)) [without-offloads] [sdram] [counts=FILE] [counters=FILE] [way=FILE]";
/// What the console says when the servers listen.
const GREETING: &str = "help tells the commands";
/// Clocks that the start may take.
const START: u64 = 100_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), String> {
    let [image, what, with, rest @ ..] = arguments else { return Err(USAGE.to_owned()) };
    let (mut straps, mut files, mut is_quick) = (Straps::default(), Files::default(), false);
    let mut memory = Memory::Simulated;
    for option in rest {
        match option.split_once('=') {
            Some(("counts", file)) => files.counts = Some(file),
            Some(("counters", file)) => files.counters = Some(file),
            Some(("way", file)) => files.way = Some(file),
            None if *option == "without-offloads" => straps.without_offloads = true,
            None if *option == "sdram" => memory = Memory::Sdram,
            None if *option == "quick" => is_quick = true,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let image = std::fs::read(image).map_err(|error| format!("{image}: {error}"))?;
    if *what == "ramp" {
        if *with == "check" {
            println!("{}", ramp::check(&image)?);
            return Ok(());
        }
        return ramp::run(&image, with, is_quick);
    }
    if (*what, *with) == ("measure", "caches") {
        println!("{}", caches::run(&image)?);
        return Ok(());
    }
    straps.measures = (*what, *with) == ("measure", "rates");
    let core = Softcore::with_memory(&image, straps, memory)?;
    match *what {
        "measure" if straps.measures => {
            println!("{}", rates::run(core)?);
            Ok(())
        }
        "serve" => serve::run(core, with),
        "measure" => measure(core, with, files),
        _ => Err(USAGE.to_owned()),
    }
}

/// Runs the start, and prints what the console says of it to standard error.
fn start(core: &mut Softcore) -> Result<(), String> {
    let mut said = Vec::new();
    while core.clocks() < START {
        core.clock();
        let piece = core.console();
        if piece.is_empty() {
            continue;
        }
        said.extend(piece);
        if String::from_utf8_lossy(&said).contains(GREETING) {
            return Ok(());
        }
    }
    Err(format!("no greeting in {START} clocks; the console said: {}", String::from_utf8_lossy(&said)))
}

/// Where what a measurement counted is written to.
#[derive(Default)]
struct Files<'a> {
    counts: Option<&'a str>,
    counters: Option<&'a str>,
    way: Option<&'a str>,
}

fn measure(mut core: Softcore, what: &str, files: Files<'_>) -> Result<(), String> {
    start(&mut core)?;
    eprintln!("started after {} clocks", core.clocks());
    let mut client = Client::new(core)?;
    let measured = match what {
        "receive" => iperf3::run(&mut client, false)?,
        "send" => iperf3::run(&mut client, true)?,
        "requests" => requests::run(&mut client, false)?,
        "closing" => requests::run(&mut client, true)?,
        _ => return Err(USAGE.to_owned()),
    };
    let said = client.core.console();
    // Nothing is expected behind the prompt.
    std::io::stderr().write_all(&said).map_err(|error| error.to_string())?;
    if let Some(file) = files.counters {
        write(file, &counters::read(&mut client.core)?)?;
    }
    if let Some(file) = files.counts {
        write(file, measured.counts().as_bytes())?;
    }
    if let Some(file) = files.way {
        write(file, &measured.way())?;
    }
    println!("{}", measured.figure);
    Ok(())
}

fn write(file: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(file, bytes).map_err(|error| format!("{file}: {error}"))
}
