//! What limited the transfers in a capture, and how one knows.

pub mod cause;
