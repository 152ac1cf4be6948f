//! Whole-system attacks: a host under attack, a bystander that transfers data with it, newcomers, and an attacker, at
//! one switch. Every attack must leave the bystander 80 % of what is fair, let newcomers in, be counted, and leave
//! nothing behind.
//!
//! **Fair.** The attack's packets take the same cable as the bystander's data. A flood of 200,000 SYNs a second of 98
//! bytes on the wire is 157 Mb/s, and no host can give these back. So the bystander's share is its goodput during the
//! attack over its goodput without, times the part of the cable that the attack leaves: for an upload, what the attacker's
//! packets do not take of the cable to the victim; for a download, what the victim's answers to the attacker do not take of
//! the cable from it. A share above 100 % says that the attack lost more packets in the switch than the bystander.
//!
//! **Work.** Virtual time charges for what it is told: here, a microsecond for each packet that the victim takes or
//! sends and 100 ns for each kilobyte, about twice what was measured for SYNs (`cargo run --release -p linerate-stack --example
//! syn_flood`). That nothing is allocated for a SYN is shown in `crates/stack/tests/allocations.rs`.
//!
//! `cargo test --release -p linerate-sim --test attacks -- --nocapture` prints a row for each attack and each direction of
//! the bystander's data: attack, direction, packets, share of the cable that the attack takes, answers, goodput without
//! and with the attack in Mb/s, the bystander's share, most connections, most memory in KiB, fewest free receive buffers,
//! the slowest newcomer in ms, and what was counted. The table with defences is in `docs/attacks.md`.

mod addresses;
mod arena;
mod blind;
mod crowd;
mod fragments;
mod frames;
mod icmp;
mod neighbours;
mod options;
mod script;
mod server;
mod squatters;
mod syn_flood;
