//! Frames as interfaces saw them, written as pcapng (draft-ietf-opsawg-pcapng) with times in nanoseconds.
//!
//! Times are those at which the last bit left or reached the interface. Frames lack padding and check sequence.

use crate::parcel::Parcel;
use linerate_nic::MacAddr;
use linerate_wire::units::Instant;

/// Most bytes of frames that are kept; what comes later is counted alone.
const MAX_BYTES: usize = 1 << 30;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPTION_COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_MAC: u16 = 6;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// From where a node saw a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Inbound = 1,
    Outbound = 2,
}

#[derive(Debug)]
struct Record {
    at: Instant,
    node: usize,
    seen: Seen,
    frame: Vec<u8>,
}

/// What is kept for a capture, and a hash over everything that passed.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    records: Vec<Record>,
    /// Nodes whose frames are kept.
    nodes: Vec<bool>,
    bytes: usize,
    dropped: u64,
    hash: u64,
}

impl Capture {
    /// Keeps the frames of this node from now on.
    pub(crate) fn keep(&mut self, node: usize) {
        if self.nodes.len() <= node {
            self.nodes.resize(node + 1, false);
        }
        self.nodes[node] = true;
    }

    /// Whether the frames of this node are kept.
    pub(crate) fn keeps(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|keeps| *keeps)
    }

    /// A hash over times, places and lengths of everything that passed an interface.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Some segments pass a node's interface; `time_of` tells when each does.
    pub(crate) fn see(
        &mut self,
        node: usize,
        seen: Seen,
        parcel: &Parcel,
        time_of: impl Fn(&Parcel) -> Instant,
    ) {
        let word = time_of(parcel).as_nanos() ^ (parcel.len() as u64).rotate_left(40) ^ (node as u64) << 60;
        self.hash = (self.hash.rotate_left(5) ^ word ^ seen as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        if !self.keeps(node) {
            return;
        }
        let mut rest = parcel.clone();
        // As many turns as segments.
        while rest.count() > 1 {
            let segment = rest.split_front(1);
            self.record(node, seen, &segment, time_of(&segment));
        }
        self.record(node, seen, &rest, time_of(&rest));
    }

    fn record(&mut self, node: usize, seen: Seen, segment: &Parcel, at: Instant) {
        let frame = segment.bytes();
        if self.bytes + frame.len() > MAX_BYTES {
            self.dropped += 1;
            return;
        }
        self.bytes += frame.len();
        self.records.push(Record { at, node, seen, frame });
    }

    /// The file: one section, one interface per node that is captured, frames in the order of their times.
    pub(crate) fn pcapng(&self, seed: u64, nodes: &[(String, MacAddr)]) -> Vec<u8> {
        let mut file = Vec::with_capacity(self.bytes + 64 * self.records.len() + 1_024);
        let mut comment = format!("linerate-sim, seed {seed}");
        if self.dropped > 0 {
            comment.push_str(&format!("; {} later frames are not kept", self.dropped));
        }
        block(&mut file, SECTION_HEADER, |body| {
            body.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
            body.extend_from_slice(&[1, 0, 0, 0]);
            body.extend_from_slice(&u64::MAX.to_le_bytes());
            option(body, OPTION_COMMENT, comment.as_bytes());
            end_of_options(body);
        });
        let mut interfaces = vec![None; nodes.len()];
        let mut count = 0u32;
        for (index, (name, mac)) in nodes.iter().enumerate() {
            if self.nodes.get(index).is_some_and(|keeps| *keeps) {
                interface(&mut file, name, *mac);
                interfaces[index] = Some(count);
                count += 1;
            }
        }
        let mut order: Vec<&Record> = self.records.iter().collect();
        order.sort_by_key(|record| record.at);
        for record in order {
            if let Some(number) = interfaces.get(record.node).copied().flatten() {
                packet(&mut file, number, record);
            }
        }
        file
    }
}

fn interface(file: &mut Vec<u8>, name: &str, mac: MacAddr) {
    block(file, INTERFACE_DESCRIPTION, |body| {
        // Link type Ethernet, reserved, no limit of length.
        body.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
        option(body, INTERFACE_NAME, name.as_bytes());
        option(body, INTERFACE_MAC, &mac.0);
        option(body, INTERFACE_RESOLUTION, &[9]);
        end_of_options(body);
    });
}

fn packet(file: &mut Vec<u8>, interface: u32, record: &Record) {
    block(file, ENHANCED_PACKET, |body| {
        let (ns, len) = (record.at.as_nanos(), record.frame.len() as u32);
        for word in [interface, (ns >> 32) as u32, ns as u32, len, len] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        padded(body, &record.frame);
        option(body, PACKET_FLAGS, &(record.seen as u32).to_le_bytes());
        end_of_options(body);
    });
}

/// A block: type, length, body, length.
fn block(file: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend_from_slice(&kind.to_le_bytes());
    file.extend_from_slice(&[0; 4]);
    write(file);
    let len = ((file.len() - start + 4) as u32).to_le_bytes();
    file.extend_from_slice(&len);
    file[start + 4..start + 8].copy_from_slice(&len);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    padded(body, value);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend_from_slice(&[0; 4]);
}

fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(bytes);
    body.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() % 4]);
}
