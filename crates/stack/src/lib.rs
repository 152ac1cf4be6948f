//! A portable zero-copy TCP/IP engine: time passed in, no clock, no I/O.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod tcp;
