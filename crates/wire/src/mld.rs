//! Multicast listener discovery: writing version 2 reports (RFC 3810 section 5.2), so that switches which snoop let
//! neighbour solicitations through.

use crate::bytes::Writer;
use crate::error::{EmitError, Field};
use crate::icmpv6;
use core::net::Ipv6Addr;

/// ff02::16, where reports go.
pub const REPORT_DESTINATION: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// Hop limit of every report.
pub const HOP_LIMIT: u8 = 1;

const REPORT: u8 = 143;

/// What a record says of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecordKind(pub u8);

impl RecordKind {
    /// Answer to a query: we listen to all sources.
    pub const MODE_IS_EXCLUDE: RecordKind = RecordKind(2);
    /// We leave the group.
    pub const CHANGE_TO_INCLUDE: RecordKind = RecordKind(3);
    /// We join the group, with all sources.
    pub const CHANGE_TO_EXCLUDE: RecordKind = RecordKind(4);
}

/// One group of a report, without sources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// What is said.
    pub kind: RecordKind,
    /// The group.
    pub group: Ipv6Addr,
}

/// Bytes that a report of `records` groups takes.
pub const fn report_len(records: usize) -> usize {
    records.saturating_mul(20).saturating_add(8)
}

/// Writes a report with its checksum to the front of `out` and returns its length. It goes from `source`, a link-local
/// address or the unspecified one, to [`REPORT_DESTINATION`], with [`HOP_LIMIT`], behind
/// [`ROUTER_ALERT_MLD`](crate::ipv6::ROUTER_ALERT_MLD).
///
/// # Errors
///
/// `out` is shorter than [`report_len`]; more than 65,535 records.
pub fn emit_report(records: &[Record], source: Ipv6Addr, out: &mut [u8]) -> Result<usize, EmitError> {
    let count =
        u16::try_from(records.len()).map_err(|_| EmitError::invalid(Field::MldRecordCount, records.len()))?;
    let mut out = Writer::new(out);
    out.put(&[REPORT, 0, 0, 0, 0, 0])?;
    out.put16(count)?;
    for record in records {
        out.put(&[record.kind.0, 0, 0, 0])?;
        out.put(&record.group.octets())?;
    }
    let message = out.finish();
    icmpv6::fill_checksum(source, REPORT_DESTINATION, message);
    Ok(message.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6::solicited_node;

    #[test]
    fn a_report_of_two_groups() {
        let source = "fe80::4".parse().expect("an address");
        let group = solicited_node("fd00:6c72::4".parse().expect("an address"));
        let records = [
            Record { kind: RecordKind::CHANGE_TO_EXCLUDE, group },
            Record { kind: RecordKind::CHANGE_TO_INCLUDE, group: REPORT_DESTINATION },
        ];
        let mut out = [0xee; 50];
        assert_eq!(emit_report(&records, source, &mut out), Ok(48));
        assert_eq!(report_len(2), 48);
        assert_eq!((out[0], &out[4..12]), (143, &[0, 0, 0, 2, 4, 0, 0, 0][..]));
        assert_eq!(out[12..28], group.octets());
        assert_eq!(out[28..32], [3, 0, 0, 0]);
        assert!(icmpv6::verify_checksum(source, REPORT_DESTINATION, &out[..48]));
        for len in 0..48 {
            assert!(emit_report(&records, source, &mut out[..len]).is_err());
        }
    }
}
