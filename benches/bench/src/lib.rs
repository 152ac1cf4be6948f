//! What our servers reach beside others, and beside a floor that does nothing but move frames.

pub mod chart;
pub mod client;
pub mod control;
pub mod files;
pub mod floor;
pub mod html;
pub mod latency;
pub mod memory;
pub mod page;
pub mod peers;
pub mod profile;
pub mod queues;
pub mod report;
pub mod rows;
pub mod server;
pub mod session;
pub mod spent;
pub mod table;
pub mod verdict;
