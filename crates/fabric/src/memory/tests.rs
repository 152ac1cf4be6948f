//! Tests of reads by cores.
