//! Settings of `linerate serve` on a Linux device, as its arguments and configuration, and as a state that the model predicts.

use super::state::{Direction, State};
use std::fmt::Write as _;

/// Most bytes that a buffer grows to by itself (`docs/settings.md`).
const GROWN: u64 = 4 << 20;
/// Bytes of a super-segment.
const SUPER: u64 = 64 << 10;
/// The client's window where it scales, as much as its kernel gives (`net.ipv4.tcp_rmem`: 6 MiB, half of which is window).
const SCALED: u64 = 3 << 20;
/// The window where it does not (RFC 9293).
const UNSCALED: u64 = 65_535;
/// IPv4 and TCP headers with timestamps.
const HEADERS: u64 = super::state::HEADERS as u64;

/// Checksums by the device.
pub const SUMS: &str = "tx-checksum,rx-checksum";
/// And segmentation, but no coalescing.
pub const CUT: &str = "tx-checksum,rx-checksum,tso,gather";

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knobs {
    /// Which way the data goes.
    pub direction: Direction,
    /// `[tcp] mss`, where it is not the MTU's.
    pub mss: Option<u16>,
    /// KiB of the buffer of that direction; it grows where there is none.
    pub buffer_kib: Option<u64>,
    /// `[tcp] delayed-ack-segments`.
    pub ack_every: Option<u8>,
    /// `--offload`.
    pub offload: &'static str,
    /// `--mtu`.
    pub mtu: u16,
    /// Whether the client scales its window.
    pub scales: bool,
}

impl Knobs {
    /// A buffer of so many KiB with these offloads; all else is as usual.
    pub const fn new(direction: Direction, buffer_kib: Option<u64>, offload: &'static str) -> Knobs {
        Knobs { direction, mss: None, buffer_kib, ack_every: None, offload, mtu: 1_500, scales: true }
    }

    /// Lines of `[tcp]`.
    pub fn tcp(&self) -> String {
        let mut text = String::new();
        let buffer = match self.direction {
            Direction::Sending => "send-buffer",
            Direction::Receiving => "receive-buffer",
        };
        // Writing into a string never fails.
        if let Some(mss) = self.mss {
            let _ = writeln!(text, "mss = {mss}");
        }
        if let Some(kib) = self.buffer_kib {
            let _ = writeln!(text, "{buffer} = \"{kib}KiB\"");
        }
        if let Some(segments) = self.ack_every {
            let _ = writeln!(text, "delayed-ack-segments = {segments}");
        }
        text
    }

    /// All of them on a line, for who watches.
    pub fn words(&self) -> String {
        let mut words = match self.direction {
            Direction::Sending => "sending".to_owned(),
            Direction::Receiving => "receiving".to_owned(),
        };
        for line in self.tcp().lines() {
            words.push_str(", ");
            words.push_str(line);
        }
        // Writing into a string never fails.
        let _ = write!(words, ", offload {}, MTU {}", self.offload, self.mtu);
        words
    }

    /// Whether the device does checksums.
    pub fn has_sums(&self) -> bool {
        self.offload != "none"
    }

    /// Whether packets of data are larger than the MTU: cut by the device, or not cut at all by the client.
    pub fn is_super(&self) -> bool {
        self.offload == "all" || (self.direction == Direction::Sending && self.offload == CUT)
    }

    /// The same for the model. A super-segment is a segment to it, of 64 KiB or what the buffer holds; one that the client sends
    /// fills half of the window.
    pub fn state(&self) -> State {
        let buffer = self.buffer_kib.map_or(GROWN, |kib| kib << 10);
        let payload = match (self.is_super(), self.direction) {
            (true, Direction::Sending) => buffer.min(SUPER),
            (true, Direction::Receiving) => (buffer / 2).min(SUPER),
            // The least MSS counts no options (RFC 6691).
            (false, _) => self.mss.map_or(u64::from(self.mtu) - HEADERS, |mss| u64::from(mss) - 12),
        };
        State {
            write: 0,
            gives_way: false,
            optimized: true,
            copies: true,
            buffer,
            // A window of 65,535 bytes takes a super-segment that is a byte shorter.
            peer_window: if self.scales { SCALED } else { UNSCALED.max(payload) },
            ack_every: if self.is_super() { 1 } else { self.ack_every.unwrap_or(2) },
            offload: self.has_sums(),
            driver_improved: true,
            mtu: (payload + HEADERS) as usize,
            ..State::as_ported(self.direction)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_states() {
        let check = |knobs: Knobs, tcp: &str, payload: u64, buffer: u64, is_super: bool| {
            let state = knobs.state();
            assert_eq!((knobs.tcp().as_str(), state.payload(), state.buffer), (tcp, payload, buffer));
            assert_eq!(knobs.is_super(), is_super, "{knobs:?}");
        };
        let (sending, receiving) = (Direction::Sending, Direction::Receiving);
        let narrow = Knobs { mss: Some(512), ..Knobs::new(sending, Some(8), "none") };
        check(narrow, "mss = 512\nsend-buffer = \"8KiB\"\n", 500, 8 << 10, false);
        check(
            Knobs { mtu: 9_000, ..Knobs::new(sending, Some(64), SUMS) },
            "send-buffer = \"64KiB\"\n",
            8_948,
            64 << 10,
            false,
        );
        check(Knobs::new(sending, None, "all"), "", 65_536, 4 << 20, true);
        check(
            Knobs::new(receiving, Some(64), "all"),
            "receive-buffer = \"64KiB\"\n",
            32 << 10,
            64 << 10,
            true,
        );
        let rare = Knobs { ack_every: Some(10), ..Knobs::new(receiving, Some(8), CUT) };
        check(rare, "receive-buffer = \"8KiB\"\ndelayed-ack-segments = 10\n", 1_448, 8 << 10, false);
        assert_eq!(rare.state().ack_every, 10);
        assert_eq!(
            rare.words(),
            format!(
                "receiving, receive-buffer = \"8KiB\", delayed-ack-segments = 10, offload {CUT}, MTU 1500"
            )
        );
        assert!(rare.has_sums() && !narrow.has_sums());
        assert_eq!(Knobs { scales: false, ..Knobs::new(sending, None, "none") }.state().peer_window, 65_535);
    }
}
