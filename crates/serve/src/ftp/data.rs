//! The data connection: how it comes about, and who may have it (RFC 959 section 3.2, RFC 2428, RFC 2577).
//!
//! ```text
//!             PASV, EPSV                  accepted from the peer
//!   None ──────────────────> Passive ────────────────────────────> Open
//!    │  PORT, EPRT            transfer command            established  ^
//!    └──────────> Active ────────────────────> Connecting ────────────┘
//! ```
//! After an upload that could not be stored it is `Draining` until the client has seen that, or two seconds have passed.
//! Any of them goes back to `None` when a new address is agreed on, and after each transfer.

use super::hub::{SessionId, Timer, Turn};
use super::reply::{Replies, reply};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use linerate_transport::{
    AcceptBacklog, ConnId, ConnState, ConnectError, ListenAddr, ListenError, ListenOptions, ListenerId,
};

/// How many ports are tried before a passive listener is given up.
const PORT_TRIES: u16 = 64;
/// Connections to a passive port that wait to be looked at: the client's, and some of others.
const BACKLOG: AcceptBacklog = AcceptBacklog(8);
/// Bytes thrown away in one turn; then others get theirs.
const DRAIN_LEN: usize = 1 << 20;
/// Lowest port that PORT and EPRT may name: those below belong to services (RFC 2577 section 3).
const LOWEST_PORT: u16 = 1_024;

/// Where the data connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Channel {
    /// Nothing was agreed on.
    None,
    /// We listen.
    Passive(ListenerId),
    /// We shall connect there when a transfer begins.
    Active(SocketAddr),
    /// We connect.
    Connecting(ConnId),
    /// It is there.
    Open(ConnId),
    /// The upload over it failed here. What still comes is thrown away for a moment, so that the client, which is
    /// sending, reads the reply before its connection is reset.
    Draining(ConnId),
}

/// Whether the data connection comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    Yes,
    /// There is no room for it at the moment. A client whose own SYN finds none sends another; so do we.
    NoRoom,
    No,
}

impl Channel {
    /// The connection, coming about or open.
    pub(super) fn conn(self) -> Option<ConnId> {
        match self {
            Channel::Connecting(conn) | Channel::Open(conn) | Channel::Draining(conn) => Some(conn),
            _ => None,
        }
    }
}

/// Reads the argument of PORT: `h1,h2,h3,h4,p1,p2`.
pub(super) fn parse_port(arg: &str) -> Option<SocketAddr> {
    let mut numbers = [0u8; 6];
    let mut parts = arg.split(',');
    for number in &mut numbers {
        *number = parts.next().filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    }
    let [a, b, c, d, high, low] = numbers;
    let ip = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    parts.next().is_none().then_some(SocketAddr::new(ip, u16::from_be_bytes([high, low])))
}

/// What is wrong with the argument of EPRT or EPSV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EprtError {
    /// It has not the form of RFC 2428.
    Syntax,
    /// Its address family is neither 1 (IPv4) nor 2 (IPv6).
    Family,
}

/// Reads the argument of EPRT: `|1|192.0.2.1|6275|`, with any delimiter (RFC 2428 section 2).
pub(super) fn parse_eprt(arg: &str) -> Result<SocketAddr, EprtError> {
    let delimiter = arg.chars().next().filter(char::is_ascii_graphic).ok_or(EprtError::Syntax)?;
    let mut parts = arg.split(delimiter).skip(1);
    let mut part = || parts.next().ok_or(EprtError::Syntax);
    let (family, ip, port, end) = (part()?, part()?, part()?, part()?);
    if !end.is_empty() || parts.next().is_some() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(EprtError::Syntax);
    }
    let ip = match family {
        "1" => ip.parse::<Ipv4Addr>().map(IpAddr::V4).map_err(|_| EprtError::Syntax)?,
        "2" => ip.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| EprtError::Syntax)?,
        _ => return Err(EprtError::Family),
    };
    Ok(SocketAddr::new(ip, port.parse().map_err(|_| EprtError::Syntax)?))
}

/// The number of an address's family in EPRT and EPSV.
fn family(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 1 } else { 2 }
}

/// The address for a passive listener: that of the control connection, but all of them for a link-local one, which
/// names no interface by itself.
fn listen_ip(local: IpAddr) -> Option<IpAddr> {
    match local {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => None,
        ip => Some(ip),
    }
}

/// A session's data connection, and what is agreed on about the next one.
pub(super) struct Data {
    session: SessionId,
    /// The client's and our end of the control connection, with which those of the data connection must agree.
    peer: SocketAddr,
    local: SocketAddr,
    pub(super) channel: Channel,
    epsv_all: bool,
}

impl Data {
    pub(super) fn new(session: SessionId, peer: SocketAddr, local: SocketAddr) -> Self {
        Data { session, peer, local, channel: Channel::None, epsv_all: false }
    }

    /// As in a new session (REIN).
    pub(super) fn reset(&mut self, turn: &mut Turn<'_, '_>) {
        self.close(turn);
        self.epsv_all = false;
    }

    /// PASV (RFC 959).
    pub(super) fn pasv(&mut self, turn: &mut Turn<'_, '_>) -> Replies {
        if self.epsv_all {
            return reply(501, "PASV is not allowed after EPSV ALL");
        }
        let IpAddr::V4(local) = self.local.ip() else {
            return reply(501, "PASV is for IPv4, use EPSV");
        };
        self.listen(turn).map_or_else(no_port, |port| {
            let [a, b, c, d] = turn.hub.config.passive_address.unwrap_or(local).octets();
            let [high, low] = port.to_be_bytes();
            reply(227, format_args!("Entering Passive Mode ({a},{b},{c},{d},{high},{low})"))
        })
    }

    /// EPSV (RFC 2428 section 3).
    pub(super) fn epsv(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Replies {
        let ours = family(self.local.ip());
        match arg {
            "" => {}
            _ if arg.eq_ignore_ascii_case("ALL") => {
                self.epsv_all = true;
                return reply(200, "EPSV ALL: no other data connection will be set up");
            }
            "1" | "2" if arg.as_bytes() == [b'0' + ours] => {}
            _ if arg.bytes().all(|b| b.is_ascii_digit()) => return other_family(ours),
            _ => return reply(501, "Syntax: EPSV [1|2|ALL]"),
        }
        self.listen(turn).map_or_else(no_port, |port| {
            reply(229, format_args!("Entering Extended Passive Mode (|||{port}|)"))
        })
    }

    /// PORT (RFC 959).
    pub(super) fn port(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Replies {
        if self.epsv_all {
            return reply(501, "PORT is not allowed after EPSV ALL");
        }
        match parse_port(arg) {
            Some(remote) => self.set_active(turn, remote),
            None => reply(501, "Syntax: PORT <h1>,<h2>,<h3>,<h4>,<p1>,<p2>"),
        }
    }

    /// EPRT (RFC 2428 section 2).
    pub(super) fn eprt(&mut self, turn: &mut Turn<'_, '_>, arg: &str) -> Replies {
        if self.epsv_all {
            return reply(501, "EPRT is not allowed after EPSV ALL");
        }
        let ours = family(self.local.ip());
        match parse_eprt(arg) {
            Ok(remote) if family(remote.ip()) == ours => self.set_active(turn, remote),
            Ok(_) | Err(EprtError::Family) => other_family(ours),
            Err(EprtError::Syntax) => reply(501, "Syntax: EPRT |<family>|<address>|<port>|"),
        }
    }

    /// Only the client's own address, and no service's port: else the server would attack others for him (the FTP
    /// bounce attack, RFC 2577 section 3).
    fn set_active(&mut self, turn: &mut Turn<'_, '_>, remote: SocketAddr) -> Replies {
        if remote.ip() != self.peer.ip() || remote.port() < LOWEST_PORT {
            turn.hub.stats.bounces_refused += 1;
            log::warn!(target: "ftp", "{}: data connection to {remote} refused", self.peer);
            return reply(504, "Only to your own address, and to ports from 1024 on");
        }
        self.close(turn);
        // From the control connection's address, for the scope of a link-local one.
        let mut addr = self.peer;
        addr.set_port(remote.port());
        self.channel = Channel::Active(addr);
        reply(200, format_args!("Data connection will go to port {}", remote.port()))
    }

    /// Listens on a random port of the range and answers which; `None` when none is to be had.
    fn listen(&mut self, turn: &mut Turn<'_, '_>) -> Option<u16> {
        self.close(turn);
        let config = turn.config();
        let (first, count) = config.passive_share.of(&config.passive_ports)?;
        let start = ((turn.ctx.random)() % u64::from(count)) as u16;
        let options =
            ListenOptions { backlog: BACKLOG, socket: config.socket.clone(), ..ListenOptions::default() };
        for offset in 0..count.min(PORT_TRIES) {
            let number = (u32::from(start) + u32::from(offset)) % u32::from(count);
            // Within the range by the definition of a share.
            let port = first + number as u16 * config.passive_share.servers.max(1);
            let addr = ListenAddr { ip: listen_ip(self.local.ip()), port };
            match turn.ctx.net.listen(turn.hub.owner, addr, &options) {
                Ok(listener) => {
                    turn.hub.data_listeners.insert(listener, self.session);
                    self.channel = Channel::Passive(listener);
                    return Some(port);
                }
                Err(ListenError::InUse) => {}
                Err(error) => {
                    log::warn!(target: "ftp", "{}: no passive listener: {error}", self.peer);
                    break;
                }
            }
        }
        turn.hub.stats.data_open_failures += 1;
        None
    }

    /// Somebody connected to our passive port. True when it was the client, and the connection is there.
    pub(super) fn accept(&mut self, turn: &mut Turn<'_, '_>) -> bool {
        let Channel::Passive(listener) = self.channel else { return false };
        while let Some(conn) = turn.ctx.net.accept(listener) {
            let remote = turn.ctx.net.info(conn).map(|info| info.remote);
            if remote.map(|addr| addr.ip().to_canonical()) != Some(self.peer.ip()) {
                // Else somebody who guesses the port would get the file, or give one (RFC 2577 section 4).
                turn.hub.stats.foreign_data += 1;
                if let Some(remote) = remote {
                    log::warn!(target: "ftp", "{}: data connection from {remote} refused", self.peer);
                }
                turn.ctx.net.abort(conn);
                continue;
            }
            self.close(turn);
            turn.hub.conns.insert(conn, self.session);
            self.channel = Channel::Open(conn);
            return true;
        }
        false
    }

    /// Begins the active open, when that is what was agreed on.
    pub(super) fn connect(&mut self, turn: &mut Turn<'_, '_>) -> Begun {
        let Channel::Active(remote) = self.channel else { return Begun::Yes };
        let mut local = self.local;
        local.set_port(0);
        let local = Some(local);
        match turn.ctx.net.connect(turn.hub.owner, local, remote, &turn.hub.config.socket) {
            Ok(conn) => {
                turn.hub.conns.insert(conn, self.session);
                self.channel = Channel::Connecting(conn);
                Begun::Yes
            }
            Err(ConnectError::NoMemory | ConnectError::NoPort) => Begun::NoRoom,
            Err(error) => {
                log::warn!(target: "ftp", "{}: no data connection to {remote}: {error}", self.peer);
                turn.hub.stats.data_open_failures += 1;
                self.channel = Channel::None;
                Begun::No
            }
        }
    }

    /// Throws away what comes over a connection whose upload has failed; lets it go when the client has ended it.
    pub(super) fn drain(&mut self, turn: &mut Turn<'_, '_>) {
        let Channel::Draining(conn) = self.channel else { return };
        // The state first: what arrives between the two looks is seen by the second.
        let state = turn.ctx.net.state(conn);
        let mut left = DRAIN_LEN;
        while left > 0 {
            let len = turn.ctx.net.peek(conn).len();
            if len == 0 {
                break;
            }
            turn.ctx.net.consume(conn, len);
            left = left.saturating_sub(len);
        }
        match state {
            _ if left == 0 => turn.set_timer(self.session, Timer::Resume, turn.ctx.now),
            ConnState::Open { finished: false } | ConnState::Connecting => {}
            ConnState::Open { finished: true } | ConnState::Closed(_) => {
                turn.clear_timer(self.session, Timer::Data);
                self.finish(turn);
            }
        }
    }

    /// Refuses a transfer for which no data connection was agreed on, or whose one was lost already.
    pub(super) fn check_agreed(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), Replies> {
        if let Channel::Open(conn) = self.channel
            && matches!(turn.ctx.net.state(conn), ConnState::Closed(_))
        {
            self.close(turn);
        }
        match self.channel {
            Channel::None | Channel::Draining(_) => Err(reply(425, "Use EPSV, PASV, EPRT or PORT first")),
            _ => Ok(()),
        }
    }

    /// Ends the data connection in order: what is queued is delivered.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_, '_>) {
        if let Some(conn) = self.channel.conn() {
            turn.hub.conns.remove(&conn);
            turn.ctx.net.close(conn);
            self.channel = Channel::None;
        }
        self.close(turn);
    }

    /// Takes back whatever was agreed on; an open connection is reset.
    pub(super) fn close(&mut self, turn: &mut Turn<'_, '_>) {
        match core::mem::replace(&mut self.channel, Channel::None) {
            Channel::None | Channel::Active(_) => {}
            Channel::Passive(listener) => {
                turn.hub.data_listeners.remove(&listener);
                turn.ctx.net.close_listener(listener);
            }
            Channel::Connecting(conn) | Channel::Open(conn) | Channel::Draining(conn) => {
                turn.hub.conns.remove(&conn);
                turn.ctx.net.abort(conn);
            }
        }
    }
}

fn no_port() -> Replies {
    reply(425, "No port is free for a data connection")
}

fn other_family(ours: u8) -> Replies {
    reply(522, format_args!("Network protocol not supported, use ({ours})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn port_arguments() {
        let check = |arg: &str, expected: Option<&str>| {
            assert_eq!(parse_port(arg), expected.map(|addr| addr.parse().unwrap()), "{arg}");
        };
        check("192,0,2,1,24,131", Some("192.0.2.1:6275"));
        check("0,0,0,0,0,0", Some("0.0.0.0:0"));
        for bad in
            ["", "1,2,3,4,5", "1,2,3,4,5,6,7", "256,0,0,1,1,1", "1,2,3,4,-5,6", "1,2,3,4,+5,6", "a,b,c,d,e,f"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn eprt_arguments() {
        let check = |arg: &str, expected: Result<&str, EprtError>| {
            assert_eq!(parse_eprt(arg), expected.map(|addr| addr.parse().unwrap()), "{arg}");
        };
        check("|1|192.0.2.1|6275|", Ok("192.0.2.1:6275"));
        check("|2|2001:db8::1|6275|", Ok("[2001:db8::1]:6275"));
        check("!1!192.0.2.1!6275!", Ok("192.0.2.1:6275"));
        check("|3|192.0.2.1|6275|", Err(EprtError::Family));
        for bad in [
            "",
            "|1|192.0.2.1|6275",
            "|1|192.0.2.1|6275|x",
            "|1|192.0.2.1|6275||",
            "|1|192.0.2.1|65536|",
            "|1|192.0.2.1|+1|",
            "|1|2001:db8::1|1|",
            "|2|192.0.2.1|1|",
            "é1é192.0.2.1é6275é",
        ] {
            check(bad, Err(EprtError::Syntax));
        }
    }

    proptest! {
        #[test]
        fn no_argument_panics(arg in "[|0-9a-f:.,]{0,40}") {
            let _ = parse_port(&arg);
            let _ = parse_eprt(&arg);
        }
    }
}
