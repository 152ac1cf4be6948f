//! Peers that speak frames by hand.

use linerate_wire::units::Instant;

/// A peer with a will of its own: a scripted one, or an attacker.
///
/// [`Peer::handle_timeout`] is called whenever [`Peer::poll_timeout`] has come.
pub trait Peer {
    /// A frame arrived, without frame check sequence. What is pushed to `out` is sent now.
    fn handle_frame(&mut self, now: Instant, frame: &[u8], out: &mut Vec<Vec<u8>>);

    /// Runs what is due. What is pushed to `out` is sent now.
    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) {
        let _ = (now, out);
    }

    /// When [`Peer::handle_timeout`] is to be called next.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
