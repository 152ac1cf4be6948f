//! The workloads of the source documents, and what must always hold.
