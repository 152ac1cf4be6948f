//! Timing diagrams of the blocks, from the compiled blocks themselves: `waves FOLDER [BLOCK ...]` writes `FOLDER/BLOCK.svg`, with
//! `--check` it only compares. Run by `cargo xtask rtl waves`.

mod bench;
mod dma;
mod draw;
mod frames;
mod pacer;
mod receive;
mod record;
mod transmit;

use record::Picture;
use std::path::Path;
use std::process::ExitCode;

/// What makes a block's picture.
type Make = fn() -> Result<Picture, String>;

/// Every block that has a page, in the order of their names.
const ALL: &[(&str, Make)] = &[
    ("csum_rx", receive::csum_rx),
    ("csum_tx", transmit::csum_tx),
    ("dma", dma::receive),
    ("int_pacer", pacer::two_ways),
    ("lro", receive::lro),
    ("rss", receive::rss),
    ("rx_fifo", receive::rx_fifo),
    ("tso", transmit::tso),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("waves: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let is_check = args.iter().any(|arg| arg == "--check");
    let mut names = args.iter().filter(|arg| !arg.starts_with("--"));
    let folder = names.next().ok_or("usage: waves [--check] FOLDER [BLOCK ...]")?;
    let names: Vec<&String> = names.collect();
    for name in names.iter().filter(|name| !ALL.iter().any(|(known, _)| known == **name)) {
        println!("waves {name}: no picture");
    }
    let mut stale = Vec::new();
    for (name, make) in ALL.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name)) {
        let picture = make().map_err(|fault| format!("{name}: {fault}"))?;
        let svg = draw::svg(&picture).map_err(|fault| format!("{name}: {fault}"))?;
        let path = Path::new(folder).join(format!("{name}.svg"));
        let spans: Vec<String> = picture.spans.iter().map(record::Span::label).collect();
        println!("waves {name}: {}", spans.join("; "));
        if !is_check {
            std::fs::write(&path, svg).map_err(|error| format!("{}: {error}", path.display()))?;
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&svg) {
            stale.push(path.display().to_string());
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("{}: not what the blocks do now; `cargo xtask rtl waves` draws them again", stale.join(", ")))
}
