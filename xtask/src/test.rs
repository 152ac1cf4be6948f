//! Every test: units and properties of all crates, then real clients against the release binary.

use crate::{packages, shell};
use anyhow::Result;

/// What the end-to-end tests run.
const CLIENTS: [&str; 14] = [
    "iproute2",
    "iputils-ping",
    "procps",
    "ethtool",
    "curl",
    "wget",
    "lftp",
    "iperf3",
    "python3",
    "tcpdump",
    "wrk",
    "apache2-utils",
    "binutils",
    "dnsmasq-base",
];

/// Runs all tests, or the end-to-end tests whose name contains `filter`.
pub fn run(filter: Option<&str>) -> Result<()> {
    packages::require(&CLIENTS)?;
    if filter.is_none() {
        shell::run(shell::cargo().args(["test", "--workspace", "--quiet"]))?;
    }
    // One at a time: they share two cores, and several of them move gigabytes.
    let mut e2e = shell::cargo();
    e2e.args(["test", "--release", "--package", "linerate-cli", "--test", "e2e", "--"]);
    e2e.arg("--test-threads=1").args(filter);
    shell::run(&mut e2e)
}
