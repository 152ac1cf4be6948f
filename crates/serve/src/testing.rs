//! In-memory transport and files for the tests of the servers.
