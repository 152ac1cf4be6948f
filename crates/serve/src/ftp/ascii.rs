//! TYPE A: lines end in LF in files and in CR LF on the network (RFC 959 section 3.1.1.1), whatever the pieces.

use alloc::vec::Vec;

/// File to network: every LF becomes CR LF, but one that follows a CR already, as in files written on other systems.
///
/// A file whose lines end in CR LF therefore arrives as it is, and comes back from [`FromNetwork`] with LF alone.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ToNetwork {
    /// Bytes of the network form still to be left out, for a transfer that begins in its middle.
    pub(super) skip: u64,
    /// The last byte of the file so far was a CR.
    after_cr: bool,
}

impl ToNetwork {
    /// A conversion that leaves out the first `skip` bytes of the network form.
    pub(super) fn skipping(skip: u64) -> Self {
        ToNetwork { skip, after_cr: false }
    }

    /// The network form of the next bytes of the file.
    pub(super) fn convert(&mut self, bytes: &[u8]) -> Vec<u8> {
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        let mut out = Vec::with_capacity(bytes.len() + ends);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.split_last() {
                Some((b'\n', text)) => {
                    out.extend_from_slice(text);
                    let has_cr = text.last().map_or(self.after_cr, |last| *last == b'\r');
                    out.extend_from_slice(if has_cr { b"\n" } else { b"\r\n" });
                    self.after_cr = false;
                }
                _ => {
                    out.extend_from_slice(line);
                    self.after_cr = line.last() == Some(&b'\r');
                }
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

    /// The file as it comes back: lines that ended in CR LF end in LF.
    fn normal(file: &[u8]) -> Vec<u8> {
        let crlf = |at: usize| file[at] == b'\r' && file.get(at + 1) == Some(&b'\n');
        (0..file.len()).filter(|at| !crlf(*at)).map(|at| file[at]).collect()
    }

    fn check(file: &[u8], network: &[u8]) {
        assert_eq!(ToNetwork::default().convert(file), network);
        let (mut back, mut out) = (FromNetwork::default(), Vec::new());
        back.convert(network, &mut out);
        back.finish(&mut out);
        assert_eq!(out, normal(file));
    }

    #[test]
    fn line_ends_are_converted() {
        check(b"", b"");
        check(b"a\nb\n", b"a\r\nb\r\n");
        check(b"a\r\nb", b"a\r\nb");
        check(b"a\r\r\n\r\n", b"a\r\r\n\r\n");
        check(b"a\r\n\nb\n\r", b"a\r\n\r\nb\r\n\r");
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

            let mut to = ToNetwork::skipping(skip);
            let rest: Vec<u8> = file.chunks(piece).flat_map(|part| to.convert(part)).collect();
            prop_assert_eq!(&rest[..], whole.get(skip as usize..).unwrap_or(&[]));

            let (mut from, mut out) = (FromNetwork::default(), Vec::new());
            for part in whole.chunks(piece) {
                let before = out.len();
                from.convert(part, &mut out);
                prop_assert!(out.len() - before <= part.len() + 1);
            }
            from.finish(&mut out);
            prop_assert_eq!(out, normal(&file));
        }
    }
}
