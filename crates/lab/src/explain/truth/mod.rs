//! Transfers whose limit is known, to judge explanations by: injected causes, and proof that each was what limited.

pub mod accounts;
pub mod cases;
pub mod judge;
pub mod matrix;
pub mod run;
pub mod view;
