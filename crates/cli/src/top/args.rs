//! The command line of `linerate top`.

use crate::status::address::StatusAddress;
use crate::values::Span;
use clap::Args;

/// Arguments of `top`.
#[derive(Args, Debug)]
pub struct Top {
    /// Where the server's status is: what `linerate serve` was given as --status [default: 127.0.0.1:9180]
    #[arg(value_name = "[ADDR:]PORT")]
    pub address: Option<StatusAddress>,

    /// Time between two looks
    #[arg(short, long, value_name = "TIME", default_value = "1s")]
    pub interval: Span,

    /// Most connections to show, up to 1000
    #[arg(short, long, value_name = "COUNT", default_value_t = 200,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,

    /// Look twice, print plain text and end; so without a terminal too
    #[arg(long)]
    pub once: bool,

    /// Look twice, print the report as JSON and end
    #[arg(long, conflicts_with = "once")]
    pub json: bool,
}
