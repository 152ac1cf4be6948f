//! The `linerate` command.
