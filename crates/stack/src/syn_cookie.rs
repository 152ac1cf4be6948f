//! SYN cookies: handshakes that keep nothing until the peer has shown that it receives (RFC 4987 section 3.6 and
//! appendix A).
//!
//! The initial sequence number of a cookie SYN-ACK is
//!
//! ```text
//! 31                                  3 2       0
//! | SipHash-2-4 of the handshake        | MSS    |
//! ```
//!
//! where the hash covers the flow, the client's initial sequence number, the minute, the MSS index and the options below.
//! The minute is not in the number: the three that an ACK may be from are tried. A guess of the 32 bits is right once in
//! 2^27, for each ACK sent, and only while cookies are being sent.
//!
//! What else the client offered lies in the low bits of our timestamp, which the client echoes, if it sent one (as other
//! stacks do): window scale (15 for none), SACK, ECN. A client without timestamps gets neither. The timestamp runs up to
//! 63 ms behind the clock for that.
//!
//! The key changes every 16 minutes by a one-way step; the last one stays valid for the cookies that are under way.

use crate::config::TcpOptions;
use crate::demux::FlowKey;
use crate::key_ring::KeyRing;
use crate::random::{Key, purpose};
use core::hash::{Hash, Hasher};
use core::time::Duration;
use linerate_wire::tcp::{Options, SeqNumber};
use linerate_wire::units::Instant;

/// What the low three bits of a cookie can say.
const SIZES: [u16; 8] = [88, 536, 1_220, 1_360, 1_400, 1_440, 1_460, 8_940];
/// A step of the counter in the hash.
const MINUTE_S: u64 = 60;
/// A cookie is valid in its own minute and so many after it.
const MOST_AGE: u64 = 2;
/// Minutes with one key.
const KEY_MINUTES: u64 = 16;
const NO_SCALE: u8 = 15;
/// Where no timestamp carries options.
const NO_OPTIONS: u8 = 0x40;
/// The bits of a timestamp that carry options.
const OPTION_BITS: u32 = 0x3f;

/// What a client offered, as far as a cookie remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    /// Maximum segment size, rounded down to one that a cookie can name.
    pub(crate) mss: u16,
    /// Whether there were timestamps; without them there is nothing below.
    pub(crate) timestamps: bool,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

impl Offer {
    /// What the options of a SYN offer, of those that we `know`; `default_mss` if it names no MSS, `ecn` if its flags ask for ECN.
    pub(crate) fn of(options: &Options, know: TcpOptions, default_mss: u16, ecn: bool) -> Offer {
        let timestamps = know.timestamps && options.timestamps.is_some();
        Offer {
            mss: SIZES[size_index(options.mss.unwrap_or(default_mss))],
            timestamps,
            window_scale: options.window_scale.filter(|_| timestamps && know.window_scaling),
            sack: timestamps && know.sack && options.sack_permitted,
            ecn: timestamps && ecn,
        }
    }

    fn bits(&self) -> u8 {
        if !self.timestamps {
            return NO_OPTIONS;
        }
        self.window_scale.unwrap_or(NO_SCALE) & 0x0f | u8::from(self.sack) << 4 | u8::from(self.ecn) << 5
    }

    fn from_bits(mss: u16, bits: u8) -> Offer {
        let timestamps = bits & NO_OPTIONS == 0;
        let scale = bits & 0x0f;
        Offer {
            mss,
            timestamps,
            window_scale: (timestamps && scale != NO_SCALE).then_some(scale),
            sack: timestamps && bits & 0x10 != 0,
            ecn: timestamps && bits & 0x20 != 0,
        }
    }

    /// The timestamp that carries the offer: the last one with its bits that is not ahead of `clock`.
    pub(crate) fn timestamp(&self, clock: u32) -> u32 {
        let value = clock & !OPTION_BITS | u32::from(self.bits());
        if value.wrapping_sub(clock) as i32 > 0 { value.wrapping_sub(OPTION_BITS + 1) } else { value }
    }
}

fn size_index(mss: u16) -> usize {
    SIZES.partition_point(|&size| size <= mss).saturating_sub(1)
}

/// Makes cookies, and knows its own again.
pub(crate) struct SynCookies {
    keys: KeyRing,
    last_sent: Option<Instant>,
}

impl SynCookies {
    /// Cookies under keys from `seed`.
    pub(crate) fn new(seed: &[u8; 32]) -> SynCookies {
        SynCookies { keys: KeyRing::new(seed, purpose::SYN_COOKIE), last_sent: None }
    }

    /// The initial sequence number that answers a SYN of this flow with sequence number `client`.
    pub(crate) fn make(
        &mut self,
        flow: &FlowKey,
        client: SeqNumber,
        offer: &Offer,
        now: Instant,
    ) -> SeqNumber {
        let minute = minute(now);
        self.keys.rotate(minute / KEY_MINUTES);
        self.last_sent = Some(now);
        let size = size_index(offer.mss) as u32;
        SeqNumber(hash(self.keys.current(), flow, client, minute, size, offer.bits()) << 3 | size)
    }

    /// The offer behind an ACK of this flow that acknowledges a cookie as `cookie + 1` to a SYN with number `client`;
    /// `echo` is the timestamp that it echoes. `None`: it acknowledges no cookie of the last minutes.
    pub(crate) fn check(
        &mut self,
        flow: &FlowKey,
        client: SeqNumber,
        cookie: SeqNumber,
        echo: Option<u32>,
        now: Instant,
    ) -> Option<Offer> {
        if !self.are_out(now) {
            return None;
        }
        let newest = minute(now);
        self.keys.rotate(newest / KEY_MINUTES);
        let bits = echo.map_or(NO_OPTIONS, |echo| (echo & OPTION_BITS) as u8);
        let (size, wanted) = (cookie.0 & 7, cookie.0 >> 3);
        let is_ours = (newest.saturating_sub(MOST_AGE)..=newest).any(|minute| {
            self.keys
                .key_of(minute / KEY_MINUTES)
                .is_some_and(|key| hash(key, flow, client, minute, size, bits) & (u32::MAX >> 3) == wanted)
        });
        is_ours.then(|| Offer::from_bits(SIZES[size as usize], bits))
    }

    /// Whether cookies were sent so lately that an ACK may belong to one.
    pub(crate) fn are_out(&self, now: Instant) -> bool {
        let valid = Duration::from_secs((MOST_AGE + 1) * MINUTE_S);
        self.last_sent.is_some_and(|sent| now - sent <= valid)
    }

    #[cfg(test)]
    fn generation(&self) -> u64 {
        self.keys.generation()
    }
}

fn minute(now: Instant) -> u64 {
    now.as_millis() / 1_000 / MINUTE_S
}

fn hash(key: &Key, flow: &FlowKey, client: SeqNumber, minute: u64, size: u32, bits: u8) -> u32 {
    let mut hasher = key.hasher();
    flow.hash(&mut hasher);
    hasher.write_u64(minute << 32 | u64::from(client.0));
    hasher.write_u32(size << 8 | u32::from(bits));
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};
    use linerate_wire::tcp::Timestamps;

    fn flow(port: u16) -> FlowKey {
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 168, 1, last));
        FlowKey::new(address(4), 80, address(1), port)
    }

    fn options(mss: u16, scale: Option<u8>, sack: bool, timestamps: bool) -> Options {
        let timestamps = timestamps.then_some(Timestamps { value: 9, echo: 0 });
        Options {
            mss: Some(mss),
            window_scale: scale,
            sack_permitted: sack,
            timestamps,
            ..Options::default()
        }
    }

    const CLIENT: SeqNumber = SeqNumber(0x8000_1234);

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    #[test]
    fn every_offer_comes_back() {
        let mut cookies = SynCookies::new(&[1; 32]);
        for mss in [0, 88, 535, 536, 1_219, 1_300, 1_399, 1_460, 1_500, 9_000, u16::MAX] {
            for scale in [None, Some(0), Some(7), Some(14)] {
                for bits in 0..8 {
                    let (sack, timestamps, ecn) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
                    let offer =
                        Offer::of(&options(mss, scale, sack, timestamps), TcpOptions::default(), 536, ecn);
                    assert!(offer.mss <= mss.max(88));
                    let cookie = cookies.make(&flow(1), CLIENT, &offer, at(5));
                    let echo = timestamps.then(|| offer.timestamp(777_777));
                    assert_eq!(cookies.check(&flow(1), CLIENT, cookie, echo, at(6)), Some(offer));
                }
            }
        }
        let offer = Offer::of(&options(1_460, Some(7), true, false), TcpOptions::default(), 536, true);
        assert_eq!((offer.window_scale, offer.sack, offer.ecn), (None, false, false), "nowhere to keep them");
    }

    #[test]
    fn the_timestamp_is_never_ahead_and_at_most_64_ms_behind() {
        for clock in [0, 1, 63, 64, 1_000_063, u32::MAX, u32::MAX - 40] {
            for scale in 0..=14 {
                let offer =
                    Offer::of(&options(1_460, Some(scale), true, true), TcpOptions::default(), 536, false);
                let behind = clock.wrapping_sub(offer.timestamp(clock));
                assert!(behind <= 64, "{clock} {scale}: {behind}");
            }
        }
    }

    #[test]
    fn a_cookie_lasts_for_its_minute_and_two_more() {
        for minute in [0, 1, 14, 15, 16, 31, 1_000_000] {
            let mut cookies = SynCookies::new(&[1; 32]);
            let offer = Offer::of(&options(1_460, Some(7), true, false), TcpOptions::default(), 536, false);
            let start = minute * 60;
            let cookie = cookies.make(&flow(1), CLIENT, &offer, at(start));
            // Others are sent later, so that cookies count at all.
            cookies.make(&flow(2), CLIENT, &offer, at(start + 170));
            assert_eq!(
                cookies.check(&flow(1), CLIENT, cookie, None, at(start + 179)),
                Some(offer),
                "{minute}"
            );
            assert_eq!(cookies.check(&flow(1), CLIENT, cookie, None, at(start + 180)), None, "{minute}");
        }
    }

    #[test]
    fn nothing_else_is_a_cookie() {
        let mut cookies = SynCookies::new(&[1; 32]);
        let offer = Offer::of(&options(1_460, Some(7), true, true), TcpOptions::default(), 536, false);
        let echo = Some(offer.timestamp(123_456));
        assert_eq!(cookies.check(&flow(1), CLIENT, SeqNumber(5), echo, at(0)), None, "none was sent");
        let cookie = cookies.make(&flow(1), CLIENT, &offer, at(0));
        let mut check =
            |flow: &FlowKey, client, cookie, echo| cookies.check(flow, client, cookie, echo, at(1)).is_some();
        assert!(check(&flow(1), CLIENT, cookie, echo));
        assert!(!check(&flow(2), CLIENT, cookie, echo), "another port");
        assert!(!check(&flow(1), CLIENT + 1, cookie, echo), "another number of the client");
        assert!(!check(&flow(1), CLIENT, cookie, None), "without the timestamp");
        for bit in 0..32 {
            assert!(!check(&flow(1), CLIENT, SeqNumber(cookie.0 ^ 1 << bit), echo), "bit {bit}");
        }
        for bit in 0..6 {
            assert!(!check(&flow(1), CLIENT, cookie, echo.map(|echo| echo ^ 1 << bit)), "option bit {bit}");
        }
        let mut others = SynCookies::new(&[2; 32]);
        others.make(&flow(9), CLIENT, &offer, at(0));
        assert_eq!(others.check(&flow(1), CLIENT, cookie, echo, at(1)), None, "another seed");
        assert_eq!(cookies.check(&flow(1), CLIENT, cookie, echo, at(400)), None, "long after the flood");
    }

    #[test]
    fn guesses_do_not_succeed() {
        let mut cookies = SynCookies::new(&[1; 32]);
        let offer = Offer::of(&options(1_460, None, false, false), TcpOptions::default(), 536, false);
        cookies.make(&flow(1), CLIENT, &offer, at(0));
        let lucky = (0..200_000u32).filter(|guess| {
            let cookie = SeqNumber(guess.wrapping_mul(0x9e37_79b9));
            cookies.check(&flow(7), CLIENT, cookie, None, at(1)).is_some()
        });
        assert_eq!(lucky.count(), 0);
    }

    #[test]
    fn keys_change() {
        let mut cookies = SynCookies::new(&[1; 32]);
        let offer = Offer::of(&options(1_460, None, false, false), TcpOptions::default(), 536, false);
        let generations: alloc::vec::Vec<u64> = (0..4)
            .map(|step| {
                cookies.make(&flow(1), CLIENT, &offer, at(step * 16 * 60));
                cookies.generation()
            })
            .collect();
        assert_eq!(generations, [0, 1, 2, 3]);
    }
}
