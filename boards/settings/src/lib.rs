//! Makes a board's `board.toml` and its folder of files into Rust, when its image is built.
//!
//! A board's build script calls [`generate`]; the image includes what it wrote:
//!
//! ```text
//! include!(concat!(env!("OUT_DIR"), "/settings.rs"));   // SETTINGS, FILES, BUILT_NS
//! ```
#![forbid(unsafe_code)]

mod check;
mod files;
mod source;

use anyhow::{Context, Result, bail, ensure};
use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use serde::Deserialize;
use std::net::IpAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Memory that the check of a password takes on the board, in KiB.
const HASH_KIB: u32 = 16;
/// Passes over it.
const HASH_PASSES: u32 = 3;

/// What is taken instead of `network.offloads`, where the environment of the build has it: figures compare two images.
const OFFLOADS: &str = "LINERATE_BOARD_OFFLOADS";

/// Most cores.
const MOST_CORES: usize = 4;

/// Longest time that a frame waits for others, in microseconds.
const MOST_TIMER_US: u32 = 100_000;
/// Most frames that do, where the interface has no smaller bound.
pub const MOST_FRAMES: u32 = 255;

/// Seconds of a watchdog: the loop turns once a second, and the chip of `nucleo-h743zi` counts no more than 32.
const WATCHDOG: std::ops::RangeInclusive<u32> = 2..=30;

/// Bytes of a trace or a capture that are of use, and the most.
const RING: usize = 4 << 10;
const MOST_RING: usize = 64 << 20;

/// `board.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Board {
    name: String,
    /// Where there is nothing to choose it is left out.
    #[serde(default = "one")]
    cores: usize,
    network: Network,
    #[serde(default)]
    interrupts: Interrupts,
    #[serde(default)]
    watchdog: Watchdog,
    servers: Servers,
    memory: Memory,
    files: Files,
}

fn one() -> usize {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    ethernet: String,
    addresses: Vec<String>,
    gateways: Vec<IpAddr>,
    ipv6: bool,
    offloads: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interrupts {
    mode: Mode,
    timer_us: u32,
    threshold: u32,
    adaptive: bool,
    reserve: u32,
}

/// Without it each frame interrupts, and nothing is left to others.
impl Default for Interrupts {
    fn default() -> Interrupts {
        Interrupts { mode: Mode::default(), timer_us: 0, threshold: 1, adaptive: false, reserve: 0 }
    }
}

/// What the timer counts from: `PacingMode` of `linerate-nic`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    None,
    LastInterrupt,
    #[default]
    FirstNewPacket,
    LastNewPacket,
}

/// Without it there is one all the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Watchdog {
    seconds: u32,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        Watchdog { seconds: 8 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    http: Vec<u16>,
    iperf3: Vec<u16>,
    iperf3_by_core: Option<u16>,
    ftp: Vec<u16>,
    ftp_anonymous: bool,
    ftp_users: Vec<User>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    name: String,
    password: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    connections: usize,
    sockets: usize,
    send_buffer: usize,
    receive_buffer: usize,
    receive_buffers: usize,
    ram_disk: usize,
    trace: usize,
    capture: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    flash: String,
}

/// What the hardware of a board and its image allow.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most frames that its interface can be told to wait for, [`MOST_FRAMES`] at most.
    pub frames: u32,
    /// Bytes of the heap.
    pub heap: usize,
    /// Bytes of each receive buffer that lies in the heap, as many on each core; 0 where they have memory of their own.
    pub receive_buffer: usize,
}

/// Reads `board.toml` and the folder that it names, both in `folder`, and writes `settings.rs` to `out`; what the board's `limits`
/// do not allow is an error.
///
/// Cargo is told (on standard output) to build again when one of them changes.
pub fn generate(folder: &Path, out: &Path, limits: &Limits) -> Result<()> {
    let path = folder.join("board.toml");
    println!("cargo::rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut board = parse(&text, limits).with_context(|| format!("{}", path.display()))?;
    println!("cargo::rerun-if-env-changed={OFFLOADS}");
    if let Ok(text) = std::env::var(OFFLOADS) {
        board.network.offloads =
            text.parse().with_context(|| format!("{OFFLOADS}: {text:?} given, true or false expected"))?;
    }
    let flash = folder.join(&board.files.flash);
    println!("cargo::rerun-if-changed={}", flash.display());
    let files = files::collect(&flash)?;
    let built = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    let source = source::of(&board, &files, built.as_nanos() as i64)?;
    let out = out.join("settings.rs");
    std::fs::write(&out, source).with_context(|| format!("cannot write {}", out.display()))
}

fn parse(text: &str, limits: &Limits) -> Result<Board> {
    let board: Board = toml::from_str(text)?;
    check::board(&board, limits)?;
    Ok(board)
}

/// An Ethernet address as `02:00:c0:a8:01:32`.
fn ethernet(text: &str) -> Result<[u8; 6]> {
    let bytes: Vec<u8> =
        text.split(':')
            .map(|part| u8::from_str_radix(part, 16))
            .collect::<Result<_, _>>()
            .with_context(|| format!("network.ethernet: {text:?} is not six bytes as 02:00:c0:a8:01:32"))?;
    let Ok(address) = <[u8; 6]>::try_from(bytes) else {
        bail!("network.ethernet: {text:?} is not six bytes as 02:00:c0:a8:01:32")
    };
    ensure!(address[0] & 1 == 0, "network.ethernet: {text} is the address of a group");
    Ok(address)
}

/// An address with the length of its prefix, as `192.168.1.50/24`.
fn cidr(text: &str) -> Result<(IpAddr, u8)> {
    let wrong =
        || format!("network.addresses: {text:?} is not an address with a prefix length as 192.168.1.50/24");
    let (address, len) = text.split_once('/').with_context(wrong)?;
    let address: IpAddr = address.parse().with_context(wrong)?;
    let len: u8 = len.parse().with_context(wrong)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    ensure!(len <= most, "network.addresses: {text}: a prefix of {most} bits at most expected");
    Ok((address, len))
}

/// The hash of a password, with less memory than a server has.
fn hash(user: &User) -> Result<String> {
    ensure!(!user.name.is_empty(), "servers.ftp_users: a user without a name");
    let params = Params::new(HASH_KIB, HASH_PASSES, 1, None).map_err(|error| anyhow::anyhow!("{error}"))?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    // The image holds one hash of each user, and whoever has the image has both: the name is salt enough.
    let salt = format!("linerate firmware {}", user.name);
    let hash = argon2.hash_password_with_salt(user.password.as_bytes(), salt.as_bytes());
    Ok(hash.map_err(|error| anyhow::anyhow!("the password of {:?}: {error}", user.name))?.to_string())
}

#[cfg(test)]
mod tests;
