//! What can happen to a connection.

use super::starts::Start;
use super::station::{HOST, HOST_PORT, OWNER, PEER, PEER_PORT, Segment, Station};
use alloc::format;
use alloc::string::String;
use core::time::Duration;
use linerate_transport::{ConnState, ListenAddr, ListenOptions, Transport};
use linerate_wire::ip::Protocol;
use linerate_wire::tcp::{self, Flags};
use linerate_wire::{icmpv4, ipv4};

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::FIN;
const RST: Flags = Flags::RST;

macro_rules! events {
    ($($name:ident $text:literal,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Event { $($name,)* }

        impl Event {
            pub const ALL: &[Event] = &[$(Event::$name,)*];

            /// How the table calls it.
            pub fn text(self) -> &'static str {
                match self { $(Event::$name => $text,)* }
            }
        }
    };
}

events! {
    Connect "connect",
    Listen "listen",
    Send "send 100 bytes",
    Receive "receive, nothing there",
    ReceiveData "receive, 100 bytes just came",
    Shutdown "shutdown (CLOSE, half)",
    Close "close (CLOSE, and no more receiving)",
    Abort "abort",
    Status "status",
    Syn "`SYN` at RCV.NXT",
    SynOld "`SYN` of the handshake again",
    SynOldNewer "`SYN` below the window, newer timestamp",
    SynOldOlder "`SYN` below the window, older timestamp",
    SynNewOlder "`SYN` at RCV.NXT, older timestamp",
    SynData "`SYN` at RCV.NXT with 100 bytes",
    SynFin "`SYN,FIN` at RCV.NXT",
    SynRst "`SYN,RST` at RCV.NXT",
    SynAck "`SYN,ACK` at RCV.NXT, acknowledges all",
    SynAckOld "`SYN,ACK` of the handshake again",
    SynAckFuture "`SYN,ACK` at RCV.NXT, acknowledges what was never sent",
    AckAll "`ACK` of all",
    AckOld "`ACK` of nothing new",
    AckFuture "`ACK` of what was never sent",
    AckPast "`ACK` of the distant past",
    AckOutside "`ACK` beyond the window",
    Data "100 bytes at RCV.NXT",
    DataAckAll "100 bytes at RCV.NXT, acknowledges all",
    DataGap "100 bytes after a gap",
    DataOld "100 bytes below RCV.NXT",
    DataOverlap "100 bytes, half of them old",
    DataBeyond "100 bytes beyond the window",
    DataAckFuture "100 bytes, acknowledges what was never sent",
    DataUrgent "`URG`, 100 bytes at RCV.NXT",
    DataNoAck "100 bytes without `ACK`",
    DataOldTimestamp "100 bytes with an older timestamp",
    DataNoTimestamp "100 bytes without timestamp",
    Nothing "no control bit, no byte",
    Fin "`FIN,ACK` at RCV.NXT",
    FinAckAll "`FIN,ACK` at RCV.NXT, acknowledges all",
    FinData "`FIN,ACK` with 100 bytes",
    FinGap "`FIN,ACK` after a gap",
    FinOld "`FIN,ACK` of just before RCV.NXT again",
    FinNoAck "`FIN` without `ACK`",
    Reset "`RST` at RCV.NXT",
    ResetInside "`RST` within the window",
    ResetBelow "`RST` below the window",
    ResetBeyond "`RST` beyond the window",
    ResetAck "`RST,ACK` at RCV.NXT, acknowledges all",
    ResetAckFuture "`RST,ACK` at RCV.NXT, acknowledges what was never sent",
    RetransmitTimeout "3 s without an answer to 100 bytes, or to SYN or FIN",
    UserTimeout "10 min without an answer to 100 bytes, or to SYN or FIN",
    Silence "10 min in which nothing comes",
    TwoMsl "61 s in which nothing comes",
    ZeroWindow "window 0, then 100 bytes to send, 3 s",
    PortUnreachable "ICMP port unreachable, segment in flight",
    HostUnreachable "ICMP host unreachable, segment in flight",
    UnreachableOld "ICMP port unreachable, segment not in flight",
    Prohibited "ICMP prohibited by a filter, segment in flight",
    TooBig "ICMP fragmentation needed, MTU 600, segment in flight",
}

impl Event {
    /// Makes it happen; says what a call answered.
    pub fn happen(self, start: Start, station: &mut Station) -> String {
        let answer = match self {
            Event::Connect => match station.connect() {
                Ok(_) => "ok".into(),
                Err(error) => format!("{error:?}"),
            },
            Event::Listen => {
                let addr = ListenAddr { ip: None, port: HOST_PORT };
                match station.stack.listen(OWNER, addr, &ListenOptions::default()) {
                    Ok(id) => {
                        station.listener = Some(id);
                        "ok".into()
                    }
                    Err(error) => format!("{error:?}"),
                }
            }
            Event::Send | Event::Receive | Event::ReceiveData => self.transfer(start, station),
            Event::Shutdown | Event::Close | Event::Abort | Event::Status => self.control(start, station),
            _ => match self.segment(station) {
                Some(segment) => {
                    station.segment(segment);
                    // A delayed acknowledgement belongs to the answer.
                    station.pass(Duration::from_millis(45));
                    String::new()
                }
                None => self.time_or_icmp(station),
            },
        };
        station.flush();
        answer
    }

    fn transfer(self, start: Start, station: &mut Station) -> String {
        if self == Event::ReceiveData && start.is_synchronized() && !start.peer_finished() {
            station.plain(ACK, station.una, 100);
            station.sent.clear();
            station.told.clear();
        }
        let Some(conn) = station.conn else { return "no connection".into() };
        if self == Event::Send {
            return match station.stack.write(conn, &[b'z'; 100]) {
                Ok(()) => "ok".into(),
                Err(error) => format!("{error:?}"),
            };
        }
        let len = station.stack.peek(conn).len();
        station.stack.consume(conn, len);
        match (len, station.stack.state(conn)) {
            (0, ConnState::Open { finished: true }) => "end of stream".into(),
            (0, ConnState::Closed(reason)) => format!("{reason:?}"),
            (0, _) => "nothing yet".into(),
            (len, _) => format!("{len} bytes"),
        }
    }

    fn control(self, start: Start, station: &mut Station) -> String {
        if start == Start::Listen {
            return match self {
                Event::Status => "listening".into(),
                _ => {
                    station.stack.close_listener(station.listener.unwrap());
                    "ok".into()
                }
            };
        }
        let Some(conn) = station.conn else { return "no connection".into() };
        match self {
            Event::Shutdown => station.stack.shutdown(conn),
            Event::Close => station.stack.close(conn),
            Event::Abort => station.stack.abort(conn),
            _ => return format!("{:?}", station.stack.state(conn)),
        }
        "ok".into()
    }

    /// The segment of the peer that this event is, with numbers from where the connection stands.
    pub fn segment(self, station: &Station) -> Option<Segment> {
        let (una, nxt, rcv) = (station.una, station.nxt, station.rcv);
        let future = nxt + 1_000;
        let beyond = rcv + 8_000_000;
        let of = |flags: Flags, seq: i64, ack: i64, len: usize| Segment {
            flags,
            seq,
            ack,
            len,
            window: 65_535,
            tick: (!flags.contains(RST)).then_some(1),
        };
        Some(match self {
            Event::Syn => of(SYN, rcv, 0, 0),
            Event::SynOld => of(SYN, -1, 0, 0),
            Event::SynOldNewer => Segment { tick: Some(5), ..of(SYN, -70_000, 0, 0) },
            Event::SynOldOlder => Segment { tick: Some(-5), ..of(SYN, -70_000, 0, 0) },
            Event::SynNewOlder => Segment { tick: Some(-5), ..of(SYN, rcv, 0, 0) },
            Event::SynData => of(SYN, rcv, 0, 100),
            Event::SynFin => of(SYN | FIN, rcv, 0, 0),
            Event::SynRst => of(SYN | RST, rcv, 0, 0),
            Event::SynAck => of(SYN | ACK, rcv, nxt, 0),
            Event::SynAckOld => of(SYN | ACK, -1, 0, 0),
            Event::SynAckFuture => of(SYN | ACK, rcv, future, 0),
            Event::AckAll => of(ACK, rcv, nxt, 0),
            Event::AckOld => of(ACK, rcv, una, 0),
            Event::AckFuture => of(ACK, rcv, future, 0),
            Event::AckPast => of(ACK, rcv, una - 100_000, 0),
            Event::AckOutside => of(ACK, beyond, una, 0),
            Event::Data => of(ACK, rcv, una, 100),
            Event::DataAckAll => of(ACK, rcv, nxt, 100),
            Event::DataGap => of(ACK, rcv + 100, una, 100),
            Event::DataOld => of(ACK, rcv - 100, una, 100),
            Event::DataOverlap => of(ACK, rcv - 50, una, 100),
            Event::DataBeyond => of(ACK, beyond, una, 100),
            Event::DataAckFuture => of(ACK, rcv, future, 100),
            Event::DataUrgent => of(ACK | Flags::URG, rcv, una, 100),
            Event::DataNoAck => of(Flags::EMPTY, rcv, 0, 100),
            Event::DataOldTimestamp => Segment { tick: Some(-5), ..of(ACK, rcv, una, 100) },
            Event::DataNoTimestamp => Segment { tick: None, ..of(ACK, rcv, una, 100) },
            Event::Nothing => of(Flags::EMPTY, rcv, 0, 0),
            Event::Fin => of(FIN | ACK, rcv, una, 0),
            Event::FinAckAll => of(FIN | ACK, rcv, nxt, 0),
            Event::FinData => of(FIN | ACK, rcv, una, 100),
            Event::FinGap => of(FIN | ACK, rcv + 100, una, 0),
            Event::FinOld => of(FIN | ACK, rcv - 1, una, 0),
            Event::FinNoAck => of(FIN, rcv, 0, 0),
            Event::Reset => of(RST, rcv, 0, 0),
            Event::ResetInside => of(RST, rcv + 1_000, 0, 0),
            Event::ResetBelow => of(RST, rcv - 1_000, 0, 0),
            Event::ResetBeyond => of(RST, beyond, 0, 0),
            Event::ResetAck => of(RST | ACK, rcv, nxt, 0),
            Event::ResetAckFuture => of(RST | ACK, rcv, future, 0),
            _ => return None,
        })
    }

    fn time_or_icmp(self, station: &mut Station) -> String {
        match self {
            Event::RetransmitTimeout | Event::UserTimeout => {
                write(station);
                let seconds = if self == Event::UserTimeout { 600 } else { 3 };
                station.pass(Duration::from_secs(seconds));
            }
            Event::Silence => station.pass(Duration::from_secs(600)),
            Event::TwoMsl => station.pass(Duration::from_secs(61)),
            Event::ZeroWindow => {
                let (rcv, una) = (station.rcv, station.una);
                let closed = Segment { flags: ACK, seq: rcv, ack: una, len: 0, window: 0, tick: Some(1) };
                station.segment(closed);
                write(station);
                station.pass(Duration::from_secs(3));
            }
            _ => {
                write(station);
                station.sent.clear();
                self.icmp(station);
                station.flush();
            }
        }
        String::new()
    }

    /// An ICMP error that quotes the first 8 bytes of our oldest segment in flight, or of one that is not.
    fn icmp(self, station: &mut Station) {
        let at = if self == Event::UnreachableOld { station.una - 1_000 } else { station.una };
        let segment = tcp::Builder {
            source_port: HOST_PORT,
            destination_port: PEER_PORT,
            sequence: station.number(at),
            flags: ACK,
            ..tcp::Builder::default()
        };
        let mut quoted = alloc::vec![0; ipv4::MIN_HEADER_LEN + segment.header_len()];
        let header = ipv4::Builder::new(HOST, PEER, Protocol::TCP, 1_480);
        header.emit(&mut quoted).unwrap();
        segment.emit(&mut quoted[ipv4::MIN_HEADER_LEN..]).unwrap();
        let (code, next_hop_mtu) = match self {
            Event::HostUnreachable => (icmpv4::UnreachableCode::HOST, 0),
            Event::Prohibited => (icmpv4::UnreachableCode::PROHIBITED, 0),
            Event::TooBig => (icmpv4::UnreachableCode::FRAGMENTATION_NEEDED, 600),
            _ => (icmpv4::UnreachableCode::PORT, 0),
        };
        let quoted = icmpv4::Quoted(&quoted);
        let message = icmpv4::Message::DestinationUnreachable { code, next_hop_mtu, quoted };
        let mut bytes = alloc::vec![0; message.emitted_len()];
        message.emit(&mut bytes).unwrap();
        station.packet(Protocol::ICMPV4, &bytes);
    }
}

/// Queues 100 bytes where the state allows it.
fn write(station: &mut Station) {
    if let Some(conn) = station.conn {
        // Refused where the state does not allow it: the event then is about SYN or FIN.
        let _ = station.stack.write(conn, &[b'z'; 100]);
        station.flush();
    }
}
