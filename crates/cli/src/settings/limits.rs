//! The `[limits]` table as it takes effect.

use super::{SettingsError, bad};
use crate::args::LimitOptions;

/// Most connections, where they are not left to the defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitSettings {
    /// Of all servers together.
    pub connections: Option<usize>,
    /// Of HTTP from one address.
    pub http_per_address: Option<usize>,
    /// FTP sessions from one address.
    pub ftp_per_address: Option<usize>,
    /// Of iperf3 from one address.
    pub iperf3_per_address: Option<usize>,
}

impl LimitSettings {
    /// What the file says, if it fits.
    pub(super) fn resolve(limits: &LimitOptions) -> Result<LimitSettings, SettingsError> {
        if let Some(count) = limits.connections.filter(|count| !(64..=1 << 20).contains(count)) {
            return Err(bad("limits.connections", count, "64 to 1048576 connections"));
        }
        let most = limits.connections.unwrap_or(1 << 20);
        let per_address = |name, value: Option<usize>| match value {
            Some(count) if !(1..=most).contains(&count) => {
                Err(bad(name, count, format!("1 to {most}, the most connections of all")))
            }
            value => Ok(value),
        };
        Ok(LimitSettings {
            connections: limits.connections,
            http_per_address: per_address("limits.http-per-address", limits.http_per_address)?,
            ftp_per_address: per_address("limits.ftp-per-address", limits.ftp_per_address)?,
            iperf3_per_address: per_address("limits.iperf3-per-address", limits.iperf3_per_address)?,
        })
    }
}
