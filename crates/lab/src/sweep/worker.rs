//! A worker of a sweep: items in by lines of JSON, rows out by lines of JSON, until the input ends.

use super::plan::Plan;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};

/// What a worker says first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// The sweep that it read: [`Plan::digest`].
    pub ready: u64,
}

/// What it is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Items to work on, in this order.
    pub items: Vec<u64>,
}

/// What it says of each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// The item.
    pub item: u64,
    /// Its line of CSV.
    pub row: String,
}

/// Works until the input ends. Each row goes out at once, so that whoever reads them knows which item is worked on.
///
/// # Errors
/// Lines that cannot be read or written, and lines that are no orders.
pub fn serve(plan: &Plan, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    say(&mut output, &Ready { ready: plan.digest })?;
    for line in input.lines() {
        let order: Order = serde_json::from_str(&line?)?;
        for item in order.items.into_iter().filter(|item| *item < plan.items()) {
            say(&mut output, &Done { item, row: plan.run(item) })?;
        }
    }
    Ok(())
}

/// Writes a line.
pub fn say(output: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    output.flush()
}
