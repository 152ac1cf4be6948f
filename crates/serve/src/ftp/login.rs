//! Who is who: password hashes, and the pace at which wrong passwords may be tried.
//!
//! FTP sends passwords in the clear, and firmware that checks one does nothing else meanwhile. The hash is therefore
//! argon2id with little memory and two passes ([`MEMORY_KIB`], [`PASSES`]): about 10 ms of a PC's processor (7 MiB and
//! five passes, the least that is advised for web accounts, take 25 ms), and memory that a firmware image can spare
//! for that moment. It keeps a settings file from giving a password away at a glance. The hashing is work for other threads
//! where there are some; a bounded number of checks is under way at once, and addresses take turns.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use argon2::{Algorithm, Argon2, Params, PasswordHasher, Version};
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use linerate_wire::units::Instant;

/// Memory that hashing a password takes, in KiB.
pub const MEMORY_KIB: u32 = 4_096;
/// Passes over that memory.
pub const PASSES: u32 = 2;
/// Most memory that a hash in the settings may ask for, in KiB: 64 MiB.
pub const MAX_HASH_MEMORY_KIB: u32 = 65_536;
/// Most passes that a hash in the settings may ask for.
pub const MAX_PASSES: u32 = 16;

/// Checked instead of the hash of a user that does not exist, so that the time taken does not tell. No password
/// gives its all-zero output in practice, and a match would be refused anyway.
const NOBODY: &str =
    "$argon2id$v=19$m=4096,t=2,p=1$bm9ib2R5LW5vYm9keQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a password was not hashed or checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashError {
    /// The salt has fewer than 8 or more than 48 bytes.
    SaltLength,
    /// The hash is not a PHC string of argon2, or asks for more than the limits.
    Format,
    /// Not enough memory at the moment.
    NoMemory,
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashError::SaltLength => "the salt must have 8 to 48 bytes",
            HashError::Format => "not an argon2 PHC string within the limits",
            HashError::NoMemory => "not enough memory to hash a password",
        })
    }
}

impl core::error::Error for HashError {}

/// Hashes a password for [`User`](super::User) as a PHC string. The salt shall be random, 16 bytes are usual.
pub fn hash_password(password: &str, salt: &[u8]) -> Result<String, HashError> {
    if !(8..=48).contains(&salt.len()) {
        return Err(HashError::SaltLength);
    }
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| HashError::Format)?;
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = argon2.hash_password_with_salt(password.as_bytes(), salt);
    hash.map(|hash| hash.to_string()).map_err(|_| HashError::NoMemory)
}

/// A hash taken apart.
struct Parsed {
    argon2: Argon2<'static>,
    salt: argon2::password_hash::phc::Salt,
    output: argon2::password_hash::phc::Output,
}

fn parse_hash(hash: &str) -> Result<Parsed, HashError> {
    let hash = argon2::PasswordHash::new(hash).map_err(|_| HashError::Format)?;
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(|_| HashError::Format)?;
    let version = hash.version.map_or(Ok(Version::V0x13), Version::try_from);
    let version = version.map_err(|_| HashError::Format)?;
    let params = Params::try_from(&hash).map_err(|_| HashError::Format)?;
    if params.m_cost() > MAX_HASH_MEMORY_KIB || params.t_cost() > MAX_PASSES {
        return Err(HashError::Format);
    }
    let (Some(salt), Some(output)) = (hash.salt, hash.hash) else { return Err(HashError::Format) };
    Ok(Parsed { argon2: Argon2::new(algorithm, version, params), salt, output })
}

/// Whether [`verify`] could check passwords against this hash.
pub(super) fn is_valid_hash(hash: &str) -> bool {
    parse_hash(hash).is_ok()
}

/// Whether the password is the one of `hash`. For a user that does not exist (`None`) it takes as long and says no.
pub(super) fn verify(hash: Option<&str>, password: &[u8]) -> Result<bool, HashError> {
    let parsed = parse_hash(hash.unwrap_or(NOBODY))?;
    let mut buffer = [0; argon2::password_hash::phc::Output::MAX_LENGTH];
    let out = buffer.get_mut(..parsed.output.len()).ok_or(HashError::Format)?;
    let hashed = parsed.argon2.hash_password_into(password, &parsed.salt, out);
    hashed.map_err(|error| match error {
        argon2::Error::OutOfMemory => HashError::NoMemory,
        _ => HashError::Format,
    })?;
    let computed = argon2::password_hash::phc::Output::new(out).map_err(|_| HashError::Format)?;
    // The comparison of outputs takes the same time wherever they differ.
    Ok(computed == parsed.output && hash.is_some())
}

/// What counts as one address in limits: an IPv4 address, or a /64 network of IPv6, which a single host can use
/// whole.
pub(super) fn limit_key(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
        v4 => v4,
    }
}

/// What is remembered of an address.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Record {
    /// Wrong passwords, none of them longer than [`Throttle::FORGET`] after the one before.
    wrong: u32,
    last_wrong: Option<Instant>,
    last_valid: Option<Instant>,
}

/// Addresses that gave passwords lately: how late their next wrong one is answered, and whether somebody there knows
/// one.
///
/// A right password is answered at once, whatever others at the same address do. A wrong one is answered late, and the
/// later the more there were.
#[derive(Default)]
pub(super) struct Throttle {
    records: BTreeMap<IpAddr, Record>,
}

impl Throttle {
    /// Most addresses remembered; beyond, the one that was quiet for longest is forgotten.
    const MAX: usize = 1_024;
    /// After this time without a wrong password those before do not count.
    const FORGET: Duration = Duration::from_secs(300);
    /// How long an address is known by a right password.
    const KNOWN: Duration = Duration::from_secs(3_600);
    /// Wrong passwords that are answered after the plain delay; each further one doubles it.
    const PLAIN: u32 = 3;
    /// Most doublings.
    const DOUBLINGS: u32 = 4;

    fn record(&mut self, ip: IpAddr) -> &mut Record {
        let key = limit_key(ip);
        if self.records.len() >= Self::MAX && !self.records.contains_key(&key) {
            let quiet =
                self.records.iter().min_by_key(|(_, record)| record.last_wrong.max(record.last_valid));
            quiet.map(|(ip, _)| *ip).and_then(|ip| self.records.remove(&ip));
        }
        self.records.entry(key).or_default()
    }

    /// `ip` gave a wrong password. Answers how much later than now that is told, `delay` being the least.
    pub(super) fn wrong(&mut self, ip: IpAddr, now: Instant, delay: Duration) -> Duration {
        let record = self.record(ip);
        if record.last_wrong.is_none_or(|last| last + Self::FORGET < now) {
            record.wrong = 0;
        }
        record.wrong = record.wrong.saturating_add(1);
        record.last_wrong = Some(now);
        let doublings = record.wrong.saturating_sub(Self::PLAIN).min(Self::DOUBLINGS);
        delay.saturating_mul(1 << doublings)
    }

    /// `ip` gave a right password.
    pub(super) fn right(&mut self, ip: IpAddr, now: Instant) {
        self.record(ip).last_valid = Some(now);
    }

    /// Whether `ip` gave a right password lately.
    pub(super) fn is_known(&self, ip: IpAddr, now: Instant) -> bool {
        let record = self.records.get(&limit_key(ip));
        record.and_then(|record| record.last_valid).is_some_and(|valid| valid + Self::KNOWN > now)
    }
}

/// Passwords that wait to be checked. Addresses take turns, so that one with many does not hold up the others.
#[derive(Default)]
pub(super) struct Checks {
    waiting: BTreeMap<IpAddr, VecDeque<u32>>,
    turns: VecDeque<IpAddr>,
    under_way: usize,
}

impl Checks {
    /// A session's password waits.
    pub(super) fn add(&mut self, ip: IpAddr, session: u32) {
        let ip = limit_key(ip);
        let queue = self.waiting.entry(ip).or_default();
        if queue.is_empty() {
            self.turns.push_back(ip);
        }
        queue.push_back(session);
    }

    /// The next session whose password is to be checked, unless `max` are being checked. It counts as under way.
    pub(super) fn begin(&mut self, max: usize) -> Option<u32> {
        if self.under_way >= max {
            return None;
        }
        let ip = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&ip)?;
        let session = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&ip);
        } else {
            self.turns.push_back(ip);
        }
        self.under_way += 1;
        Some(session)
    }

    /// A check that was under way has ended.
    pub(super) fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    #[test]
    fn a_password_is_recognised_by_its_hash_only() {
        let hash = hash_password("open sesame", b"0123456789abcdef").unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=4096,t=2,p=1$"), "{hash}");
        assert!(is_valid_hash(&hash));
        assert_eq!(verify(Some(&hash), b"open sesame"), Ok(true));
        assert_eq!(verify(Some(&hash), b"open sesamE"), Ok(false));
        assert_eq!(verify(Some(&hash), b""), Ok(false));
        assert_eq!(verify(None, b"open sesame"), Ok(false));
        assert_ne!(hash_password("open sesame", b"0123456789abcdeF").unwrap(), hash);
        assert_eq!(hash_password("x", b"short"), Err(HashError::SaltLength));
    }

    #[test]
    fn a_published_hash_is_verified() {
        // From the test vectors of the argon2 reference implementation: version 19, argon2id, 2 passes, 64 MiB.
        let hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert_eq!(verify(Some(hash), b"password"), Ok(true));
    }

    #[test]
    fn hashes_that_ask_for_too_much_are_refused() {
        for hash in [
            "",
            "plain",
            "$argon2id$v=19$m=65537,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=64,t=17,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHQ",
            "$scrypt$ln=15,r=8,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        ] {
            assert!(!is_valid_hash(hash), "{hash}");
        }
        assert!(is_valid_hash(NOBODY));
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn wrong_passwords_are_answered_ever_later_up_to_a_bound() {
        let mut throttle = Throttle::default();
        let now = Instant::from_millis(5);
        let a: IpAddr = "2001:db8::1".parse().unwrap();
        let same: IpAddr = "2001:db8::ffff:2".parse().unwrap();
        for expected in [1, 1, 1, 2, 4, 8, 16, 16, 16] {
            assert_eq!(throttle.wrong(same, now, SECOND), expected * SECOND, "a /64 is one address");
        }
        assert_eq!(throttle.wrong("2001:db8:0:1::1".parse().unwrap(), now, SECOND), SECOND);
        assert_eq!(throttle.wrong(a, now + Throttle::FORGET + SECOND, SECOND), SECOND);
        assert!(!throttle.is_known(a, now));
        throttle.right(a, now);
        assert!(throttle.is_known(same, now) && !throttle.is_known(a, now + Throttle::KNOWN));
        for i in 0..5_000 {
            throttle.wrong(IpAddr::V4(Ipv4Addr::from(i)), now + SECOND, SECOND);
        }
        assert_eq!(throttle.records.len(), Throttle::MAX);
    }

    #[test]
    fn addresses_take_turns() {
        let mut checks = Checks::default();
        let ip = |last: u8| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        for session in 0..100 {
            checks.add(ip(1), session);
        }
        checks.add(ip(2), 1_000);
        assert_eq!((checks.begin(2), checks.begin(2), checks.begin(2)), (Some(0), Some(1_000), None));
        checks.end();
        assert_eq!((checks.begin(2), checks.begin(2)), (Some(1), None));
        checks.end();
        checks.end();
        let rest: Vec<u32> = core::iter::from_fn(|| checks.begin(usize::MAX)).collect();
        assert_eq!(rest, (2..100).collect::<Vec<u32>>());
        assert!(checks.waiting.is_empty() && checks.turns.is_empty());
    }
}
