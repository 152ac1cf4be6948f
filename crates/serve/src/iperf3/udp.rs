//! Datagrams: the hello, the header, and what loss and jitter follow from it.

use linerate_wire::units::Instant;

/// A client's first datagram.
pub const HELLO: [u8; 4] = 0x3938_3736_u32.to_be_bytes();

/// What the server answers to a client's first datagram.
pub const HELLO_REPLY: [u8; 4] = 0x3637_3839_u32.to_be_bytes();

/// Longest first datagram: old clients send other bytes, none sends more than a word or two.
pub const MAX_HELLO: usize = 16;

/// Time and sequence number at the front of each datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The sender's clock, in microseconds.
    pub sent_us: u64,
    /// From 1 on.
    pub sequence: u64,
}

impl Header {
    /// Reads the header of a datagram; `None` if it is too short.
    pub fn parse(data: &[u8], wide: bool) -> Option<Header> {
        let word = |at: usize| {
            data.get(at..at + 4)?.first_chunk::<4>().map(|bytes| u64::from(u32::from_be_bytes(*bytes)))
        };
        let sent_us = word(0)?.checked_mul(1_000_000)?.checked_add(word(4)?)?;
        let sequence = if wide { word(8)? << 32 | word(12)? } else { word(8)? };
        Some(Header { sent_us, sequence })
    }

    /// Writes the header where a datagram begins; returns its length, 16 bytes with a `wide` sequence number or 12.
    pub fn emit(self, head: &mut [u8; 16], wide: bool) -> usize {
        let sec = (self.sent_us / 1_000_000) as u32;
        let usec = (self.sent_us % 1_000_000) as u32;
        head[..4].copy_from_slice(&sec.to_be_bytes());
        head[4..8].copy_from_slice(&usec.to_be_bytes());
        if wide {
            head[8..].copy_from_slice(&self.sequence.to_be_bytes());
        } else {
            head[8..12].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        }
        if wide { 16 } else { 12 }
    }
}

/// Loss, order and jitter of one received stream.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reception {
    /// Highest sequence number: datagrams that were sent, as far as one can tell.
    pub packets: u64,
    /// Datagrams missing.
    pub errors: u64,
    /// Datagrams that came late.
    pub out_of_order: u64,
    /// Smoothed variation of the transit time (RFC 1889 section 6.3.1), in seconds.
    pub jitter_s: f64,
    transit_us: Option<i64>,
}

impl Reception {
    /// Counts a datagram.
    pub fn count(&mut self, now: Instant, header: Header) {
        if header.sequence > self.packets {
            self.errors += header.sequence - self.packets - 1;
            self.packets = header.sequence;
        } else {
            // It was counted as missing when a later one came.
            self.out_of_order += 1;
            self.errors = self.errors.saturating_sub(1);
        }
        // The clocks of both sides differ by a constant, which the difference of two transits does not have.
        let transit = (now.as_micros() as i64).wrapping_sub(header.sent_us as i64);
        if let Some(before) = self.transit_us {
            let change = transit.wrapping_sub(before).unsigned_abs() as f64 / 1e6;
            self.jitter_s += (change - self.jitter_s) / 16.0;
        }
        self.transit_us = Some(transit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reception(sequences: &[u64]) -> (u64, u64, u64) {
        let mut reception = Reception::default();
        for sequence in sequences {
            reception.count(
                Instant::from_millis(*sequence),
                Header { sent_us: sequence * 1000, sequence: *sequence },
            );
        }
        (reception.packets, reception.errors, reception.out_of_order)
    }

    #[test]
    fn gaps_are_losses_and_late_ones_take_them_back() {
        assert_eq!(reception(&[1, 2, 3]), (3, 0, 0));
        assert_eq!(reception(&[1, 4, 5]), (5, 2, 0));
        assert_eq!(reception(&[1, 4, 2, 5]), (5, 1, 1));
        assert_eq!(reception(&[2, 1]), (2, 0, 1));
    }

    #[test]
    fn even_spacing_has_no_jitter() {
        let mut reception = Reception::default();
        for n in 1..100u64 {
            reception.count(Instant::from_millis(n * 10 + 3), Header { sent_us: n * 10_000, sequence: n });
        }
        assert_eq!(reception.jitter_s, 0.0);
        reception.count(Instant::from_millis(1019), Header { sent_us: 1_000_000, sequence: 100 });
        assert!((reception.jitter_s - 0.001).abs() < 1e-9, "{}", reception.jitter_s);
    }

    proptest! {
        #[test]
        fn headers_survive_the_wire(sent_us in 0u64..4_000_000_000_000_000, sequence in 0u64..=u64::from(u32::MAX), wide: bool) {
            let header = Header { sent_us, sequence };
            let mut data = [0u8; 16];
            let len = header.emit(&mut data, wide);
            prop_assert_eq!(Header::parse(&data[..len], wide), Some(header));
            prop_assert_eq!(Header::parse(&data[..len - 1], wide), None);
        }

        #[test]
        fn any_datagram_is_taken(data in proptest::collection::vec(any::<u8>(), 0..40), wide: bool) {
            let mut reception = Reception::default();
            if let Some(header) = Header::parse(&data, wide) {
                reception.count(Instant::ZERO, header);
                reception.count(Instant::FAR_FUTURE, header);
            }
        }
    }
}
