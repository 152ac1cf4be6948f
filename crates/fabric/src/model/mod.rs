//! The guide's tables as questions to a chip, and the parameters of memories and EDMA that measurements decide.
//!
//! The set-ups of the tables (which controller moves what between which memories) are those of the guide's text; the
//! answers come from the same functions that any other question uses. Tables of links are asked of the links.

pub mod accuracy;
pub mod ensemble;
mod free;
mod levels;
pub mod mixture;
pub mod part;
pub mod predictions;
pub mod sentences;
mod slot;
pub mod tables;
#[cfg(test)]
mod tests;
