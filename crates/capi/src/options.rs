//! Socket options: numbers of Linux in, values in C's layout out.

use crate::errno::{Errno, Result};
use crate::host::Host;
use crate::info::{lr_tcp_info, tcp_info};
use crate::table::{Kind, Settings, USER_TIMEOUT};
use core::ffi::c_int;
use core::time::Duration;
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};
use linerate_transport::{BufferSize, Congestion, Transport as _};

/// Least buffer that a program can ask for, in bytes.
pub(crate) const MIN_BUFFER: usize = 2_048;
/// Largest buffer, in bytes.
pub(crate) const MAX_BUFFER: usize = 1 << 30;
/// Longest name of a congestion control, with its zero byte (Linux: TCP_CA_NAME_MAX).
const NAME_MAX: usize = 16;

/// The value of an option.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A number.
    Int(c_int),
    /// SO_LINGER.
    Linger(libc::linger),
    /// TCP_CONGESTION.
    Name([u8; NAME_MAX]),
    /// TCP_INFO.
    Info(Box<lr_tcp_info>),
}

fn unknown<T>() -> Result<T> {
    Err(Errno(libc::ENOPROTOOPT))
}

fn flag(value: bool) -> Result<Value> {
    Ok(Value::Int(c_int::from(value)))
}

fn number(value: impl TryInto<c_int>) -> Result<Value> {
    Ok(Value::Int(value.try_into().unwrap_or(c_int::MAX)))
}

fn buffer(size: BufferSize) -> Result<Value> {
    match size {
        BufferSize::Fixed(bytes) | BufferSize::Auto { max: bytes } => number(bytes),
    }
}

fn name(congestion: Congestion) -> Value {
    let text: &[u8] = match congestion {
        Congestion::NewReno => b"reno",
        Congestion::Cubic => b"cubic",
    };
    let mut name = [0; NAME_MAX];
    name[..text.len()].copy_from_slice(text);
    Value::Name(name)
}

/// The congestion control of that name.
fn congestion(name: &[u8]) -> Result<Congestion> {
    let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    match &name[..len] {
        b"reno" => Ok(Congestion::NewReno),
        b"cubic" => Ok(Congestion::Cubic),
        _ => Err(Errno(libc::ENOENT)),
    }
}

impl Host {
    /// The value of an option.
    pub(crate) fn option(&mut self, fd: c_int, level: c_int, name: c_int) -> Result<Value> {
        match level {
            SOL_SOCKET => self.socket_option(fd, name),
            IPPROTO_TCP => self.tcp_option(fd, name),
            IPPROTO_IP | IPPROTO_IPV6 => {
                let settings = &self.sockets.get(fd)?.settings;
                match (level, name) {
                    (IPPROTO_IP, libc::IP_TOS) | (IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        number(settings.stream.tos)
                    }
                    (IPPROTO_IPV6, libc::IPV6_V6ONLY) => flag(settings.v6_only),
                    _ => unknown(),
                }
            }
            _ => self.sockets.get(fd).and(unknown()),
        }
    }

    fn socket_option(&mut self, fd: c_int, name: c_int) -> Result<Value> {
        let socket = self.sockets.get(fd)?;
        let is_datagram = matches!(socket.kind, Kind::Datagram { .. });
        let settings = &socket.settings;
        match name {
            libc::SO_ERROR => {
                let error = match &mut socket.kind {
                    Kind::Stream(stream) => stream.take_error(&self.node.stack),
                    _ => None,
                };
                self.forget_failed(fd)?;
                number(error.map_or(0, |error| error.0))
            }
            libc::SO_TYPE => number(if is_datagram { libc::SOCK_DGRAM } else { libc::SOCK_STREAM }),
            libc::SO_DOMAIN => number(socket.family),
            libc::SO_ACCEPTCONN => flag(matches!(socket.kind, Kind::Listening { .. })),
            libc::SO_REUSEADDR => flag(settings.reuse_address),
            libc::SO_BROADCAST => flag(true),
            libc::SO_KEEPALIVE => flag(settings.keep_alive_on),
            libc::SO_SNDBUF => buffer(settings.stream.send_buffer),
            libc::SO_RCVBUF if is_datagram => number(settings.datagram_buffer),
            libc::SO_RCVBUF => buffer(settings.stream.receive_buffer),
            libc::SO_LINGER => Ok(Value::Linger(libc::linger {
                l_onoff: c_int::from(settings.linger.is_some()),
                l_linger: settings.linger.map_or(0, c_int::from),
            })),
            _ => unknown(),
        }
    }

    fn tcp_option(&mut self, fd: c_int, option: c_int) -> Result<Value> {
        let socket = self.sockets.get(fd)?;
        if let Kind::Datagram { .. } = socket.kind {
            return unknown();
        }
        let settings = &socket.settings;
        let conn = match &socket.kind {
            Kind::Stream(stream) => Some(stream.id),
            _ => None,
        };
        let info = conn.and_then(|id| self.node.stack.info(id));
        match option {
            libc::TCP_NODELAY => flag(settings.stream.no_delay),
            libc::TCP_MAXSEG => match info {
                Some(info) => number(info.send_mss),
                None => number(settings.stream.mss.unwrap_or(536)),
            },
            libc::TCP_KEEPIDLE => number(settings.keep_alive.idle.as_secs()),
            libc::TCP_KEEPINTVL => number(settings.keep_alive.interval.as_secs()),
            libc::TCP_KEEPCNT => number(settings.keep_alive.probes),
            libc::TCP_USER_TIMEOUT => match settings.stream.user_timeout {
                USER_TIMEOUT => number(0),
                timeout => number(timeout.as_millis()),
            },
            libc::TCP_QUICKACK => flag(settings.stream.delayed_ack.segments <= 1),
            libc::TCP_CONGESTION => Ok(name(settings.stream.congestion)),
            libc::TCP_INFO => {
                let state = match socket.kind {
                    Kind::Listening { .. } => Some(linerate_stack::tcp::State::Listen),
                    _ => conn.and_then(|id| self.node.stack.tcp_state(id)),
                };
                let nothing =
                    lr_tcp_info { tcpi_state: crate::info::state_number(state), ..lr_tcp_info::default() };
                let unsent = conn.map_or(0, |id| self.node.stack.unsent(id));
                let details = conn.and_then(|id| self.node.stack.tcp_details(id));
                let found = info
                    .zip(details)
                    .map_or(nothing, |(info, details)| tcp_info(state, &info, &details, unsent));
                Ok(Value::Info(Box::new(found)))
            }
            _ => unknown(),
        }
    }

    /// Sets an option from the bytes of its value.
    pub(crate) fn set_option(&mut self, fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        let is_datagram = matches!(socket.kind, Kind::Datagram { .. });
        let settings = &mut socket.settings;
        match (level, name) {
            (SOL_SOCKET, libc::SO_LINGER) => settings.linger = linger(value)?,
            (SOL_SOCKET, _) => set_socket(settings, is_datagram, name, int(value)?)?,
            (IPPROTO_TCP, _) if is_datagram => return unknown(),
            (IPPROTO_TCP, libc::TCP_CONGESTION) => settings.stream.congestion = congestion(value)?,
            (IPPROTO_TCP, _) => set_tcp(settings, name, int(value)?)?,
            (IPPROTO_IP, libc::IP_TOS) | (IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                settings.stream.tos = u8::try_from(int(value)?).map_err(|_| Errno(libc::EINVAL))? & !3;
            }
            (IPPROTO_IPV6, libc::IPV6_V6ONLY) => match socket.kind {
                Kind::Idle { local: None } | Kind::Datagram { id: None, .. } => {
                    settings.v6_only = int(value)? != 0;
                }
                _ => return Err(Errno(libc::EINVAL)),
            },
            _ => return unknown(),
        }
        settings.stream.keep_alive = settings.keep_alive_on.then_some(settings.keep_alive);
        match &socket.kind {
            Kind::Stream(stream) => self.node.stack.set_options(stream.id, &socket.settings.stream),
            Kind::Listening { id, .. } => self.node.stack.set_listener_options(*id, &socket.settings.stream),
            Kind::Datagram { id: Some(id), .. } => {
                self.node.stack.udp_set_tos(*id, socket.settings.stream.tos);
                self.node.stack.set_udp_receive_buffer(*id, socket.settings.datagram_buffer);
            }
            Kind::Idle { .. } | Kind::Datagram { id: None, .. } => {}
        }
        Ok(())
    }
}

fn set_socket(settings: &mut Settings, is_datagram: bool, name: c_int, value: c_int) -> Result<()> {
    let bytes = || match usize::try_from(value) {
        Ok(bytes) => Ok(bytes.clamp(MIN_BUFFER, MAX_BUFFER)),
        Err(_) => Err(Errno(libc::EINVAL)),
    };
    match name {
        libc::SO_REUSEADDR => settings.reuse_address = value != 0,
        // Allowed in any case: programs ask for it before they broadcast.
        libc::SO_BROADCAST => {}
        libc::SO_KEEPALIVE => settings.keep_alive_on = value != 0,
        libc::SO_SNDBUF => settings.stream.send_buffer = BufferSize::Fixed(bytes()?),
        libc::SO_RCVBUF if is_datagram => settings.datagram_buffer = bytes()?,
        libc::SO_RCVBUF => settings.stream.receive_buffer = BufferSize::Fixed(bytes()?),
        _ => return unknown(),
    }
    Ok(())
}

fn set_tcp(settings: &mut Settings, name: c_int, value: c_int) -> Result<()> {
    let seconds = || match u64::try_from(value) {
        Ok(seconds @ 1..=32_767) => Ok(Duration::from_secs(seconds)),
        _ => Err(Errno(libc::EINVAL)),
    };
    match name {
        libc::TCP_NODELAY => settings.stream.no_delay = value != 0,
        libc::TCP_QUICKACK => settings.stream.delayed_ack.segments = if value != 0 { 1 } else { 2 },
        libc::TCP_MAXSEG => match u16::try_from(value) {
            Ok(mss) if mss >= 88 => settings.stream.mss = Some(mss),
            _ => return Err(Errno(libc::EINVAL)),
        },
        libc::TCP_KEEPIDLE => settings.keep_alive.idle = seconds()?,
        libc::TCP_KEEPINTVL => settings.keep_alive.interval = seconds()?,
        libc::TCP_KEEPCNT => match u8::try_from(value) {
            Ok(probes @ 1..=127) => settings.keep_alive.probes = probes,
            _ => return Err(Errno(libc::EINVAL)),
        },
        libc::TCP_USER_TIMEOUT => match u64::try_from(value) {
            Ok(0) => settings.stream.user_timeout = USER_TIMEOUT,
            Ok(ms) => settings.stream.user_timeout = Duration::from_millis(ms),
            Err(_) => return Err(Errno(libc::EINVAL)),
        },
        _ => return unknown(),
    }
    Ok(())
}

fn int(value: &[u8]) -> Result<c_int> {
    let bytes = value.first_chunk().ok_or(Errno(libc::EINVAL))?;
    Ok(c_int::from_ne_bytes(*bytes))
}

fn linger(value: &[u8]) -> Result<Option<u16>> {
    let on = int(value)?;
    let seconds = int(value.get(size_of::<c_int>()..).unwrap_or(&[]))?;
    let seconds = u16::try_from(seconds.clamp(0, i32::from(u16::MAX))).unwrap_or(u16::MAX);
    Ok((on != 0).then_some(seconds))
}
