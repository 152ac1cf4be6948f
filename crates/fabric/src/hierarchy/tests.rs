//! Tests of loads and stores through caches.
