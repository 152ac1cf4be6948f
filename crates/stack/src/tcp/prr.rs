//! Proportional rate reduction (RFC 9937): how much may be sent during fast recovery, so that it ends with as much in the
//! network as congestion control wants, without a pause and without a burst.

/// The state of one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// Bytes in flight when it began, without those reported before (RecoverFS).
    flight: u64,
    /// What congestion control wants to be in flight at the end (ssthresh).
    target: u64,
    /// Bytes delivered and sent since.
    delivered: u64,
    out: u64,
    /// Bytes that may be sent now (what is left of sndcnt).
    room: u64,
}

impl Prr {
    /// A recovery begins with `flight` bytes in flight, to end with `target`.
    pub fn new(flight: u64, target: u64) -> Self {
        Prr { flight: flight.max(1), target, ..Prr::default() }
    }

    /// An acknowledgement told of `delivered` bytes that arrived; `pipe` are in the network now. `is_safe`: the cumulative
    /// acknowledgement moved and nothing new was found to be lost (SafeACK). `mss`: bytes of a full segment.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, is_safe: bool, mss: u64) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        self.room = if pipe > self.target {
            let due =
                (u128::from(self.delivered) * u128::from(self.target)).div_ceil(u128::from(self.flight));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // The conservative bound; slow start while recovery makes progress.
            let conserved = self.delivered.saturating_sub(self.out).max(delivered);
            let catch_up = if is_safe { conserved + mss } else { conserved };
            catch_up.min(self.target - pipe)
        };
        if self.out == 0 && self.room == 0 {
            self.room = mss;
        }
    }

    /// `bytes` were sent, new or again.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.room = self.room.saturating_sub(bytes);
    }

    /// Bytes that may be sent now.
    pub fn room(&self) -> u64 {
        self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// 100 segments in flight, `lost` of them lost, one acknowledgement per arriving segment, everything that is allowed is
    /// sent at once: what was sent with each acknowledgement, and what is in flight at the end.
    fn run(lost: u64, target: u64) -> (alloc::vec::Vec<u64>, u64) {
        let mut prr = Prr::new(100 * MSS, target * MSS);
        let mut pipe = (100 - lost) * MSS;
        let sent = (0..100 - lost).map(|_| {
            pipe -= MSS;
            prr.on_ack(MSS, pipe, false, MSS);
            let sent = prr.room() / MSS * MSS;
            prr.on_sent(sent);
            pipe += sent;
            sent / MSS
        });
        (sent.collect(), pipe)
    }

    #[test]
    fn rfc_9937_halving_sends_on_every_other_acknowledgement() {
        let (sent, pipe) = run(1, 50);
        assert!(sent.iter().all(|&n| n <= 1), "no burst: {sent:?}");
        assert!(sent.windows(3).all(|three| three.iter().sum::<u64>() >= 1), "no pause: {sent:?}");
        assert!((48..=50).contains(&(pipe / MSS)), "{pipe}");
    }

    #[test]
    fn rfc_9937_cubic_sends_seven_of_ten() {
        let (sent, pipe) = run(1, 70);
        assert!(sent.iter().all(|&n| n <= 1));
        assert!((68..=70).contains(&(pipe / MSS)), "{pipe}");
    }

    #[test]
    fn rfc_9937_heavy_loss_conserves_packets() {
        // More was lost than the reduction asks for: one out for one that arrived, and no burst to fill the gap.
        let (sent, pipe) = run(80, 50);
        assert_eq!((sent.len(), sent.iter().sum::<u64>(), pipe), (20, 20, 20 * MSS));
        // Unless the acknowledgements are safe: then slow start leads back.
        let mut prr = Prr::new(100 * MSS, 50 * MSS);
        prr.on_ack(MSS, 19 * MSS, true, MSS);
        assert_eq!(prr.room(), 2 * MSS);
    }

    #[test]
    fn rfc_9937_the_first_retransmission_is_never_held_back() {
        let mut prr = Prr::new(100 * MSS, 0);
        prr.on_ack(1, 90 * MSS, false, MSS);
        assert_eq!(prr.room(), MSS);
        prr.on_sent(MSS);
        prr.on_ack(0, 90 * MSS, false, MSS);
        assert_eq!(prr.room(), 0, "what delivers nothing allows nothing");
    }
}
