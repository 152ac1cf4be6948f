//! The status of a running server: what is counted, what is held, and what limits each connection.
//!
//! Each loop makes a [`Report`](report::Report) when it is asked for one ([`collect`]); a thread of its own asks on behalf
//! of HTTP clients, adds the reports of several loops up ([`together`]) and writes the answer ([`listener`]), as JSON, as metrics ([`openmetrics`]) or as a page ([`page`]).
//! What each figure is called and means is in one table ([`catalogue`]).

pub mod address;
pub mod catalogue;
pub mod collect;
pub mod exchange;
pub mod listener;
pub mod live;
pub mod openmetrics;
pub mod page;
pub mod query;
pub mod rates;
pub mod report;
pub mod request;
pub mod together;
