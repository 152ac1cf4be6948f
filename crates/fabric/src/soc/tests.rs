//! Tests of chip files: what loads, and where what does not is refused.
