//! The columns of the table of connections, for the view and for plain text alike.

use crate::status::report::Conn;
use linerate_lab::quantity::{bytes, count, rate, span};
use std::time::Duration;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What stands above it.
    pub title: &'static str,
    /// Its width in characters; the last column takes what is left.
    pub width: u16,
    /// Whether it is flush right.
    pub is_number: bool,
    /// The least width of the whole table at which it is shown.
    pub from: u16,
    /// What stands in it.
    pub value: fn(&Conn) -> String,
}

const fn column(
    title: &'static str,
    width: u16,
    is_number: bool,
    from: u16,
    value: fn(&Conn) -> String,
) -> Column {
    Column { title, width, is_number, from, value }
}

/// All columns.
pub const COLUMNS: [Column; 10] = [
    column("client", 21, false, 0, |conn| conn.remote.clone()),
    column("server", 7, false, 70, |conn| conn.server.clone()),
    column("state", 12, false, 120, |conn| conn.state.clone()),
    column("in", 12, true, 60, |conn| rate_or_dash(conn.receive_rate)),
    column("out", 12, true, 0, |conn| rate_or_dash(conn.send_rate)),
    column("round trip", 10, true, 92, |conn| {
        let rtt = conn.rtt.and_then(|rtt| Duration::try_from_secs_f64(rtt).ok());
        rtt.map_or("-".to_owned(), span)
    }),
    column("cwnd", 9, true, 140, |conn| bytes(u64::from(conn.cwnd))),
    column("again", 8, true, 82, |conn| count(conn.retransmits)),
    column("memory", 9, true, 130, |conn| bytes(conn.memory)),
    column("limited by", 10, false, 0, |conn| conn.bottleneck.clone()),
];

fn rate_or_dash(bps: f64) -> String {
    if bps > 0.0 { rate(bps) } else { "-".to_owned() }
}

/// The columns that a table of this width has.
pub fn shown(width: u16) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(move |column| width >= column.from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_where_it_is_shown() {
        for width in [45, 60, 70, 82, 92, 120, 130, 140] {
            let taken: u16 = shown(width).map(|column| column.width + 1).sum();
            assert!(taken - 1 <= width, "{taken} of {width}");
        }
        assert_eq!(shown(40).map(|column| column.title).collect::<Vec<_>>(), ["client", "out", "limited by"]);
        assert_eq!(shown(200).count(), COLUMNS.len());
    }
}
