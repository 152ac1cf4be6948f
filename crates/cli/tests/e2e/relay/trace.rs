//! The frames of one world as pcapng (draft-ietf-opsawg-pcapng): as they left their sender, and as they arrived.

use linerate_wire::units::Instant;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;

/// Where a frame was seen; each is an interface of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Before the relay.
    Left = 0,
    /// Behind it.
    Arrived = 1,
}

/// A pcapng file in memory.
pub struct Trace {
    file: Vec<u8>,
}

impl Trace {
    /// An empty one.
    pub fn new() -> Trace {
        let mut trace = Trace { file: Vec::new() };
        trace.block(SECTION_HEADER, |body| {
            // Byte order, version 1.0, length of the section unknown.
            body.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
            body.extend_from_slice(&[1, 0, 0, 0]);
            body.extend_from_slice(&u64::MAX.to_le_bytes());
        });
        for name in ["left its sender", "arrived"] {
            trace.block(INTERFACE_DESCRIPTION, |body| {
                // Link type Ethernet, reserved, no limit of length; times in 10^-9 s.
                body.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
                option(body, INTERFACE_NAME, name.as_bytes());
                option(body, INTERFACE_RESOLUTION, &[9]);
                option(body, 0, &[]);
            });
        }
        trace
    }

    /// Adds a frame.
    pub fn add(&mut self, at: Instant, point: Point, frame: &[u8]) {
        let time = at.as_nanos();
        self.block(ENHANCED_PACKET, |body| {
            let len = frame.len() as u32;
            for word in [point as u32, (time >> 32) as u32, time as u32, len, len] {
                body.extend_from_slice(&word.to_le_bytes());
            }
            body.extend_from_slice(frame);
        });
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    fn block(&mut self, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut body = Vec::new();
        fill(&mut body);
        pad(&mut body);
        let len = (body.len() as u32 + 12).to_le_bytes();
        self.file.extend([&kind.to_le_bytes()[..], &len, &body, &len].concat());
    }
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
