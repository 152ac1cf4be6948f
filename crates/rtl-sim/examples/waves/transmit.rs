//! The blocks on the way out.

use crate::bench::Bench;
use crate::frames::{ACK, HEADERS, IP, IP_SUM, PSH, TCP, TCP_SUM, pseudo_header, tcp};
use crate::record::{PLAIN, Picture, Sample};
use linerate_rtl_sim::{Dut, SegmentMode, TxUser, UserAt};

/// Shows the checksum fields of 60-byte frames as they pass.
fn checksum_fields(bench: &mut Bench, prefix: &str, name: &str) -> Result<(), String> {
    let port = |name: &str| bench.dut.port(&format!("{prefix}_{name}"));
    let (valid, ready, last, data) = (port("tvalid")?, port("tready")?, port("tlast")?, port("tdata")?);
    let mut beat = 0;
    bench.scope.add(name, move |dut: &Dut| {
        if dut.get(valid) == 0 {
            return Sample::Idle;
        }
        let bytes = dut.get(data).to_le_bytes();
        let field = [IP_SUM, TCP_SUM].into_iter().find(|at| at / 8 == beat);
        if dut.get(ready) != 0 {
            beat = if dut.get(last) != 0 { 0 } else { beat + 1 };
        }
        match field {
            Some(at) => Sample::value(format!("{:02x}{:02x}", bytes[at % 8], bytes[at % 8 + 1]), PLAIN),
            None => Sample::Idle,
        }
    });
    Ok(())
}

/// Two frames whose checksums are filled in.
pub fn csum_tx() -> Result<Picture, String> {
    let mut bench = Bench::open("csum_tx", UserAt::Every)?;
    for seq in [1, 1_000] {
        let mut frame = tcp(80, seq, ACK, 6);
        for at in [IP_SUM, TCP_SUM] {
            frame[at..at + 2].fill(0);
        }
        let user = TxUser {
            csum: 1,
            csum_init: pseudo_header(&frame).folded(),
            csum_begin: TCP as u16,
            csum_insert: TCP_SUM as u16,
            ip_csum: true,
            l3_start: IP as u8,
            ..TxUser::default()
        };
        bench.source.push(frame, user.to_words());
    }
    bench.scope.stream(&bench.dut, "s_axis", &["a", "b"], 0)?;
    checksum_fields(&mut bench, "s_axis", "its checksum fields")?;
    bench.scope.stream(&bench.dut, "m_axis", &["a", "b"], 0)?;
    checksum_fields(&mut bench, "m_axis", "checksums now")?;
    bench.scope.bit(&bench.dut, "event_inserted", 0)?;
    bench.record_frames(2)?;
    for (received, seq) in bench.received.iter().zip([1, 1_000]) {
        if received.data != tcp(80, seq, ACK, 6) {
            return Err("the checksums are not those of the frame".to_owned());
        }
    }
    let mut picture = bench.picture(
        "csum_tx: two frames of 60 bytes are stored, summed, and leave with their checksums",
        &[
            "Bytes 24 and 25 (IPv4 header) in beat 3 and bytes 50 and 51 (TCP) in beat 6 come as 0000.",
            "csum_init has the pseudo-header's sum, csum_begin is 34, csum_insert 50, l3_start 14.",
        ],
    );
    picture.measure(
        ("s_axis_tlast", 0, ""),
        ("m_axis_tvalid", ""),
        "from the last beat in to the first out",
    )?;
    Ok(picture)
}

/// A super-frame of three segments.
pub fn tso() -> Result<Picture, String> {
    const SEGMENT: usize = 80;
    let mut bench = Bench::open("tso", UserAt::Every)?;
    let frame = tcp(80, 1, ACK | PSH, 3 * SEGMENT);
    let user = TxUser {
        seg: SegmentMode::Tcp,
        seg_size: SEGMENT as u16,
        hdr_len: HEADERS as u8,
        l3_start: IP as u8,
        ip_csum: true,
        csum: 1,
        csum_init: pseudo_header(&frame).folded(),
        csum_begin: TCP as u16,
        csum_insert: TCP_SUM as u16,
        ..TxUser::default()
    };
    bench.source.push(frame, user.to_words());
    let scope = &mut bench.scope;
    scope.stream(&bench.dut, "s_axis", &["s"], 3)?;
    scope.bit(&bench.dut, "s_axis_tready", 0)?;
    scope.stream(&bench.dut, "m_axis", &["a", "b", "c"], 0)?;
    scope.bit(&bench.dut, "event_super", 0)?;
    scope.bit(&bench.dut, "event_segment", 0)?;
    bench.record_frames(3)?;
    if bench.received.iter().any(|segment| segment.data.len() != HEADERS + SEGMENT) {
        return Err("a segment of another length".to_owned());
    }
    let mut picture = bench.picture(
        "tso: a super-frame with 240 bytes of payload becomes three segments of 80",
        &[
            "17 beats each, of which 6.75 are headers, and no clock without a beat from the first to the last: the next segment's",
            "headers are made while the payload of the one before leaves. s_axis_tready falls while headers leave, for which nothing",
            "need come in.",
        ],
    );
    picture.measure(("s_axis_tvalid", 0, ""), ("m_axis_tvalid", ""), "until the first beat")?;
    let first = picture.row("m_axis_tvalid")?.rises(0).unwrap_or(0);
    let end = picture.row("m_axis_tdata")?.shows(first, "c16").ok_or("the third segment does not end")?;
    let row = picture.row("m_axis_tvalid")?;
    if row.samples[first..=end].contains(&Sample::Bit(false)) {
        return Err("a clock without data between segments".to_owned());
    }
    picture.measure(
        ("m_axis_tvalid", first, ""),
        ("m_axis_tdata", "c16"),
        "from the first beat to the last of 51",
    )?;
    // The start, and from each segment to the next.
    let boundary = |segment: usize| first + 17 * segment - 4..first + 17 * segment + 5;
    picture.windows = vec![0..11, first - 2..first + 4, boundary(1), boundary(2), end - 3..end + 3];
    Ok(picture)
}
