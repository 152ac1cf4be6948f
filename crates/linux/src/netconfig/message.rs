//! Netlink messages (`linux/netlink.h`): a 16-byte header, a fixed part, and attributes, all aligned to 4 bytes and in
//! the byte order of the machine.

/// Length of `struct nlmsghdr` in bytes.
const HEADER_LEN: usize = 16;
/// Length of `struct nlattr` in bytes.
const ATTRIBUTE_LEN: usize = 4;
/// Of an attribute's kind: the bits that say how its content is encoded.
const KIND_MASK: u16 = 0x3fff;

fn align(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// A request under construction.
pub(super) struct Request {
    bytes: Vec<u8>,
}

/// Where a nested attribute began.
pub(super) struct Nest(usize);

impl Request {
    /// A message of `kind` with `flags` and its fixed part.
    pub(super) fn new(kind: u16, flags: u16, sequence: u32, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        let mut request = Request { bytes };
        request.raw(fixed);
        request
    }

    /// Appends bytes that are no attribute: a fixed part within a nested attribute.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(align(self.bytes.len()), 0);
    }

    /// Appends an attribute. Callers pass constants, addresses and checked names: far less than the 64 KiB it may have.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let nest = self.begin(kind);
        self.bytes.extend_from_slice(value);
        self.end(nest);
    }

    /// Begins an attribute that holds attributes.
    pub(super) fn begin(&mut self, kind: u16) -> Nest {
        let nest = Nest(self.bytes.len());
        self.bytes.extend_from_slice(&[0; 2]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        nest
    }

    /// Ends it. Its length goes without the padding behind it.
    pub(super) fn end(&mut self, nest: Nest) {
        let len = (self.bytes.len() - nest.0) as u16;
        self.bytes[nest.0..nest.0 + 2].copy_from_slice(&len.to_ne_bytes());
        self.bytes.resize(align(self.bytes.len()), 0);
    }

    /// The whole message.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes
    }
}

/// A message that came back.
pub(super) struct Reply<'a> {
    pub(super) kind: u16,
    pub(super) sequence: u32,
    pub(super) body: &'a [u8],
}

/// The messages in what one `recv` gave; ends at the first that is not whole.
pub(super) fn replies(mut bytes: &[u8]) -> impl Iterator<Item = Reply<'_>> {
    std::iter::from_fn(move || {
        let len = word32(bytes, 0)? as usize;
        let reply =
            Reply { kind: word16(bytes, 4)?, sequence: word32(bytes, 8)?, body: bytes.get(HEADER_LEN..len)? };
        bytes = bytes.get(align(len)..).unwrap_or(&[]);
        Some(reply)
    })
}

/// The attributes in `bytes`: kind and value; ends at the first that is not whole.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(word16(bytes, 0)?);
        let kind = word16(bytes, 2)? & KIND_MASK;
        let value = bytes.get(ATTRIBUTE_LEN..len)?;
        bytes = bytes.get(align(len)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// The 16-bit word at `at`.
pub(super) fn word16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit word at `at`.
pub(super) fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_built_reads_back() {
        let mut request = Request::new(18, 5, 7, &[1, 2, 3, 4]);
        request.attribute(3, b"name\0");
        let nest = request.begin(18);
        request.attribute(1, b"veth");
        request.end(nest);
        let bytes = request.finish();
        assert_eq!(bytes.len() % 4, 0);
        let all: Vec<_> = replies(&bytes).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind, all[0].sequence), (18, 7));
        let inner: Vec<_> = attributes(&all[0].body[4..]).collect();
        assert_eq!(inner[0], (3, &b"name\0"[..]));
        assert_eq!(inner[1].0, 18);
        assert_eq!(attributes(inner[1].1).collect::<Vec<_>>(), [(1, &b"veth"[..])]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for reply in replies(&bytes).take(100) {
                prop_assert!(attributes(reply.body).count() <= 200);
            }
            prop_assert!(replies(&bytes).count() <= 200);
        }
    }
}
