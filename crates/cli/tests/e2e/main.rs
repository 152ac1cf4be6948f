//! Real clients against the release binary, in network namespaces that each test makes and removes.
//!
//! Run by `cargo xtask test [FILTER]`, as root. Nothing touches the host's own network.

mod browser;
mod data;
mod ending;
mod explain;
mod fast_open;
mod ftp;
mod http;
mod iperf3;
mod iperf3_client;
mod lab;
mod lab_offloads;
mod lab_ramp;
mod ladder;
mod life;
mod load;
mod lockout;
mod memory;
mod page;
mod ping;
mod privileges;
mod queues;
mod record;
mod relay;
mod rtl;
mod status;
mod uploads;
mod xdp;
