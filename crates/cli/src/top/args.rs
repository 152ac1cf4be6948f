//! The command line of `linerate top`.

use crate::status::address::StatusAddress;
use crate::values::{Span, ValueError};
use clap::Args;
use std::time::Duration;

/// Longest time between two looks: the server tells rates since a look that is not much older.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

fn interval(text: &str) -> Result<Span, ValueError> {
    let span: Span = text.parse()?;
    if span.0 > LONGEST_INTERVAL {
        return Err(ValueError::new("a time of up to 10s"));
    }
    Ok(span)
}

/// Arguments of `top`.
#[derive(Args, Debug)]
pub struct Top {
    /// Where the server's status is: what `linerate serve` was given as --status [default: 127.0.0.1:9180]
    #[arg(value_name = "[ADDR:]PORT")]
    pub address: Option<StatusAddress>,

    /// Time between two looks, up to 10s
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = interval)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn parse(interval: &str) -> Result<Duration, String> {
        match Cli::try_parse_from(["linerate", "top", "--interval", interval]) {
            Ok(Cli { command: Command::Top(top), .. }) => Ok(top.interval.0),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn an_interval_for_which_the_server_has_no_rates_is_refused() {
        assert_eq!(parse("10s"), Ok(LONGEST_INTERVAL));
        let error = parse("10001ms").unwrap_err();
        assert!(error.contains("up to 10s"), "{error}");
    }
}
