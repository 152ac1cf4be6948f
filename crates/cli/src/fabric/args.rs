//! Arguments of `linerate fabric`.

use super::change::{Setting, Sweep};
use super::fit::{CellName, Measured};
use clap::{Args, Subcommand, ValueEnum};
use linerate_fabric::ask::Transfer;
use linerate_lab::report::grid::GridFormat;
use std::path::PathBuf;

/// Arguments of `fabric`.
#[derive(Args, Debug)]
pub struct Fabric {
    /// What to do.
    #[command(subcommand)]
    pub command: FabricCommand,
}

/// The subcommands of `fabric`.
#[derive(Subcommand, Debug)]
pub enum FabricCommand {
    /// Predict the rate of one or several concurrent transfers, and name what limits them
    #[command(after_long_help = TRANSFERS)]
    Predict(Predict),
    /// Show the way of a transfer with the room of each part of it, and what to change first
    Explain(Explain),
    /// Predict traffic of several kinds at once on one chip: the rate and latency of each flow
    Mix(Mix),
    /// Print a table of a throughput guide as predicted, published and error
    Table(Table),
    /// Write one self-contained HTML page with every table and figure of a guide
    Report(Report),
    /// Calibrate a chip's free parameters from measurements
    #[command(after_long_help = DATA)]
    Fit(Fit),
    /// Check a transcribed datasheet against itself
    Audit(Audit),
    /// Print the JSON schema of a chip's description
    Schema,
}

const TRANSFERS: &str = "Transfers:
  edma:TC:FROM->TO[:SIZE][,OPTIONS]      FROM<->TO moves both ways; 32KiB if no size is given
      sync=a|ab  acnt=BYTES  bcnt=N  ccnt=N  index=BYTES  align=BYTES
  core:CORE:MEMORY[:single|burst]        latency of a core's reads in its cycles
  load:CORE:SIZE[:single|burst][,stride=BYTES]
                                         loads in a working set, in cycles of the core
  store:CORE:SIZE                        stores at random in a working set
  memory:CORE:read|fill|copy:SIZE[,cores=N][,element=BYTES][,from=BYTES][,to=BYTES]
                                         what cores read, fill or copy of a working set
  pcie:read|write[:PAYLOAD][:bidir][:bridged]    128B; edma=TC gives the burst size
  srio:nread|nwrite|type11[:SIZE][:LANESx][:RATEG][:MEMORY]    4KiB on 4x at 5G, L2
  hyperlink:read|write:MEMORY            path=NAME, near if not given
  ethernet:SIZE                          bytes of a frame; port=NAME, count=line|frame|packet
  tcp:WORKLOAD                           a TCP server of the description

Parts stand between ':' or ','; sizes are 64, 128B, 32KiB, 1MiB, 10kB. Quote the '>' from your shell.

Examples:
  linerate fabric predict k2h --transfer 'edma:TC0:msmc->ddr3a:128KiB,sync=ab,bcnt=128'
  linerate fabric predict k2h --transfer 'edma:TC0:l2.0<->ddr3a' --transfer 'edma:TC1:l2.1<->ddr3a'
  linerate fabric predict k2h --transfer srio:nread:4KiB:4x:5G:L2 --format json";

const DATA: &str = "Data: CSV with the header table,row,column,value and, if you know it, error_percent. `table` is a number of the \
guide, or 10gbe; `row` is the first cell of the row as printed; `column` counts the cells after it from 1; `value` is in \
the unit of the table. Transfers of one's own have the header transfer,value and, if you know it, error_percent: the transfer as \
for predict, in quotes where it has commas, and its value in the unit that predict answers in.";

/// Form of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON value.
    Json,
}

/// Form of the answers of `predict`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum SweepFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// Comma-separated values, with a sweep.
    Csv,
    /// A picture, with a sweep.
    Svg,
}

/// Form of an explanation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ExplainFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A picture.
    Svg,
}

/// What SOC means, in every command.
const SOC: &str = "Chip: k2h, k2e, softcore, stm32h743, xupv5, zcu102, or the path of a TOML file";

/// Arguments of `fabric predict`.
#[derive(Args, Debug)]
pub struct Predict {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// A transfer such as edma:TC0:l2.0->msmc:32KiB; repeat it for transfers that run at the same time (--help shows
    /// all kinds)
    #[arg(long, value_name = "TRANSFER", required = true)]
    pub transfer: Vec<Transfer>,

    /// Leave out the time before an EDMA transfer's first byte, as the guide's section 5.2 does
    #[arg(long)]
    pub without_setup: bool,

    /// Follow each burst of EDMA transfers too, and print that rate beside the closed form's (it has no setup)
    #[arg(long)]
    pub engine: bool,

    /// Set a key of the description to another value first, such as clock.ddr=400MHz; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,

    /// Ask at many values of a key, such as clock.ddr=400MHz..800MHz
    #[arg(long, value_name = "KEY=FROM..TO")]
    pub sweep: Option<Sweep>,

    /// Points of the sweep [default: 9]
    #[arg(long, value_name = "N", requires = "sweep")]
    pub points: Option<u32>,

    /// Form of the answer; csv and svg with --sweep
    #[arg(long, value_enum, value_name = "text|json|csv|svg", default_value = "text")]
    pub format: SweepFormat,
}

/// Arguments of `fabric explain`.
#[derive(Args, Debug)]
pub struct Explain {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// The transfer, as for predict
    #[arg(value_name = "TRANSFER")]
    pub transfer: Transfer,

    /// What predict calls it; here it is told where the transfer stands.
    #[arg(long = "transfer", hide = true, value_name = "TRANSFER", value_parser = without_flag)]
    pub flag: Option<String>,

    /// Set a key of the description to another value first; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,

    /// The file to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, value_name = "text|svg", default_value = "text")]
    pub format: ExplainFormat,
}

/// Refuses a flag where the transfer stands alone.
fn without_flag(transfer: &str) -> Result<String, String> {
    Err(format!("expected the transfer without a flag: linerate fabric explain SOC '{transfer}'"))
}

/// Arguments of `fabric mix`.
#[derive(Args, Debug)]
pub struct Mix {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// The flows, as in examples/fabric
    #[arg(value_name = "FLOWS.toml")]
    pub flows: PathBuf,

    /// Set a key of the description to another value first; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,

    /// Form of the answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,
}

/// Arguments of `fabric table`.
#[derive(Args, Debug)]
pub struct Table {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// Number of the table in the guide, or its name: 1 to 26, or 10gbe
    #[arg(value_name = "N")]
    pub table: String,

    /// Guide: keystone2, or the path of a TOML file
    #[arg(long, value_name = "GUIDE", default_value = "keystone2")]
    pub guide: String,

    /// Form of the table
    #[arg(long, value_enum, value_name = "terminal|markdown|csv|json", default_value = "terminal")]
    pub format: GridFormat,
}

/// Arguments of `fabric report`.
#[derive(Args, Debug)]
pub struct Report {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// The file to write
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,

    /// Guide: keystone2, or the path of a TOML file
    #[arg(long, value_name = "GUIDE", default_value = "keystone2")]
    pub guide: String,
}

/// Arguments of `fabric fit`.
#[derive(Args, Debug)]
pub struct Fit {
    #[arg(help = SOC)]
    /// The chip.
    pub soc: String,

    /// Measurements (--help describes the columns)
    #[arg(value_name = "DATA.csv")]
    pub data: Option<PathBuf>,

    /// A measured transfer with its value, such as edma:D0:dram->sram:64KiB=840MB/s; repeatable
    #[arg(long, value_name = "TRANSFER=VALUE")]
    pub transfer: Vec<Measured>,

    /// Predict this transfer with the fitted parameters; repeatable
    #[arg(long, value_name = "TRANSFER")]
    pub predict: Vec<Transfer>,

    /// Predict this cell with the fitted parameters, its interval wide where the data does not decide; repeatable
    #[arg(long, value_name = "TABLE,ROW,COLUMN")]
    pub cell: Vec<CellName>,

    /// Form of the answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,
}

/// Arguments of `fabric audit`.
#[derive(Args, Debug)]
pub struct Audit {
    /// Guide: keystone2, or the path of a TOML file
    #[arg(value_name = "GUIDE.toml")]
    pub guide: String,

    /// Chip whose description the theoretical figures are held against [default: k2h with keystone2, none otherwise]
    #[arg(long, value_name = "SOC")]
    pub soc: Option<String>,

    /// Form of the answer
    #[arg(long, value_enum, value_name = "text|json", default_value = "text")]
    pub format: Format,
}

impl Audit {
    /// The chip to hold the guide against, if any.
    pub fn chip(&self) -> Option<&str> {
        let own = self.guide.eq_ignore_ascii_case("keystone2").then_some("k2h");
        self.soc.as_deref().or(own)
    }
}
