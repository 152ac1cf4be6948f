//! The stack for C programs: sockets in the BSD manner over devices made of callbacks.
