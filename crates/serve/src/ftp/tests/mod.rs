//! Tests of the server as a whole, over an in-memory transport.
