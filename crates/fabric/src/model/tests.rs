//! Tests of the guide against the chip.
