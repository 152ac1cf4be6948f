//! TYPE A: lines end in LF in files and in CR LF on the network (RFC 959 section 3.1.1.1), whatever the pieces.

use alloc::vec::Vec;

/// File to network: every LF becomes CR LF.
///
/// A CR LF in a file becomes CR CR LF, so that [`FromNetwork`] brings back exactly the bytes of the file.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ToNetwork {
    /// Bytes of the network form still to be left out, for a transfer that begins in its middle.
    pub(super) skip: u64,
}

impl ToNetwork {
    /// The network form of the next bytes of the file.
    pub(super) fn convert(&mut self, bytes: &[u8]) -> Vec<u8> {
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        let mut out = Vec::with_capacity(bytes.len() + ends);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.split_last() {
                Some((b'\n', text)) => {
                    out.extend_from_slice(text);
                    out.extend_from_slice(b"\r\n");
                }
                _ => out.extend_from_slice(line),
            }
        }
        let left_out = usize::try_from(self.skip).unwrap_or(usize::MAX).min(out.len());
        out.drain(..left_out);
        self.skip -= left_out as u64;
        out
    }
}

/// Network to file: every CR LF becomes LF; other CRs and LFs stay.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct FromNetwork {
    /// The last byte was a CR whose fate depends on the next one.
    after_cr: bool,
}

impl FromNetwork {
    /// Appends the file form of the next bytes from the network; at most `bytes.len() + 1` are appended.
    pub(super) fn convert(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            if self.after_cr && byte != b'\n' {
                out.push(b'\r');
            }
            self.after_cr = byte == b'\r';
            if !self.after_cr {
                out.push(byte);
            }
        }
    }

    /// Appends what is left at the end of the transfer.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if core::mem::take(&mut self.after_cr) {
            out.push(b'\r');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(file: &[u8], network: &[u8]) {
        assert_eq!(ToNetwork::default().convert(file), network);
        let (mut back, mut out) = (FromNetwork::default(), Vec::new());
        back.convert(network, &mut out);
        back.finish(&mut out);
        assert_eq!(out, file);
    }

    #[test]
    fn line_ends_are_converted() {
        check(b"", b"");
        check(b"a\nb\n", b"a\r\nb\r\n");
        check(b"a\r\nb", b"a\r\r\nb");
        check(b"\n\n", b"\r\n\r\n");
        check(b"a\r", b"a\r");
        check(b"a\rb", b"a\rb");
    }

    #[test]
    fn a_lone_lf_from_the_network_stays() {
        let mut out = Vec::new();
        FromNetwork::default().convert(b"a\nb\r\n", &mut out);
        assert_eq!(out, b"a\nb\n");
    }

    proptest! {
        #[test]
        fn there_and_back_is_the_same_in_any_pieces(
            file in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..200),
            piece in 1usize..9,
            skip in 0u64..50,
        ) {
            let whole = ToNetwork::default().convert(&file);
            let mut to = ToNetwork::default();
            let pieces: Vec<u8> = file.chunks(piece).flat_map(|part| to.convert(part)).collect();
            prop_assert_eq!(&pieces, &whole);

            let mut to = ToNetwork { skip };
            let rest: Vec<u8> = file.chunks(piece).flat_map(|part| to.convert(part)).collect();
            prop_assert_eq!(&rest[..], whole.get(skip as usize..).unwrap_or(&[]));

            let (mut from, mut out) = (FromNetwork::default(), Vec::new());
            for part in whole.chunks(piece) {
                let before = out.len();
                from.convert(part, &mut out);
                prop_assert!(out.len() - before <= part.len() + 1);
            }
            from.finish(&mut out);
            prop_assert_eq!(out, file);
        }
    }
}
