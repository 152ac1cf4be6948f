//! Sweeps: the same question to many worlds or chips, by processes that may die and go on.
//!
//! A sweep is a list of items: a point of the axes and a seed. What comes of an item depends on the file and its number alone,
//! so it does not matter which process works on it, when, or how often.

pub mod axis;
pub mod cell;
pub mod coordinator;
pub mod done;
pub mod effects;
pub mod file;
pub mod heat;
pub mod journal;
pub mod parquet;
pub mod plan;
pub mod report;
pub mod sample;
pub mod subject;
pub mod table;
pub mod worker;
