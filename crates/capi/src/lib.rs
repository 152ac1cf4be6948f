//! The stack for C programs: sockets in the BSD manner over devices made of callbacks.
//!
//! `include/linerate.h` is made from this crate, with its documentation; `docs/c.md` tells how to use it. The functions
//! are in `api_stack`, `api_socket` and `api_data`; they check what C hands over and leave the work to `Host`.
//!
//! # What may be trusted
//!
//! Pointers are checked for null and lengths for sense; that a pointer points to what its type says is the caller's to
//! keep. Descriptors, options, flags, addresses and whatever a device delivers may be anything. A panic would be a bug;
//! it does not cross into C, but marks the stack as broken: every further call returns -ENOTRECOVERABLE. A call out of a
//! callback into the stack that called it returns -EBUSY.
#![allow(non_camel_case_types, reason = "the names are C's")]

mod address;
mod api_data;
mod api_socket;
mod api_stack;
mod buffers;
mod config;
mod datagram;
mod device;
mod errno;
mod handle;
mod host;
mod info;
mod ip;
mod options;
mod poll;
mod stream;
mod table;

pub use api_data::*;
pub use api_socket::*;
pub use api_stack::*;
pub use config::*;
pub use handle::lr_stack;
pub use host::{LR_TURN_AGAIN, LR_TURN_DEVICE_FULL};
pub use info::lr_tcp_info;

#[cfg(test)]
mod tests;
