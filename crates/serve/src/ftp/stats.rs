//! Counters: what was served, and each thing that was refused by its reason.

/// Counters since the start. They only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Control connections taken as sessions.
    pub sessions: u64,
    /// Control connections refused because the server was full.
    pub refused_full: u64,
    /// Control connections refused because their address had too many.
    pub refused_address: u64,
    /// Logins, anonymous ones included.
    pub logins: u64,
    /// Wrong passwords.
    pub login_failures: u64,
    /// Sessions ended after too many wrong passwords.
    pub login_ends: u64,
    /// Commands carried out.
    pub commands: u64,
    /// Lines that were no command.
    pub unknown_commands: u64,
    /// Sessions ended for too many unknown commands before login.
    pub unknown_ends: u64,
    /// Lines beyond the limit, thrown away.
    pub overlong_lines: u64,
    /// Sessions ended because the client spoke HTTP.
    pub http_ends: u64,
    /// Data addresses (PORT, EPRT) that were not the client's own or had a reserved port.
    pub bounces_refused: u64,
    /// Connections to a passive port from somebody else, reset.
    pub foreign_data: u64,
    /// Data connections that did not come about in time, or were refused.
    pub data_open_failures: u64,
    /// Paths that led above the root.
    pub above_root: u64,
    /// Sessions ended for silence.
    pub idle_ends: u64,
    /// Transfers ended for lack of progress.
    pub stalls: u64,
    /// Transfers and listings completed.
    pub transfers: u64,
    /// Transfers and listings that did not complete, for whatever reason.
    pub failed_transfers: u64,
    /// Bytes sent on data connections.
    pub bytes_sent: u64,
    /// Bytes received on data connections.
    pub bytes_received: u64,
    /// Names left out of listings because they have control characters.
    pub unfit_names: u64,
    /// File operations that had to wait because too many were under way.
    pub deferred_operations: u64,
}
