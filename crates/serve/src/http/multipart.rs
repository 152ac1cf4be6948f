//! Bodies of type multipart/byteranges (RFC 9110 section 14.6).

use super::range::Part;
use super::response::{append_decimal, append_hex};
use alloc::vec::Vec;

/// What stands before, between and after the parts, and how long everything is together.
pub(super) struct Multipart {
    /// The value of `Content-Type`.
    pub content_type: Vec<u8>,
    /// What precedes each part, in order.
    pub heads: Vec<Vec<u8>>,
    /// What follows the last part.
    pub tail: Vec<u8>,
    /// Length of the whole body in bytes.
    pub len: u64,
}

impl Multipart {
    /// The frame around `parts` of a representation of `len` bytes. `boundary` is random, so that content cannot hold
    /// it but by a chance of one to 2^64 per place.
    pub fn new(parts: &[Part], len: u64, content_type: &str, boundary: u64) -> Multipart {
        let mut separator = Vec::from(*b"linerate-");
        append_hex(&mut separator, boundary);
        let mut multi = Multipart {
            content_type: Vec::from(*b"multipart/byteranges; boundary="),
            heads: Vec::with_capacity(parts.len()),
            tail: Vec::from(*b"\r\n--"),
            len: 0,
        };
        multi.content_type.extend_from_slice(&separator);
        multi.tail.extend_from_slice(&separator);
        multi.tail.extend_from_slice(b"--\r\n");
        for part in parts {
            let mut head = Vec::from(*b"\r\n--");
            head.extend_from_slice(&separator);
            head.extend_from_slice(b"\r\nContent-Type: ");
            head.extend_from_slice(content_type.as_bytes());
            head.extend_from_slice(b"\r\nContent-Range: ");
            append_content_range(&mut head, *part, len);
            head.extend_from_slice(b"\r\n\r\n");
            multi.len += head.len() as u64 + part.len;
            multi.heads.push(head);
        }
        multi.len += multi.tail.len() as u64;
        multi
    }
}

/// Appends `bytes 0-4/10`, the value of `Content-Range`.
pub(super) fn append_content_range(out: &mut Vec<u8>, part: Part, len: u64) {
    out.extend_from_slice(b"bytes ");
    append_decimal(out, part.start);
    out.push(b'-');
    append_decimal(out, part.last());
    out.push(b'/');
    append_decimal(out, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_that_of_the_body() {
        let content = b"0123456789";
        let parts = [Part { start: 0, len: 2 }, Part { start: 7, len: 3 }];
        let multi = Multipart::new(&parts, 10, "text/plain", 0xAB);
        let mut body = Vec::new();
        for (head, part) in multi.heads.iter().zip(parts) {
            body.extend_from_slice(head);
            body.extend_from_slice(&content[part.start as usize..(part.start + part.len) as usize]);
        }
        body.extend_from_slice(&multi.tail);
        let expected = "\r\n--linerate-ab\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
                        \r\n--linerate-ab\r\nContent-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789\
                        \r\n--linerate-ab--\r\n";
        assert_eq!(core::str::from_utf8(&body).unwrap(), expected);
        assert_eq!(multi.len, body.len() as u64);
        assert_eq!(multi.content_type, b"multipart/byteranges; boundary=linerate-ab");
    }
}
