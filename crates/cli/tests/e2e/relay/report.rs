//! What came of all worlds together.

use super::device::FlowStats;
use super::world::Verdict;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A world that went wrong.
pub struct Fault {
    /// Its seed.
    pub seed: u64,
    /// What happened.
    pub what: String,
}

/// Sums over worlds.
#[derive(Default)]
pub struct Report {
    worlds: u64,
    completed: u64,
    aborted: u64,
    ended: BTreeMap<String, u64>,
    bytes: u64,
    retransmits: (u64, u64),
    flows: FlowStats,
    /// Frames whose checksum was found wrong by us.
    pub checksum_drops: u64,
    /// Frames for which we had no buffer.
    pub starved: u64,
    worst: (Duration, u64),
    /// What went wrong.
    pub faults: Vec<Fault>,
}

/// What one world adds.
pub struct Entry {
    /// Its seed.
    pub seed: u64,
    /// How it came out.
    pub verdict: Verdict,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Segments sent again by us and by the kernel.
    pub retransmits: (u64, u64),
    /// What its frames suffered.
    pub flow: FlowStats,
    /// How long it took.
    pub duration: Duration,
}

impl Report {
    /// Adds a world.
    pub fn add(&mut self, entry: Entry) {
        self.worlds += 1;
        match entry.verdict {
            Verdict::Completed => self.completed += 1,
            Verdict::Aborted => self.aborted += 1,
            Verdict::Ended(reason) => *self.ended.entry(format!("{reason:?}")).or_default() += 1,
            Verdict::Fault(what) => self.faults.push(Fault { seed: entry.seed, what }),
        }
        self.bytes += entry.bytes;
        self.retransmits.0 += entry.retransmits.0;
        self.retransmits.1 += entry.retransmits.1;
        self.flows.add(entry.flow);
        self.worst = self.worst.max((entry.duration, entry.seed));
    }

    /// Adds what another laboratory reports.
    pub fn merge(&mut self, other: Report) {
        self.worlds += other.worlds;
        self.completed += other.completed;
        self.aborted += other.aborted;
        for (reason, count) in other.ended {
            *self.ended.entry(reason).or_default() += count;
        }
        self.bytes += other.bytes;
        self.retransmits.0 += other.retransmits.0;
        self.retransmits.1 += other.retransmits.1;
        self.flows.add(other.flows);
        self.checksum_drops += other.checksum_drops;
        self.starved += other.starved;
        self.worst = self.worst.max(other.worst);
        self.faults.extend(other.faults);
    }
}

impl FlowStats {
    fn add(&mut self, other: FlowStats) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.too_big += other.too_big;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = &self.flows;
        writeln!(f, "worlds            {}", self.worlds)?;
        writeln!(f, "  completed       {}", self.completed)?;
        writeln!(f, "  broken off      {}", self.aborted)?;
        for (reason, count) in &self.ended {
            writeln!(f, "  ended {reason:<10}{count}")?;
        }
        writeln!(f, "  faults          {}", self.faults.len())?;
        writeln!(f, "bytes received    {}", self.bytes)?;
        writeln!(f, "frames            {}", flows.frames)?;
        writeln!(f, "  lost            {}", flows.lost)?;
        writeln!(
            f,
            "  corrupted       {} (wrong checksums seen by us {})",
            flows.corrupted, self.checksum_drops
        )?;
        writeln!(f, "  duplicated      {}", flows.duplicated)?;
        writeln!(f, "  overtaken       {}", flows.reordered)?;
        writeln!(f, "  too big         {}", flows.too_big)?;
        writeln!(f, "  no buffer       {}", self.starved)?;
        writeln!(f, "retransmissions   {} by us, {} by the kernel", self.retransmits.0, self.retransmits.1)?;
        write!(f, "longest world     {:.1} s (seed {})", self.worst.0.as_secs_f64(), self.worst.1)
    }
}
