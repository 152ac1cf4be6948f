//! Explicit congestion notification: what was agreed, what is owed to the peer, and what was done about its echoes (RFC
//! 3168 section 6.1).
//!
//! Only segments that carry new data are marked capable: a mark on anything else could not be answered for (sections
//! 6.1.4 to 6.1.6). Everything that is agreed is agreed in the handshake; a network that clears the bits later only
//! costs the benefit.

use linerate_transport::Ecn as Policy;
use linerate_wire::tcp::Flags;

/// ECE and CWR: an ECN-setup SYN.
const SETUP: Flags = Flags::ECE.union(Flags::CWR);

/// The state of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ecn {
    /// We asked in our SYN.
    asked: bool,
    /// Both ends use it.
    agreed: bool,
    /// Marks arrived that the peer does not answer for yet.
    echo: bool,
    /// The peer shall hear that the window was reduced.
    cwr_due: bool,
    /// What was sent before the last reduction: until it is acknowledged, echoes tell nothing new. Zero, which is below
    /// every position, before the first.
    reduced_until: u64,
}

impl Ecn {
    /// The bits of a SYN of ours (section 6.1.1). `again`: it was sent before and not answered; a network that drops it
    /// for its bits lets it pass without (section 6.1.1.1).
    pub fn syn_flags(&mut self, policy: Policy, again: bool) -> Flags {
        self.asked = policy == Policy::Request && !again;
        if self.asked { SETUP } else { Flags::EMPTY }
    }

    /// The bit of a SYN-ACK of ours.
    pub fn syn_ack_flags(&self) -> Flags {
        if self.agreed { Flags::ECE } else { Flags::EMPTY }
    }

    /// The peer's SYN, or the same again. One without the bits ends what one with them began.
    pub fn on_syn(&mut self, policy: Policy, flags: Flags) {
        self.agreed = policy != Policy::Off && flags.contains(SETUP);
    }

    /// The SYN-ACK that answers our SYN. A peer that just returns our bits does not know them.
    pub fn on_syn_ack(&mut self, flags: Flags) {
        self.agreed = self.asked && flags & SETUP == Flags::ECE;
    }

    /// Whether both ends use it.
    pub fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// Data arrived: `marked`, the network met congestion on the way (section 6.1.3). Returns whether the peer is to hear
    /// of it at once.
    pub fn on_data(&mut self, marked: bool, flags: Flags) -> bool {
        if !self.agreed {
            return false;
        }
        if flags.contains(Flags::CWR) {
            self.echo = false;
        }
        let is_news = marked && !self.echo;
        self.echo |= marked;
        is_news
    }

    /// The bit of our acknowledgements.
    pub fn ack_flags(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags::EMPTY }
    }

    /// Whether these flags say that the network met congestion.
    pub fn is_echo(&self, flags: Flags) -> bool {
        self.agreed && flags.contains(Flags::ECE)
    }

    /// Whether these flags of an acknowledgement up to `ack` ask for a reduction: once per window (section 6.1.2).
    pub fn asks_for_reduction(&self, ack: u64, flags: Flags) -> bool {
        self.is_echo(flags) && !self.is_reduced(ack)
    }

    /// Whether the window was reduced within the round trip that `una` belongs to.
    pub fn is_reduced(&self, una: u64) -> bool {
        una < self.reduced_until
    }

    /// The congestion window was reduced, for whatever reason, when `nxt` was next to be sent.
    pub fn on_reduced(&mut self, nxt: u64) {
        if self.agreed {
            self.reduced_until = nxt;
            self.cwr_due = true;
        }
    }

    /// The reduction when `nxt` was next to be sent was taken back: the peer does not hear of it if it has not, and the next one counts.
    pub fn on_undo(&mut self, nxt: u64) {
        if nxt > 0 && self.reduced_until == nxt {
            self.reduced_until = 0;
            self.cwr_due = false;
        }
    }

    /// Whether the next segment of new data says that the window was reduced.
    pub fn is_cwr_due(&self) -> bool {
        self.cwr_due
    }

    /// It left.
    pub fn cwr_sent(&mut self) {
        self.cwr_due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_6_1_1_who_asks_who_answers_who_agrees() {
        let check = |policy, syn: Flags, answer: Flags| {
            let mut ecn = Ecn::default();
            ecn.on_syn(policy, syn);
            assert_eq!((ecn.syn_ack_flags(), ecn.is_agreed()), (answer, answer == Flags::ECE), "{syn:?}");
        };
        for policy in [Policy::Accept, Policy::Request] {
            check(policy, SETUP, Flags::ECE);
            check(policy, Flags::ECE, Flags::EMPTY);
            check(policy, Flags::CWR, Flags::EMPTY);
            check(policy, Flags::EMPTY, Flags::EMPTY);
        }
        check(Policy::Off, SETUP, Flags::EMPTY);
    }

    #[test]
    fn section_6_1_1_the_answer_has_ece_alone() {
        let check = |policy, again, answer: Flags, agreed| {
            let mut ecn = Ecn::default();
            let syn = ecn.syn_flags(policy, again);
            assert_eq!(syn == SETUP, policy == Policy::Request && !again);
            ecn.on_syn_ack(answer);
            assert_eq!(ecn.is_agreed(), agreed, "{policy:?} {again} {answer:?}");
        };
        check(Policy::Request, false, Flags::ECE, true);
        check(Policy::Request, false, SETUP, false);
        check(Policy::Request, false, Flags::EMPTY, false);
        check(Policy::Request, true, Flags::ECE, false);
        check(Policy::Accept, false, Flags::ECE, false);
    }

    fn agreed() -> Ecn {
        Ecn { agreed: true, ..Ecn::default() }
    }

    #[test]
    fn section_6_1_3_the_receiver_echoes_until_it_hears_cwr() {
        let mut ecn = agreed();
        assert!(!ecn.on_data(false, Flags::ACK) && ecn.ack_flags().is_empty());
        assert!(ecn.on_data(true, Flags::ACK), "at once");
        assert!(!ecn.on_data(true, Flags::ACK) && !ecn.on_data(false, Flags::ACK));
        assert_eq!(ecn.ack_flags(), Flags::ECE);
        ecn.on_data(false, Flags::ACK | Flags::CWR);
        assert!(ecn.ack_flags().is_empty());
        ecn.on_data(true, Flags::ACK | Flags::CWR);
        assert_eq!(ecn.ack_flags(), Flags::ECE, "a mark on the segment with CWR is news");
        assert!(!Ecn::default().on_data(true, Flags::ACK), "not agreed");
    }

    #[test]
    fn section_6_1_2_the_sender_reduces_once_per_window() {
        let mut ecn = agreed();
        assert!(!ecn.asks_for_reduction(10, Flags::ACK) && ecn.asks_for_reduction(10, Flags::ECE));
        ecn.on_reduced(100);
        assert!(ecn.is_cwr_due());
        ecn.cwr_sent();
        assert!(!ecn.is_cwr_due());
        assert!(!ecn.asks_for_reduction(99, Flags::ECE) && ecn.asks_for_reduction(100, Flags::ECE));
    }
}
