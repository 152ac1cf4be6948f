//! A deterministic network in memory: a virtual clock, links with faults, and hosts. One seed replays everything.
#![forbid(unsafe_code)]
