//! `linerate lab guide`: a throughput guide of the machine at hand.

use super::args::Output;
use super::error::{self, LabError};
use clap::Args;
use linerate_lab::guide::plan::Part;
use linerate_lab::guide::run::{self, GuideError, Options};
use linerate_lab::guide::show;
use linerate_lab::report::grid::GridFormat;
use std::path::PathBuf;

/// Arguments of `lab guide`.
#[derive(Args, Debug)]
pub struct Guide {
    /// Look for seconds instead of measuring for minutes: fewer sizes, fewer samples
    #[arg(long)]
    pub quick: bool,

    /// Measure these tables only: latency, pages, copy, elements, alignment, pattern, banks, threads, packets
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub only: Vec<Part>,

    /// Write the chip there, for `linerate fabric predict FILE`
    #[arg(long, value_name = "FILE.toml")]
    pub chip: Option<PathBuf>,

    /// Write the tables there as a guide, for `linerate fabric table CHIP NAME --guide FILE`
    #[arg(long, value_name = "FILE.toml")]
    pub guide: Option<PathBuf>,

    /// Write the cells that calibrated the chip there, for `linerate fabric fit CHIP FILE`
    #[arg(long, value_name = "FILE.csv")]
    pub data: Option<PathBuf>,

    /// JSON and page
    #[command(flatten)]
    pub output: Output,
}

/// Measures and prints.
pub fn run(args: &Guide) -> Result<(), LabError> {
    let written = [
        ("--chip", args.chip.as_deref()),
        ("--guide", args.guide.as_deref()),
        ("--data", args.data.as_deref()),
        ("--html", args.output.html.as_deref()),
    ];
    error::check_outputs(&[], &written)?;
    let options = Options {
        quick: args.quick,
        only: args.only.clone(),
        chip: args.chip.is_some() || args.guide.is_some() || args.data.is_some(),
    };
    let guide = run::run(&options).map_err(|why| match why {
        GuideError::Asked(why) => LabError::Asked(why),
        GuideError::Failed(why) => LabError::Failed(why),
    })?;
    if let Some(file) = &args.chip {
        error::write(file, guide.chip.as_deref().unwrap_or_default())?;
    }
    if let Some(file) = &args.guide {
        error::write(file, show::guide_file(&guide))?;
    }
    if let Some(file) = &args.data {
        error::write(file, show::data_file(&guide))?;
    }
    if let Some(file) = &args.output.html {
        let page = show::page(&guide).map_err(|why| LabError::Failed(why.to_string()))?;
        error::write(file, page)?;
    }
    if args.output.json {
        return error::print(&error::json(&show::json(&guide))?);
    }
    let grids: Vec<String> = show::grids(&guide)
        .iter()
        .map(|grid| grid.render(GridFormat::Terminal, crate::output::width()))
        .collect();
    error::print(&grids.join("\n"))
}
