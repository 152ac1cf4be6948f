//! The floor: a bare responder that moves frames and acknowledges, and does nothing else.
//!
//! It has no congestion control, no reassembly, no deadlines but one, and looks at no checksum; what it sends comes from
//! one buffer that never changes, whose sum was taken at the start.

pub mod bulk;
pub mod frame;
pub mod http;
pub mod link;
pub mod xdp;

/// What the floor answers on one link.
pub trait Responder {
    /// A TCP segment has come for us.
    fn handle(&mut self, segment: &frame::Segment<'_>, link: &mut dyn Link);

    /// A batch of frames has been handled, or time has passed: what is still to be sent. Returns whether there is more to
    /// send at once.
    fn poll(&mut self, link: &mut dyn Link) -> bool;
}

/// Where frames leave.
pub trait Link {
    /// Sends one segment with so many bytes of the buffer's beginning, or of `own` where that is given; returns whether
    /// there was room.
    fn send(&mut self, reply: &frame::Reply, payload: Payload<'_>) -> bool;

    /// The largest payload of one call.
    fn largest(&self) -> usize;
}

/// What a segment carries.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// So many bytes of the constant buffer.
    Constant(usize),
    /// These bytes.
    Own(&'a [u8]),
}

impl Payload<'_> {
    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Constant(len) => *len,
            Payload::Own(bytes) => bytes.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
