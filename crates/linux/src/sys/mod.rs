//! The system calls that no safe wrapper exists for; every `unsafe` of the devices is in this folder.

pub(crate) mod bpf;
pub(crate) mod fanout;
pub(crate) mod ids;
pub(crate) mod map;
pub(crate) mod packet;
pub(crate) mod rings;
pub(crate) mod socket;
pub(crate) mod tun;
pub(crate) mod xdp;
