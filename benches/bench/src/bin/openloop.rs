//! The client of the latency rows: `openloop ADDRESS:PORT PATH CONNECTIONS RATE SECONDS`; prints JSON.

use anyhow::{Result, bail};
use bench::latency::{self, Load};
use std::time::Duration;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, connections, rate, seconds] = args.as_slice() else {
        bail!("server, path, connections, rate and seconds");
    };
    let load = Load {
        server: server.parse()?,
        path: path.clone(),
        connections: connections.parse()?,
        rate: rate.parse()?,
        time: Duration::from_secs_f64(seconds.parse()?),
    };
    println!("{}", serde_json::to_string(&latency::run(&load)?)?);
    Ok(())
}
