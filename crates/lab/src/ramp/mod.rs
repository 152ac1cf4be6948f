//! A ramp: load on a server at rising rates, until it is saturated and beyond; where its curve bends, and who was the limit.
//!
//! The load is [`crate::load`]. Levels are chosen by [`search`], judged by [`limit`], and the knee is found by [`knee`].

pub mod curve;
pub mod knee;
pub mod level;
pub mod limit;
pub mod page;
pub mod picture;
pub mod probe;
pub mod record;
pub mod run;
pub mod search;
pub mod seed;
pub mod table;
pub mod watch;
