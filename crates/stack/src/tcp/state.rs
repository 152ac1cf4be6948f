//! The states of a connection and what leads from one to another (RFC 9293 section 3.3.2).
//!
//! ```text
//!                     CLOSED ── open ──▶ SYN-SENT ── SYN ──▶ SYN-RECEIVED ◀── (SYN to a listener)
//!                                           │ SYN+ACK               │ ACK of our SYN
//!                                           └──────▶ ESTABLISHED ◀──┘
//!                                FIN sent │                │ FIN received
//!                        FIN-WAIT-1 ◀─────┘                └─────▶ CLOSE-WAIT
//!      ACK of FIN │   │ FIN   │ FIN and ACK of FIN                     │ FIN sent
//!                 ▼   ▼       └────────────────┐                       ▼
//!       FIN-WAIT-2   CLOSING ── ACK of FIN ──▶ TIME-WAIT            LAST-ACK ── ACK of FIN ──▶ CLOSED
//!                 └────────── FIN ─────────────▶  │ 2 MSL ──▶ CLOSED
//! ```

/// The states of RFC 9293 section 3.3.2. LISTEN is the listener's: a connection begins after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Waiting for connection requests; no connection is ever in it.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// SYNs went both ways; ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We sent FIN.
    FinWait1,
    /// Our FIN was acknowledged.
    FinWait2,
    /// The peer sent FIN.
    CloseWait,
    /// Both sent FIN at once; ours is not acknowledged.
    Closing,
    /// The peer sent FIN, then we did; ours is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; old segments die out.
    TimeWait,
    /// It is over.
    Closed,
}

/// What can change the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A SYN without an ACK of ours came.
    Syn,
    /// A SYN with an ACK of ours came.
    SynAck,
    /// The ACK of our SYN came.
    SynAcked,
    /// Our FIN was put into the stream.
    FinSent,
    /// Everything up to the peer's FIN was received.
    FinReceived,
    /// The ACK of our FIN came.
    FinAcked,
    /// TIME-WAIT is over.
    Expired,
    /// A reset, a timeout, or an abort.
    Abort,
}

impl State {
    /// All states.
    pub const ALL: [State; 11] = [
        State::Listen,
        State::SynSent,
        State::SynReceived,
        State::Established,
        State::FinWait1,
        State::FinWait2,
        State::CloseWait,
        State::Closing,
        State::LastAck,
        State::TimeWait,
        State::Closed,
    ];

    /// The state that follows, or `None` where the event cannot happen.
    pub(super) const fn after(self, event: Event) -> Option<State> {
        Some(match (self, event) {
            (State::SynSent, Event::Syn) => State::SynReceived,
            (State::SynSent, Event::SynAck) => State::Established,
            (State::SynReceived, Event::SynAcked) => State::Established,
            (State::SynReceived, Event::FinReceived) => State::CloseWait,
            (State::SynReceived | State::Established, Event::FinSent) => State::FinWait1,
            (State::Established, Event::FinReceived) => State::CloseWait,
            (State::CloseWait, Event::FinSent) => State::LastAck,
            (State::FinWait1, Event::FinAcked) => State::FinWait2,
            (State::FinWait1, Event::FinReceived) => State::Closing,
            (State::FinWait2, Event::FinReceived) => State::TimeWait,
            (State::Closing, Event::FinAcked) => State::TimeWait,
            (State::LastAck, Event::FinAcked) => State::Closed,
            (State::TimeWait, Event::Expired) => State::Closed,
            (State::Listen | State::Closed, _) => return None,
            (_, Event::Abort) => State::Closed,
            _ => return None,
        })
    }

    /// Whether both SYNs are done with: ESTABLISHED and everything after, but not CLOSED.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, State::Listen | State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether the peer may still send data.
    pub const fn can_receive(self) -> bool {
        matches!(self, State::SynReceived | State::Established | State::FinWait1 | State::FinWait2)
    }

    /// Whether the application may queue data (RFC 9293 section 3.10.2).
    pub const fn can_send(self) -> bool {
        matches!(self, State::Established | State::CloseWait)
    }

    /// Whether data or FIN may leave, or be repeated.
    pub const fn can_transmit(self) -> bool {
        matches!(
            self,
            State::Established | State::FinWait1 | State::CloseWait | State::Closing | State::LastAck
        )
    }
}
