//! Tests of the guide: what it reads, and what it says where it cannot.
