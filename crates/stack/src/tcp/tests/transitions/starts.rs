//! The states that a connection is driven into before an event happens.

use super::station::Station;
use crate::tcp::State;
use core::time::Duration;
use linerate_wire::tcp::Flags;

/// A state, and for SYN-RECEIVED how it was reached, which RFC 9293 section 3.10.7.4 distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    Closed,
    Listen,
    SynSent,
    SynReceivedPassive,
    SynReceivedActive,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

impl Start {
    pub const ALL: [Start; 12] = [
        Start::Closed,
        Start::Listen,
        Start::SynSent,
        Start::SynReceivedPassive,
        Start::SynReceivedActive,
        Start::Established,
        Start::FinWait1,
        Start::FinWait2,
        Start::CloseWait,
        Start::Closing,
        Start::LastAck,
        Start::TimeWait,
    ];

    pub fn state(self) -> State {
        match self {
            Start::Closed => State::Closed,
            Start::Listen => State::Listen,
            Start::SynSent => State::SynSent,
            Start::SynReceivedPassive | Start::SynReceivedActive => State::SynReceived,
            Start::Established => State::Established,
            Start::FinWait1 => State::FinWait1,
            Start::FinWait2 => State::FinWait2,
            Start::CloseWait => State::CloseWait,
            Start::Closing => State::Closing,
            Start::LastAck => State::LastAck,
            Start::TimeWait => State::TimeWait,
        }
    }

    /// How a reader gets there.
    pub fn heading(self) -> &'static str {
        match self {
            Start::Closed => "CLOSED (no connection, no listener)",
            Start::Listen => "LISTEN",
            Start::SynSent => "SYN-SENT",
            Start::SynReceivedPassive => "SYN-RECEIVED from LISTEN (not accepted yet)",
            Start::SynReceivedActive => "SYN-RECEIVED from SYN-SENT (simultaneous open)",
            Start::Established => "ESTABLISHED",
            Start::FinWait1 => "FIN-WAIT-1",
            Start::FinWait2 => "FIN-WAIT-2",
            Start::CloseWait => "CLOSE-WAIT",
            Start::Closing => "CLOSING",
            Start::LastAck => "LAST-ACK",
            Start::TimeWait => "TIME-WAIT",
        }
    }

    /// Whether the peer has finished sending.
    pub fn peer_finished(self) -> bool {
        matches!(self, Start::CloseWait | Start::Closing | Start::LastAck | Start::TimeWait)
    }

    /// Whether our FIN is out and not acknowledged.
    pub fn fin_outstanding(self) -> bool {
        matches!(self, Start::FinWait1 | Start::Closing | Start::LastAck)
    }

    /// Whether a connection has left the handshake behind.
    pub fn is_synchronized(self) -> bool {
        self.state().is_synchronized()
    }

    /// Whether it is in one of the two SYN-RECEIVED.
    pub fn is_syn_received(self) -> bool {
        self.state() == State::SynReceived
    }

    /// A station with a connection in this state; nothing is left to send or to tell.
    pub fn station(self) -> Station {
        let is_client = matches!(self, Start::Closed | Start::SynSent | Start::SynReceivedActive);
        let mut station = Station::new(!is_client);
        match self {
            Start::Closed | Start::Listen => {}
            Start::SynSent => station.conn = Some(station.connect().unwrap()),
            Start::SynReceivedPassive => station.open_passively(),
            Start::SynReceivedActive => {
                station.conn = Some(station.connect().unwrap());
                station.pass(Duration::from_millis(20));
                station.open_passively();
            }
            _ => self.lead(&mut station),
        }
        match self {
            Start::Closed | Start::Listen => {}
            // Our SYN is not acknowledged; of the peer's nothing is known yet, so its SYN is the next number.
            Start::SynSent => (station.una, station.nxt, station.rcv) = (-1, 0, -1),
            Start::SynReceivedPassive | Start::SynReceivedActive => {
                (station.una, station.nxt, station.rcv) = (-1, 0, 0);
            }
            _ => {}
        }
        station.sent.clear();
        station.told.clear();
        assert_eq!(station.state(), self.state(), "the way into {self:?}");
        station
    }

    fn lead(self, station: &mut Station) {
        station.establish();
        match self {
            Start::FinWait1 => station.shutdown(),
            Start::FinWait2 => {
                station.shutdown();
                station.plain(Flags::ACK, 101, 0);
            }
            Start::CloseWait => station.plain(Flags::FIN | Flags::ACK, 100, 0),
            Start::Closing => {
                station.shutdown();
                station.plain(Flags::FIN | Flags::ACK, 100, 0);
            }
            Start::LastAck => {
                station.plain(Flags::FIN | Flags::ACK, 100, 0);
                station.shutdown();
            }
            Start::TimeWait => {
                station.shutdown();
                station.plain(Flags::FIN | Flags::ACK, 101, 0);
            }
            _ => {}
        }
        // Delayed acknowledgements go out, so that none is mistaken for an answer.
        station.pass(Duration::from_millis(45));
    }
}
