//! What a client asks for, checked.

use super::protocol::ErrorCode;
use core::time::Duration;
use linerate_transport::Congestion;
use serde_json::{Value, json};

/// Most streams in one direction.
pub const MAX_STREAMS: u64 = 128;
/// Longest test in seconds (a day), as in the original.
const MAX_TIME_S: u64 = 86_400;
/// Longest omit time in seconds (10 minutes), as in the original.
const MAX_OMIT_S: u64 = 600;
/// Most blocks of one burst, as in the original.
pub const MAX_BURST: u64 = 1_000;
/// Time between two looks at what is due by a rate, as in the original.
pub const PACING_TIMER: Duration = Duration::from_millis(1);
/// Longest such time that is taken, in microseconds.
pub const MAX_PACING_TIMER_US: u64 = 1_000_000;
/// Longest TCP block in bytes.
const MAX_BLOCK: u64 = 1 << 20;
/// Longest UDP datagram in bytes.
const MAX_DATAGRAM: u64 = 65_507;
/// Largest socket buffer in bytes.
const MAX_WINDOW: u64 = 512 << 20;

/// Transport protocol of the streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Blocks of bytes.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Parameters of one test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Params {
    /// What carries the streams.
    pub protocol: Protocol,
    /// Time at the start that does not count.
    pub omit: Duration,
    /// Length of the test; zero when it ends by `bytes` or `blocks`, or when its client ends it.
    pub time: Duration,
    /// Ends after this many bytes; zero if not.
    pub bytes: u64,
    /// Ends after this many blocks; zero if not.
    pub blocks: u64,
    /// Streams in each direction.
    pub parallel: usize,
    /// Block or datagram length in bytes.
    pub len: usize,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidirectional: bool,
    /// Socket buffers in bytes, if asked for.
    pub window: Option<usize>,
    /// Segment size in bytes, if asked for.
    pub mss: Option<u16>,
    /// Send small segments at once.
    pub no_delay: bool,
    /// Rate of each stream in bits per second; zero for no limit.
    pub rate_bps: u64,
    /// Blocks or datagrams that are sent at once at that rate; zero and one are by the pacing timer.
    pub burst: u32,
    /// Time between two looks at what is due by that rate.
    pub pacing_timer: Duration,
    /// Congestion control, if asked for.
    pub congestion: Option<Congestion>,
    /// Rate at which the streams are paced, in bits per second; zero for no pacing.
    pub pacing_bps: u64,
    /// IPv4 TOS octet.
    pub tos: u8,
    /// Sequence numbers of 64 bits in datagrams.
    pub counters_64bit: bool,
    /// The client wants this server's own report.
    pub server_output: bool,
}

impl Params {
    /// Streams that the client opens in all.
    pub fn stream_count(&self) -> usize {
        if self.bidirectional { 2 * self.parallel } else { self.parallel }
    }

    /// Whether the server sends on the stream opened as number `index` (from 0): with `--bidir` a client opens those
    /// on which it sends first.
    pub fn server_sends(&self, index: usize) -> bool {
        if self.bidirectional { index >= self.parallel } else { self.reverse }
    }

    /// Bytes after which the test is complete, where it is given by `-n` or `-k`.
    pub fn total_bytes(&self) -> Option<u64> {
        match (self.bytes, self.blocks) {
            (0, 0) => None,
            (0, blocks) => blocks.checked_mul(self.len as u64),
            (bytes, _) => Some(bytes),
        }
    }

    /// Whether the test ends at a time that is known.
    pub fn ends_by_time(&self) -> bool {
        self.total_bytes().is_none() && !self.time.is_zero()
    }

    /// As the client's JSON, which [`Params::parse`] reads.
    pub(super) fn emit(&self) -> Value {
        let mut json = json!({
            if_udp(self.protocol): true,
            "omit": self.omit.as_secs(),
            "time": self.time.as_secs(),
            "num": self.bytes,
            "blockcount": self.blocks,
            "parallel": self.parallel,
            "len": self.len,
            "pacing_timer": self.pacing_timer.as_micros().min(u128::from(u64::MAX)) as u64,
            "client_version": concat!("linerate ", env!("CARGO_PKG_VERSION")),
        });
        let mut set = |name: &str, wanted: bool, value: Value| {
            if wanted {
                json[name] = value;
            }
        };
        set("reverse", self.reverse, true.into());
        set("bidirectional", self.bidirectional, true.into());
        set("window", self.window.is_some(), self.window.into());
        set("MSS", self.mss.is_some(), self.mss.into());
        set("nodelay", self.no_delay, true.into());
        set("bandwidth", self.rate_bps > 0, self.rate_bps.into());
        set("burst", self.burst > 0, self.burst.into());
        set("fqrate", self.pacing_bps > 0, self.pacing_bps.into());
        set("TOS", self.tos > 0, self.tos.into());
        set("congestion", self.congestion.is_some(), self.congestion.map(Congestion::name).into());
        set("udp_counters_64bit", self.counters_64bit, 1.into());
        set("get_server_output", self.server_output, 1.into());
        json
    }

    /// Reads the client's JSON.
    pub fn parse(text: &[u8]) -> Result<Params, ErrorCode> {
        let json: Value = serde_json::from_slice(text).map_err(|_| ErrorCode::Params)?;
        if !json.is_object() {
            return Err(ErrorCode::Params);
        }
        let (tcp, udp, sctp) = (flag(&json, "tcp")?, flag(&json, "udp")?, flag(&json, "sctp")?);
        if udp && tcp || sctp {
            return Err(ErrorCode::Params);
        }
        let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
        let most = if udp { MAX_DATAGRAM } else { MAX_BLOCK };
        let default_len = if udp { 1448 } else { 128 << 10 };
        let len = match number(&json, "len", MAX_BLOCK, ErrorCode::BlockSize)? {
            0 => default_len,
            len if len > most => return Err(ErrorCode::BlockSize),
            len => len,
        };
        // A datagram carries time and sequence number at least.
        if udp && len < 16 {
            return Err(ErrorCode::BlockSize);
        }
        let parallel = match number(&json, "parallel", MAX_STREAMS, ErrorCode::Streams)? {
            0 => 1,
            n => n,
        };
        let window = number(&json, "window", MAX_WINDOW, ErrorCode::BufferSize)?;
        let mss = number(&json, "MSS", 9216, ErrorCode::Mss)?;
        // The original's default for UDP is 1 Mb/s, which its client always sends in full; absent is unlimited.
        let rate_bps = number(&json, "bandwidth", u64::MAX, ErrorCode::Params)?;
        let (reverse, bidirectional) = (flag(&json, "reverse")?, flag(&json, "bidirectional")?);
        Ok(Params {
            protocol,
            omit: Duration::from_secs(number(&json, "omit", MAX_OMIT_S, ErrorCode::Omit)?),
            time: Duration::from_secs(number(&json, "time", MAX_TIME_S, ErrorCode::Duration)?),
            bytes: number(&json, "num", u64::MAX, ErrorCode::Params)?,
            blocks: number(&json, "blockcount", u64::MAX, ErrorCode::Params)?,
            parallel: usize::try_from(parallel).map_err(|_| ErrorCode::Streams)?,
            len: usize::try_from(len).map_err(|_| ErrorCode::BlockSize)?,
            reverse,
            bidirectional,
            window: (window > 0).then(|| usize::try_from(window).unwrap_or(usize::MAX)),
            mss: if mss > 0 { u16::try_from(mss).ok() } else { None },
            no_delay: flag(&json, "nodelay")?,
            rate_bps,
            burst: u32::try_from(number(&json, "burst", MAX_BURST, ErrorCode::Burst)?).unwrap_or(0),
            pacing_timer: match number(&json, "pacing_timer", u64::MAX, ErrorCode::Params)? {
                0 => PACING_TIMER,
                us => Duration::from_micros(us.min(MAX_PACING_TIMER_US)),
            },
            congestion: congestion(&json, reverse || bidirectional)?,
            pacing_bps: number(&json, "fqrate", u64::MAX, ErrorCode::Params)?,
            tos: u8::try_from(number(&json, "TOS", 255, ErrorCode::Params)?).unwrap_or(0) & 0xfc,
            counters_64bit: flag(&json, "udp_counters_64bit")?,
            server_output: flag(&json, "get_server_output")?,
        })
    }
}

/// The key by which a client asks for this protocol.
fn if_udp(protocol: Protocol) -> &'static str {
    if protocol == Protocol::Udp { "udp" } else { "tcp" }
}

/// A flag: `true`, a number other than zero, or absent.
fn flag(json: &Value, name: &str) -> Result<bool, ErrorCode> {
    match &json[name] {
        Value::Null => Ok(false),
        Value::Bool(set) => Ok(*set),
        Value::Number(n) => Ok(n.as_f64() != Some(0.0)),
        _ => Err(ErrorCode::Params),
    }
}

/// The client's `-C`, by the name that its system has for it; absent or empty is none. One that we lack is refused only
/// where `we_send`: to receive takes none.
fn congestion(json: &Value, we_send: bool) -> Result<Option<Congestion>, ErrorCode> {
    match &json["congestion"] {
        Value::Null => Ok(None),
        Value::String(name) if name.is_empty() => Ok(None),
        Value::String(name) => match Congestion::from_name(name) {
            None if we_send => Err(ErrorCode::Congestion),
            known => Ok(known),
        },
        _ => Err(ErrorCode::Params),
    }
}

/// A whole number of 0 to `most`; absent is 0. Too large is the error `beyond`.
fn number(json: &Value, name: &str, most: u64, beyond: ErrorCode) -> Result<u64, ErrorCode> {
    match &json[name] {
        Value::Null => Ok(0),
        Value::Number(n) => match n.as_u64() {
            Some(n) if n <= most => Ok(n),
            Some(_) => Err(beyond),
            None => Err(ErrorCode::Params),
        },
        _ => Err(ErrorCode::Params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(Protocol, usize, usize), ErrorCode>) {
        let got = Params::parse(text.as_bytes()).map(|p| (p.protocol, p.stream_count(), p.len));
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn parameters_are_checked_by_type_and_range() {
        check(
            r#"{"tcp":true,"omit":0,"time":10,"parallel":1,"len":131072}"#,
            Ok((Protocol::Tcp, 1, 131_072)),
        );
        check(r#"{"udp":true,"time":2,"len":1448,"bandwidth":200000000}"#, Ok((Protocol::Udp, 1, 1448)));
        check(r#"{"tcp":true,"parallel":8,"bidirectional":true}"#, Ok((Protocol::Tcp, 16, 131_072)));
        check(r#"{"tcp":true,"parallel":129}"#, Err(ErrorCode::Streams));
        check(r#"{"tcp":true,"len":1048577}"#, Err(ErrorCode::BlockSize));
        check(r#"{"udp":true,"len":65508}"#, Err(ErrorCode::BlockSize));
        check(r#"{"udp":true,"len":3}"#, Err(ErrorCode::BlockSize));
        check(r#"{"tcp":true,"time":86401}"#, Err(ErrorCode::Duration));
        check(r#"{"tcp":true,"omit":601}"#, Err(ErrorCode::Omit));
        check(r#"{"tcp":true,"MSS":9217}"#, Err(ErrorCode::Mss));
        check(r#"{"tcp":true,"window":536870913}"#, Err(ErrorCode::BufferSize));
        check(r#"{"tcp":true,"time":-1}"#, Err(ErrorCode::Params));
        check(r#"{"tcp":true,"time":"10"}"#, Err(ErrorCode::Params));
        check(r#"{"tcp":true,"udp":true}"#, Err(ErrorCode::Params));
        check(r#"{"tcp":[]}"#, Err(ErrorCode::Params));
        check(r#"{"tcp":true,"reverse":true,"congestion":"bbr"}"#, Err(ErrorCode::Congestion));
        check(r#"{"tcp":true,"bidirectional":true,"congestion":"bbr"}"#, Err(ErrorCode::Congestion));
        check(r#"{"tcp":true,"congestion":3}"#, Err(ErrorCode::Params));
        check("[]", Err(ErrorCode::Params));
        check("{", Err(ErrorCode::Params));
        check("", Err(ErrorCode::Params));
    }

    #[test]
    fn congestion_control_and_pacing_are_those_of_the_client() {
        let text = br#"{"tcp":true,"congestion":"reno","fqrate":8000000}"#;
        let p = Params::parse(text).unwrap();
        assert_eq!((p.congestion, p.pacing_bps), (Some(Congestion::NewReno), 8_000_000));
        let p = Params::parse(br#"{"tcp":true,"congestion":""}"#).unwrap();
        assert_eq!((p.congestion, p.pacing_bps), (None, 0));
        // What the client sends with is its own business.
        let p = Params::parse(br#"{"tcp":true,"congestion":"bbr"}"#).unwrap();
        assert_eq!(p.congestion, None);
    }

    #[test]
    fn bursts_are_those_of_the_client() {
        let p = Params::parse(br#"{"udp":true,"bandwidth":1000000,"burst":20,"pacing_timer":500}"#).unwrap();
        assert_eq!((p.burst, p.pacing_timer), (20, Duration::from_micros(500)));
        let p = Params::parse(br#"{"udp":true,"pacing_timer":0}"#).unwrap();
        assert_eq!((p.burst, p.pacing_timer), (0, PACING_TIMER));
        assert_eq!(Params::parse(br#"{"udp":true,"burst":1001}"#), Err(ErrorCode::Burst));
        let p = Params::parse(br#"{"udp":true,"pacing_timer":5000000}"#).unwrap();
        assert_eq!(p.pacing_timer, Duration::from_secs(1));
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        for text in [
            r#"{"tcp":true,"time":2,"parallel":4,"reverse":true,"window":65536,"MSS":1400,"nodelay":true,"omit":1}"#,
            r#"{"udp":true,"num":5000,"len":100,"bidirectional":true,"bandwidth":1000000,"udp_counters_64bit":1}"#,
            r#"{"tcp":true,"blockcount":7,"congestion":"reno","fqrate":1000,"TOS":16,"get_server_output":1}"#,
        ] {
            let params = Params::parse(text.as_bytes()).unwrap();
            let again = serde_json::to_vec(&params.emit()).unwrap();
            assert_eq!(Params::parse(&again), Ok(params), "{text}");
        }
    }

    #[test]
    fn direction_by_stream() {
        let p = Params::parse(br#"{"tcp":true,"parallel":2,"bidirectional":true}"#).unwrap();
        let sends: [bool; 4] = core::array::from_fn(|i| p.server_sends(i));
        assert_eq!(sends, [false, false, true, true]);
        let p = Params::parse(br#"{"tcp":true,"parallel":2,"reverse":1,"num":100}"#).unwrap();
        assert!(p.server_sends(0) && p.server_sends(1));
        assert_eq!(p.total_bytes(), Some(100));
    }
}
