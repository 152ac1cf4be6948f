//! The `linerate` command: arguments, configuration, the loop that brings the parts together, and what it prints.

mod apart;
pub mod args;
pub mod explain;
pub mod fabric;
pub mod hash_password;
pub mod iperf3;
pub mod lab;
pub mod logging;
mod outlet;
pub mod output;
pub mod serve;
pub mod settings;
pub mod sim;
pub mod status;
pub mod top;
pub mod values;
