//! `memory-queues requests|connections|bytes one|two|apart SECONDS`: what queues in memory do, as a line of JSON.

use anyhow::{Context, Result, bail};
use bench::queues::{self, Queues, Work};
use std::time::Duration;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [work, queues, seconds] = args.as_slice() else {
        bail!("expected: requests|connections|bytes one|two|apart SECONDS");
    };
    let work = Work::of(work).with_context(|| format!("'{work}' is no work"))?;
    let queues = Queues::of(queues).with_context(|| format!("'{queues}' is no number of queues"))?;
    let seconds = seconds.parse().with_context(|| format!("'{seconds}' are no seconds"))?;
    println!("{}", serde_json::to_string(&queues::run(work, queues, Duration::from_secs(seconds))?)?);
    Ok(())
}
