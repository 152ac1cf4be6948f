//! What captures hold, by how they were made.

use super::*;
use crate::explain::reader::{Frame as Read, frames};
use crate::explain::segment::{Held, held};
use crate::explain::truth::cases::Case;
use crate::explain::truth::run::run;
use crate::scenario::load::parse;
use linerate_wire::tcp::Options;

const UPLOAD: &str = r#"
    link = { rate = "1 Gbit/s", delay = "200 us", queue = "64 KiB" }
    flow = [{ from = "client", bytes = "300 KiB" }]"#;

/// What there is to know of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Known {
    len: usize,
    kept: usize,
    payload: usize,
    is_data: bool,
    options: Options,
    flags: Flags,
}

fn known(frame: &Read<'_>) -> Known {
    let ethernet = Ethernet::parse(frame.data).unwrap();
    let (from, bytes) = match ethernet.ether_type() {
        EtherType::IPV4 => {
            let header = ipv4::Header::parse_quoted(ethernet.payload()).unwrap();
            assert!(header.verify_checksum());
            assert_eq!(usize::from(header.total_len()), frame.len as usize - ethernet.header_len());
            (header.source().octets()[3], header.payload())
        }
        _ => {
            let header = ipv6::Header::parse_quoted(ethernet.payload()).unwrap();
            let len = frame.len as usize - ethernet.header_len() - ipv6::HEADER_LEN;
            assert_eq!(usize::from(header.payload_len()), len);
            (header.source().octets()[15], header.payload())
        }
    };
    let tcp = Tcp::parse(bytes).unwrap();
    let head = frame.data.len() - bytes.len() + tcp.header_len();
    Known {
        len: frame.len as usize,
        kept: frame.data.len(),
        payload: frame.len as usize - head,
        is_data: from == 1,
        options: tcp.options(),
        flags: tcp.flags(),
    }
}

/// The frames of TCP of a capture of this scenario.
fn capture(scenario: &str, view: View) -> Vec<Known> {
    let case = Case {
        cause: crate::explain::cause::Cause::Unknown,
        name: String::new(),
        held_out: false,
        view,
        scenario: parse(scenario).unwrap(),
    };
    let mut found = Vec::new();
    let mut last = 0;
    frames(&run(&case).capture[..], &mut |frame| {
        assert!(frame.at_ns >= last);
        last = frame.at_ns;
        if matches!(held(frame), Held::Segment(_)) {
            found.push(known(frame));
        }
    })
    .unwrap();
    found
}

fn payload(frames: &[Known]) -> usize {
    frames.iter().filter(|frame| frame.is_data).map(|frame| frame.payload).sum()
}

#[test]
fn super_frames_hold_the_same_bytes_in_fewer_frames() {
    for end in [End::Sender, End::Receiver] {
        for ip in ["", "\nworld.ip = 6"] {
            let scenario = format!("{UPLOAD}{ip}");
            let plain = capture(&scenario, View { end, ..View::default() });
            let joined = capture(&scenario, View { end, super_frames: true, ..View::default() });
            assert_eq!(payload(&plain), payload(&joined), "{end:?} {ip}");
            assert!(joined.len() * 2 < plain.len(), "{end:?} {ip}: {} of {}", joined.len(), plain.len());
            let longest = joined.iter().map(|frame| frame.len).max().unwrap();
            assert!((10_000..=LARGEST_PACKET + 14).contains(&longest), "{longest}");
            assert!(plain.iter().all(|frame| frame.len <= 1_514));
        }
    }
}

#[test]
fn a_view_keeps_what_it_says() {
    let whole = capture(UPLOAD, View::default());
    let check = |view: View, holds: &dyn Fn(&Known) -> bool, share: (f64, f64)| {
        let frames = capture(UPLOAD, view);
        assert!(frames.iter().all(holds), "{view:?}");
        let found = frames.len() as f64 / whole.len() as f64;
        assert!((share.0..=share.1).contains(&found), "{view:?}: {found}");
    };
    let all = (1.0, 1.0);
    check(View { snap: Some(96), ..View::default() }, &|frame| frame.kept == frame.len.min(96), all);
    check(View { direction: Direction::Data, ..View::default() }, &|frame| frame.is_data, (0.5, 0.9));
    check(View { direction: Direction::Acks, ..View::default() }, &|frame| !frame.is_data, (0.1, 0.5));
    check(View { missing: 0.2, ..View::default() }, &|_| true, (0.7, 0.9));
}

#[test]
fn options_of_tcp_that_a_host_does_without_are_in_no_segment() {
    let check = |key: &str, is_there: fn(&Options) -> bool| {
        for side in ["client", "server"] {
            let frames = capture(&format!("{UPLOAD}\n{side}.{key} = false"), View::default());
            // A host offers its own in a SYN, and accepts none that it does without.
            let own = frames.iter().filter(|frame| frame.is_data == (side == "client"));
            assert!(own.clone().count() > 10);
            assert!(own.clone().all(|frame| !is_there(&frame.options)), "{side}.{key}");
            let later = frames.iter().filter(|frame| !frame.flags.contains(Flags::SYN));
            assert!(later.clone().all(|frame| !is_there(&frame.options)), "{side}.{key}");
            let with = capture(UPLOAD, View::default());
            assert!(with.iter().any(|frame| is_there(&frame.options)), "{side}.{key}");
        }
    };
    check("timestamps", |options| options.timestamps.is_some());
    check("sack", |options| options.sack_permitted);
    check("window-scaling", |options| options.window_scale.is_some());
}
