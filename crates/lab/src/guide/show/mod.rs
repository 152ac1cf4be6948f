//! The guide for people and for programs: tables, pictures, files.

mod beside;
mod files;
mod page;
mod staircase;
mod tables;

pub use files::{data_file, guide_file, json, records};
pub use page::page;
pub use tables::grids;
