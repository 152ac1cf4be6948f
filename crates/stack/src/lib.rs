//! A portable zero-copy TCP/IP engine: time passed in, no clock, no I/O.
//!
//! [`Stack`] takes frames and time and gives frames, events and deadlines; it implements
//! [`Transport`](linerate_transport::Transport) for servers. A frame's way in: `ingress` (Ethernet, VLAN), `arp`,
//! `ipv4` or `ipv6` (with `reassembly`), then `icmp` (with `ndp`), `udp`, or `tcp_input` to a
//! [`tcp::Connection`]. The way out: `transmit` decides the order, `egress` builds the frame. `settle` does what
//! follows from a change of a connection: events, timers, its end.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod addresses;
mod arp;
mod autoconf;
mod bound;
pub mod config;
mod config_check;
mod conns;
pub mod counters;
mod demux;
mod dhcp;
mod dhcp_io;
mod dormancy;
mod egress;
mod ending;
mod fast_open;
mod icmp;
mod ingress;
mod ipv4;
mod ipv6;
mod iss;
mod key_ring;
mod link_state;
mod listener;
mod lists;
pub mod memory;
mod ndp;
mod neighbor;
mod net;
pub mod node;
mod packet;
mod passive;
mod pmtu;
mod ports;
mod prediction;
mod pressure;
mod random;
mod rate;
mod readdress;
mod ready;
mod reassembly;
mod ring;
mod route;
mod rss;
mod settle;
#[cfg(test)]
mod shortcut_tests;
mod slaac;
mod slab;
mod sockets;
mod stack;
mod survey;
mod syn_cookie;
pub mod tcp;
mod tcp_input;
pub mod team;
mod time_wait;
mod timers;
mod transmit;
mod udp;

pub use config::{Cidr, CidrError, StackConfig, TcpOptions};
pub use config_check::ConfigError;
pub use counters::Counters;
pub use memory::{MemoryStats, StackPools};
pub use node::{Node, NodeConfig};
pub use readdress::AddressError;
pub use rss::Rss;
pub use stack::Stack;
pub use team::{Letter, Message, Seat, To};
