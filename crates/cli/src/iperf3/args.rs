//! Arguments of `linerate iperf3`: those of the original by its names, and where to run.

use crate::args::ServeOptions;
use crate::values::{AddressChoice, ByteSize, CongestionName, DeviceChoice, Offload, ValueError};
use clap::Args;
use linerate_lab::from_text;
use linerate_serve::iperf3::{MAX_BURST, MAX_PACING_TIMER_US, Params, Protocol};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

from_text!(BitRate, StreamRate, TypeOfService);

/// Rate of each stream of datagrams where none is asked for, in bits per second, as in the original.
const UDP_RATE_BPS: u64 = 1 << 20;

/// Arguments of `iperf3`.
#[derive(Args, Debug)]
pub struct Iperf3 {
    /// The server: an address or a name
    #[arg(short = 'c', long = "client", value_name = "HOST", required = true)]
    pub host: String,

    /// Port of the server
    #[arg(short, long, value_name = "PORT", default_value_t = 5201)]
    pub port: u16,

    /// Seconds to transmit
    #[arg(short = 't', long, value_name = "SECONDS", conflicts_with_all = ["bytes", "blockcount"],
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub time: Option<u32>,

    /// Bytes to transmit, instead of a time
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blockcount")]
    pub bytes: Option<ByteSize>,

    /// Blocks or datagrams to transmit, instead of a time
    #[arg(short = 'k', long, value_name = "N")]
    pub blockcount: Option<ByteSize>,

    /// Length of a block or datagram [default: 128K for TCP, what fits a segment for UDP]
    #[arg(short, long, value_name = "SIZE")]
    pub length: Option<ByteSize>,

    /// Streams at once
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=128))]
    pub parallel: u16,

    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub reverse: bool,

    /// Both send
    #[arg(long)]
    pub bidir: bool,

    /// Datagrams instead of TCP
    #[arg(short, long)]
    pub udp: bool,

    /// Rate of each stream in bits per second, with K, M or G; 0 for no limit; after a slash, how many datagrams or blocks are
    /// sent at once [default: 1M for UDP, else none]
    #[arg(short, long, visible_alias = "bandwidth", value_name = "RATE[/BURST]")]
    pub bitrate: Option<StreamRate>,

    /// Microseconds between two looks at what is due by that rate, up to 1,000,000
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_PACING_TIMER_US))]
    pub pacing_timer: u64,

    /// Rate at which TCP streams are paced, in bits per second
    #[arg(long, value_name = "RATE")]
    pub fq_rate: Option<BitRate>,

    /// Seconds between reports, 0.1 to 60; 0 for none
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,

    /// Print JSON
    #[arg(short = 'J', long)]
    pub json: bool,

    /// Seconds at the start that do not count
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 0,
          value_parser = clap::value_parser!(u16).range(0..=600))]
    pub omit: u16,

    /// Largest segment in bytes
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=9_176))]
    pub set_mss: Option<u16>,

    /// Socket buffers on both sides
    #[arg(short, long, value_name = "SIZE")]
    pub window: Option<ByteSize>,

    /// Send small segments at once
    #[arg(short = 'N', long)]
    pub no_delay: bool,

    /// Type of service octet, 0 to 255, also as 0x34 or 064
    #[arg(short = 'S', long, value_name = "N")]
    pub tos: Option<TypeOfService>,

    /// Congestion control of both sides: cubic or reno
    #[arg(short = 'C', long, value_name = "NAME")]
    pub congestion: Option<CongestionName>,

    /// Accepted and without effect: payload is never copied here
    #[arg(short = 'Z', long)]
    pub zerocopy: bool,

    /// IPv4 only
    #[arg(short = '4', long = "version4", conflicts_with = "version6")]
    pub version4: bool,

    /// IPv6 only
    #[arg(short = '6', long = "version6")]
    pub version6: bool,

    /// Milliseconds that the server may take to answer the first connection
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    pub connect_timeout: u32,

    /// Show what the server reports, too
    #[arg(long)]
    pub get_server_output: bool,

    /// Sequence numbers of 64 bits in datagrams
    #[arg(long)]
    pub udp_counters_64bit: bool,

    /// What each line begins with
    #[arg(short = 'T', long, value_name = "TEXT")]
    pub title: Option<String>,

    /// Where it runs, and the rest of the common settings.
    #[command(flatten)]
    pub place: Place,
}

/// Where the client runs: on the host's sockets, or on our own stack.
#[derive(Args, Clone, Debug, Default)]
pub struct Place {
    /// What to run on: the host's sockets, or our own stack on a TAP device made for the run, an address of its own on an
    /// existing interface [default: kernel]
    #[arg(long, value_name = "tap[:NAME]|packet:INTERFACE|xdp:INTERFACE|uio:NAME|rtl[:NAME]|kernel")]
    pub device: Option<DeviceChoice>,

    /// Address of the stack with its prefix length (24 and, for IPv6, 64 if not given), or dhcp, or slaac; repeatable
    /// [default: 192.168.1.4/24 and fd00:6c72::4/64]
    #[arg(long, value_name = "ADDRESS[/PREFIX]|dhcp|slaac")]
    pub address: Vec<AddressChoice>,

    /// Default gateway; repeatable, one per family [default: the host side of a TAP device]
    #[arg(long, value_name = "IP")]
    pub gateway: Vec<IpAddr>,

    /// Largest IP packet in bytes, 1280 to 9216 (9000 with uio:) [default: 1500, or what the interface has]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..=9216))]
    pub mtu: Option<u16>,

    /// VLAN (802.1Q) that all frames carry; with --device packet:, xdp:, tap, rtl or uio: [default: untagged]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub vlan: Option<u16>,

    /// Offloads to use where the device has them: all, none, or a list of tx-checksum, rx-checksum, tso, gro, gather
    /// [default: all]
    #[arg(long, value_name = "all|none|LIST")]
    pub offload: Option<Offload>,

    /// Memory for packet buffers and sockets, 4MiB to 1TiB [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
}

impl Place {
    /// Says what the host's sockets cannot do and was asked for; the common settings, made for a server, take it.
    pub fn check(&self) -> Result<(), String> {
        if self.device.as_ref().is_some_and(|device| *device != DeviceChoice::Kernel) {
            return Ok(());
        }
        let flags = [("address", !self.address.is_empty()), ("offload", self.offload.is_some())];
        match flags.into_iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!(
                "'--{flag}' needs a device with an address of its own (--device tap or packet:INTERFACE): the host's sockets have \
                 the host's addresses and offloads"
            )),
            None => Ok(()),
        }
    }

    /// The settings of `serve` that are the same; where nothing is said, the host's sockets.
    pub fn options(&self) -> ServeOptions {
        let place = self.clone();
        ServeOptions {
            device: Some(place.device.unwrap_or(DeviceChoice::Kernel)),
            address: place.address,
            gateway: place.gateway,
            mtu: place.mtu,
            vlan: place.vlan,
            offload: place.offload,
            memory: place.memory,
            queues: Some(1),
            ..ServeOptions::default()
        }
    }
}

impl Iperf3 {
    /// What to ask the server for; an error says which flag cannot be, and why.
    pub fn params(&self) -> Result<Params, String> {
        let protocol = if self.udp { Protocol::Udp } else { Protocol::Tcp };
        let (bytes, blocks) = (self.bytes.map_or(0, |n| n.0), self.blockcount.map_or(0, |n| n.0));
        if self.bytes.or(self.blockcount).is_some() && bytes + blocks == 0 {
            return Err("invalid value '0' for '--bytes' or '--blockcount': expected 1 or more".to_owned());
        }
        let most = if self.udp { 65_507 } else { 1 << 20 };
        let least = if self.udp { 16 } else { 1 };
        if let Some(length) = self.length.filter(|length| !(least..=most).contains(&length.0)) {
            return Err(format!("invalid value '{length}' for '--length': expected {least} to {most} bytes"));
        }
        if let Some(window) = self.window.filter(|window| !(2_048..=512 << 20).contains(&window.0)) {
            return Err(format!("invalid value '{window}' for '--window': expected 2KiB to 512MiB"));
        }
        let time = if bytes + blocks > 0 { 0 } else { self.time.unwrap_or(10) };
        let usual_rate = if self.udp { UDP_RATE_BPS } else { 0 };
        Ok(Params {
            protocol,
            omit: Duration::from_secs(self.omit.into()),
            time: Duration::from_secs(time.into()),
            bytes,
            blocks,
            parallel: self.parallel.into(),
            len: self.length.map_or(0, |length| length.0 as usize),
            reverse: self.reverse,
            bidirectional: self.bidir,
            window: self.window.map(|window| window.0 as usize),
            mss: self.set_mss,
            no_delay: self.no_delay,
            rate_bps: self.bitrate.map_or(usual_rate, |rate| rate.rate.0),
            burst: self.bitrate.map_or(0, |rate| rate.burst),
            pacing_timer: Duration::from_micros(self.pacing_timer),
            congestion: self.congestion.as_ref().map(|name| name.0),
            pacing_bps: self.fq_rate.map_or(0, |rate| rate.0),
            tos: self.tos.map_or(0, |tos| tos.0),
            counters_64bit: self.udp_counters_64bit,
            server_output: self.get_server_output,
        })
    }

    /// Time between reports.
    pub fn interval(&self) -> Result<Duration, String> {
        if self.interval == 0.0 || (0.1..=60.0).contains(&self.interval) {
            return Ok(Duration::from_secs_f64(self.interval));
        }
        Err(format!("invalid value '{}' for '--interval': expected 0, or 0.1 to 60 seconds", self.interval))
    }
}

/// A rate in bits per second, as the original reads it: K, M and G are powers of 1,000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitRate(pub u64);

impl FromStr for BitRate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wanted = || ValueError::new("a rate in bits per second such as 100M, 2.5G or 0");
        let (digits, step) = match text.chars().last() {
            Some('k' | 'K') => (&text[..text.len() - 1], 1e3),
            Some('m' | 'M') => (&text[..text.len() - 1], 1e6),
            Some('g' | 'G') => (&text[..text.len() - 1], 1e9),
            _ => (text, 1.0),
        };
        let is_number = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number = digits.parse::<f64>().ok().filter(|_| is_number).ok_or_else(wanted)?;
        let rate = number * step;
        // Beyond what any wire carries, the digits of a float would run out.
        if rate > 1e15 { Err(wanted()) } else { Ok(BitRate(rate.round() as u64)) }
    }
}

/// What `-b` asks for: a rate, and after a slash how many blocks are sent at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamRate {
    rate: BitRate,
    /// Zero where none is asked for.
    burst: u32,
}

impl FromStr for StreamRate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (rate, burst) = text.split_once('/').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let rate = rate.parse()?;
        let Some(burst) = burst else { return Ok(StreamRate { rate, burst: 0 }) };
        match burst.parse() {
            Ok(burst) if (1..=MAX_BURST).contains(&u64::from(burst)) => Ok(StreamRate { rate, burst }),
            _ => Err(ValueError::new("a rate such as 100M, and after a slash 1 to 1000 blocks at once")),
        }
    }
}

impl fmt::Display for StreamRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.burst > 0 { write!(f, "{}/{}", self.rate, self.burst) } else { self.rate.fmt(f) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A type-of-service octet: decimal, 0x and hexadecimal, or 0 and octal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeOfService(pub u8);

impl FromStr for TypeOfService {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let parsed = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
            (Some(digits), _) => u8::from_str_radix(digits, 16),
            (None, Some(digits)) if !digits.is_empty() => u8::from_str_radix(digits, 8),
            _ => text.parse(),
        };
        parsed
            .map(TypeOfService)
            .map_err(|_| ValueError::new("an octet: 0 to 255, 0x00 to 0xff or 00 to 0377"))
    }
}

impl fmt::Display for TypeOfService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn parsed(line: &str) -> Result<Iperf3, String> {
        let words = ["linerate", "iperf3"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Iperf3(args) => Ok(*args),
            _ => unreachable!("the words say iperf3"),
        }
    }

    fn params(line: &str) -> Result<Params, String> {
        parsed(line)?.params()
    }

    #[test]
    fn options_mean_what_they_mean_in_the_original() {
        let usual = Params::default();
        assert_eq!(params("-c host"), Ok(usual.clone()));
        let zero = Duration::ZERO;
        for (line, wanted) in [
            (
                "-c h -n 100M -P 4 -R",
                Params { bytes: 100 << 20, time: zero, parallel: 4, reverse: true, ..usual.clone() },
            ),
            ("-c h -k 5 -l 1K", Params { blocks: 5, time: zero, len: 1_024, ..usual.clone() }),
            ("-c h -u", Params { protocol: Protocol::Udp, rate_bps: 1 << 20, ..usual.clone() }),
            (
                "-c h -u -b 2.5G -l 1472",
                Params { protocol: Protocol::Udp, rate_bps: 2_500_000_000, len: 1_472, ..usual.clone() },
            ),
            (
                "-c h -b 500M -O 2 -t 60 -i 60",
                Params {
                    rate_bps: 500_000_000,
                    omit: Duration::from_secs(2),
                    time: Duration::from_secs(60),
                    ..usual.clone()
                },
            ),
            (
                "-c h -w 64K -M 1400 -N -S 0x10 -Z -4 -T s1 --get-server-output",
                Params {
                    window: Some(65_536),
                    mss: Some(1_400),
                    no_delay: true,
                    tos: 16,
                    server_output: true,
                    ..usual.clone()
                },
            ),
        ] {
            assert_eq!(params(line), Ok(wanted), "{line}");
        }
    }

    #[test]
    fn what_the_host_s_sockets_do_not_have_needs_a_device() {
        for (line, refused) in [
            ("", None),
            ("--device kernel", None),
            ("--address 10.0.0.9/24", Some("'--address'")),
            ("--device kernel --address 10.0.0.9/24", Some("'--address'")),
            ("--offload none", Some("'--offload'")),
            ("--device tap --address 10.0.0.9/24 --offload none", None),
        ] {
            let found = parsed(&format!("-c h {line}")).unwrap().place.check();
            match refused {
                Some(flag) => {
                    assert!(found.as_ref().is_err_and(|error| error.contains(flag)), "{line}: {found:?}")
                }
                None => assert_eq!(found, Ok(()), "{line}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (line, wanted) in [
            ("-R", "--client"),
            ("-c h -t 0", "--time"),
            ("-c h -t 5 -n 5", "--bytes"),
            ("-c h -n 0", "--bytes"),
            ("-c h -P 129", "--parallel"),
            ("-c h -R --bidir", "--bidir"),
            ("-c h -u -l 15", "--length"),
            ("-c h -l 2M", "--length"),
            ("-c h -b 10X", "--bitrate"),
            ("-c h -b nan", "--bitrate"),
            ("-c h -b 1G/0", "--bitrate"),
            ("-c h -b 1G/1001", "--bitrate"),
            ("-c h -b 1G/", "--bitrate"),
            ("-c h --pacing-timer 0", "--pacing-timer"),
            ("-c h -S 256", "--tos"),
            ("-c h -C bbr", "--congestion"),
            ("-c h -w 1", "--window"),
            ("-c h -4 -6", "--version6"),
        ] {
            let error = params(line).expect_err(line);
            assert!(error.contains(wanted), "{line}: {error}");
        }
        for interval in ["0.01", "61", "nan"] {
            assert!(parsed(&format!("-c h -i {interval}")).unwrap().interval().is_err(), "{interval}");
        }
    }
}
