//! Counters: what was served, and each thing that was refused by its reason.

linerate_wire::figures! {
    /// Counters since the start. They only grow.
    pub struct Stats {
        /// Control connections taken as sessions.
        sessions,
        /// Control connections refused because the server was full.
        refused_full [drop],
        /// Control connections refused because their address had too many.
        refused_address [drop],
        /// Control connections refused because half of those of their address wait for the answer to a wrong password.
        refused_guessers [drop],
        /// Sessions ended because newcomers needed their place: those that waited longest.
        gave_way,
        /// Logins, anonymous ones included.
        logins,
        /// Wrong passwords.
        login_failures,
        /// Sessions ended after too many wrong passwords.
        login_ends,
        /// Commands carried out.
        commands,
        /// Lines that were no command.
        unknown_commands,
        /// Sessions ended for too many unknown commands before login.
        unknown_ends,
        /// Lines beyond the limit, thrown away.
        overlong_lines [drop],
        /// Sessions ended because the client spoke HTTP.
        http_ends,
        /// Data addresses (PORT, EPRT) that were not the client's own or had a reserved port.
        bounces_refused [drop],
        /// Connections to a passive port from somebody else, reset.
        foreign_data [drop],
        /// Data connections that did not come about in time, or were refused.
        data_open_failures,
        /// Paths that led above the root.
        above_root,
        /// Sessions ended for silence.
        idle_ends,
        /// Transfers ended for lack of progress.
        stalls [drop],
        /// Transfers and listings completed.
        transfers,
        /// Transfers and listings that did not complete, for whatever reason.
        failed_transfers [drop],
        /// Bytes sent on data connections.
        bytes_sent [bytes],
        /// Bytes received on data connections.
        bytes_received [bytes],
        /// Names left out of listings because they have control characters.
        unfit_names,
        /// File operations that had to wait because too many were under way.
        deferred_operations,
    }
}
