//! Traces of runs for Perfetto: packets, turns, interrupts and queues on one clock, that of the capture of the same run.

pub mod sheet;
pub mod simulated;
