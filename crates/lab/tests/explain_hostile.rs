//! No bytes make an explanation panic or run for ever: captures that are cut, damaged, or nothing of the kind.

use linerate_lab::explain::error::ExplainError;
use linerate_lab::explain::truth::{cases, run};
use linerate_lab::explain::{Analysis, analyse, text};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Captures of every kind: whole and cut frames, super-frames, one direction, both families.
static CAPTURES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let small = |capture: &Vec<u8>| capture.len() < 1_000_000;
    let captures: Vec<Vec<u8>> =
        cases::cases().unwrap().iter().map(|case| run::run(case).capture).filter(small).collect();
    assert!(captures.len() >= 10, "{}", captures.len());
    captures
});

/// The same as pcap in microseconds, of packets with these link types.
fn pcap(link: u32, packets: &[&[u8]], cut: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        let kept = packet.len().min(cut);
        for word in [number as u32, 0, kept as u32, packet.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet[..kept]);
    }
    file
}

fn explained(bytes: &[u8]) -> Result<Analysis, ExplainError> {
    let result = analyse(bytes);
    if let Ok(analysis) = &result {
        // The forms, too, must stand anything.
        let _text = text::text(analysis, 3, None, None);
        serde_json::to_string(analysis).unwrap();
    }
    result
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    let check = |bytes: &[u8], says: &str| {
        let error = explained(bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    check(b"", "the file is empty");
    check(b"GET / HTTP/1.1\r\n", "47 45 54 20; expected pcap");
    check(&[0x0a, 0x0d, 0x0d, 0x0a], "at byte 0");
    check(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], "at byte 0");
    let mut long = pcap(1, &[&[0; 60]], 60);
    long[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    check(&long, "at byte 24");
    // A packet of an interface that nobody described.
    let mut foreign = CAPTURES[0][..].to_vec();
    let block = foreign.windows(8).position(|word| word[..4] == [6, 0, 0, 0] && word[6..] == [0, 0]).unwrap();
    foreign[block + 8] = 7;
    check(&foreign, "interface 7, which the section does not describe");
}

#[test]
fn a_file_that_ends_early_is_read_as_far_as_it_goes() {
    let whole = &CAPTURES[0];
    let frames = explained(whole).unwrap().frames;
    let cut = explained(&whole[..whole.len() - 7]).unwrap();
    assert_eq!(cut.frames, frames - 1);
    let offset = cut.ends_within.unwrap();
    assert!(cut.notes()[0].contains(&format!("at byte {offset}")), "{:?}", cut.notes());
    assert!((offset as usize) < whole.len() - 7);
}

#[test]
fn link_headers_of_all_kinds_hold_the_same_segment() {
    // IPv4, 192.0.2.1 to 192.0.2.2, TCP 1000 to 80, ten bytes of data.
    let mut ip = vec![0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    ip.extend_from_slice(&[3, 0xe8, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    ip.extend_from_slice(b"0123456789");
    let before = |head: &[u8]| [head, &ip[..]].concat();
    let ethernet = [&[2; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
    let cooked = [0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0];
    let cooked2 = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 2, 2, 2, 2, 2, 0, 0];
    for (link, packet) in [
        (1, before(&ethernet)),
        (0, before(&[2, 0, 0, 0])),
        (108, before(&[0, 0, 0, 2])),
        (101, ip.clone()),
        (228, ip.clone()),
        (113, before(&cooked)),
        (276, before(&cooked2)),
    ] {
        for cut in [packet.len(), packet.len() - 10] {
            let analysis = explained(&pcap(link, &[&packet], cut)).unwrap();
            let connection =
                analysis.connections.first().unwrap_or_else(|| panic!("link type {link}: {analysis:?}"));
            assert_eq!(connection.client.to_string(), "192.0.2.1:1000", "{link}");
            assert_eq!(connection.directions[0].bytes, 10, "{link}, {cut} bytes kept");
        }
    }
    let analysis = explained(&pcap(147, &[&ip], 100)).unwrap();
    assert!(analysis.notes()[0].contains("link type 147"), "{:?}", analysis.notes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_captures_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = which.get(&CAPTURES).clone();
        // Half of the damage falls on the front, where the headers are.
        let front = bytes.len().min(2_000);
        for (index, (place, value)) in damage.into_iter().enumerate() {
            let len = if index % 2 == 0 { front } else { bytes.len() };
            bytes[place.index(len)] = value;
        }
        let end = cut.index(bytes.len()) + 1;
        let _refused = explained(&bytes[..end]);
        let start = from.index(bytes.len());
        let _refused = explained(&bytes[start..]);
    }

    #[test]
    fn random_bytes_behind_a_magic_are_read_or_refused(
        magic in prop::sample::select(vec![[0x0a, 0x0d, 0x0d, 0x0a], [0xd4, 0xc3, 0xb2, 0xa1], [0xa1, 0xb2, 0x3c, 0x4d]]),
        rest in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let _refused = explained(&[&magic[..], &rest].concat());
    }

    #[test]
    fn random_packets_are_taken_as_they_are(
        link in prop::sample::select(vec![0_u32, 1, 101, 108, 113, 276]),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..20),
    ) {
        let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
        let analysis = explained(&pcap(link, &packets, 100)).unwrap();
        prop_assert_eq!(analysis.frames, packets.len() as u64);
    }

    #[test]
    fn any_sequence_of_segments_is_followed(
        segments in prop::collection::vec((any::<bool>(), any::<u8>(), 0_u32..6_000, 0_u32..6_000, 0_u16..3_000, 0_u16..3_000), 1..200),
        base in any::<u32>(),
    ) {
        let mut frames = Vec::new();
        for (back, flags, seq, ack, window, len) in segments {
            let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
            ip[2..4].copy_from_slice(&(40 + len).to_be_bytes());
            let mut tcp = vec![3, 0xe8, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0];
            tcp[4..8].copy_from_slice(&base.wrapping_add(seq).to_be_bytes());
            tcp[8..12].copy_from_slice(&base.wrapping_add(ack).to_be_bytes());
            tcp[14..16].copy_from_slice(&window.to_be_bytes());
            if back {
                ip[15] = 2;
                ip[19] = 1;
                tcp[..4].copy_from_slice(&[0, 80, 3, 0xe8]);
            }
            frames.push([ip, tcp].concat());
        }
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let analysis = explained(&pcap(101, &frames, 40)).unwrap();
        prop_assert_eq!(analysis.segments, frames.len() as u64);
    }
}

/// A pcapng file with an interface whose times have this resolution, and two frames so many of its steps apart.
fn pcapng(resolution: u8, steps: u64) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &len, body, &len].concat()
    };
    let mut section = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    section.extend([0xff; 8]);
    let interface = [&[101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution][..], &[0; 7]].concat();
    let mut file = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    for at in [0, steps] {
        let mut packet = vec![0; 4];
        packet.extend(((at >> 32) as u32).to_le_bytes());
        packet.extend((at as u32).to_le_bytes());
        packet.extend([
            20, 0, 0, 0, 20, 0, 0, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 1, 2, 3, 5,
        ]);
        file.extend(block(6, &packet));
    }
    file
}

#[test]
fn times_of_any_resolution_are_read() {
    for (resolution, steps, time_s) in
        [(6, 2_500_000, 2.5), (9, 7, 7e-9), (0, 3, 3.0), (0x80 | 20, 1 << 19, 0.5), (0x80 | 10, 3 << 10, 3.0)]
    {
        let analysis = explained(&pcapng(resolution, steps)).unwrap();
        assert!((analysis.time_s - time_s).abs() < 1e-9, "{resolution}: {} s", analysis.time_s);
        assert_eq!(analysis.coarse.len(), usize::from(matches!(resolution, 0 | 0x8a)), "{resolution}");
    }
    for none in [20, 0x7f, 0xff] {
        assert!(explained(&pcapng(none, 1)).unwrap_err().to_string().contains("resolution"), "{none}");
    }
}

#[test]
fn what_is_odd_about_a_file_is_said() {
    let check = |bytes: &[u8], says: &str| {
        let notes = explained(bytes).unwrap().notes().join("; ");
        assert!(notes.contains(says), "{notes}");
    };
    check(&pcap(1, &[], 60), "no TCP segment");
    let mut backwards = pcapng(6, 0);
    let len = backwards.len();
    // The time of the first of two blocks of 52 bytes.
    backwards[len - 104 + 16] = 9;
    check(&backwards, "1 frames are older");
    let packed = explained(&[0x1f, 0x8b, 8, 0, 0, 0]).unwrap_err().to_string();
    assert!(packed.contains("gzip") && packed.contains("zcat"), "{packed}");
}
