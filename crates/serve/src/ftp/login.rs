//! Who is who: password hashes, and the pace at which wrong passwords may be tried.
//!
//! FTP sends passwords in the clear, and a server that checks one does nothing else meanwhile. The hash is therefore
//! argon2id with little memory and two passes ([`MEMORY_KIB`], [`PASSES`]): about 10 ms of a PC's processor (7 MiB and
//! five passes, the least that is advised for web accounts, take 25 ms), and memory that a firmware image can spare
//! for that moment. It keeps a settings file from giving a password away at a glance. The server checks one password
//! per turn at most, and those of an address that was wrong one second apart.

use alloc::collections::BTreeMap;
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

/// Addresses that gave a wrong password lately, and when their next one may be checked.
#[derive(Default)]
pub(super) struct Throttle {
    until: BTreeMap<IpAddr, Instant>,
}

impl Throttle {
    /// Most addresses remembered; beyond, the one whose time ends first is forgotten.
    const MAX: usize = 1_024;

    /// When the next password from `ip` may be checked.
    pub(super) fn next_check(&self, ip: IpAddr, now: Instant) -> Instant {
        self.until.get(&limit_key(ip)).copied().unwrap_or(now).max(now)
    }

    /// `ip` gave a wrong password.
    pub(super) fn penalise(&mut self, ip: IpAddr, now: Instant, delay: Duration) {
        if self.until.len() >= Self::MAX {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() >= Self::MAX {
            let first = self.until.iter().min_by_key(|(_, until)| **until).map(|(ip, _)| *ip);
            first.and_then(|ip| self.until.remove(&ip));
        }
        self.until.insert(limit_key(ip), now + delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn the_throttle_is_bounded_and_counts_a_64_as_one() {
        let mut throttle = Throttle::default();
        let now = Instant::from_millis(5);
        let a: IpAddr = "2001:db8::1".parse().unwrap();
        throttle.penalise(a, now, Duration::from_secs(1));
        assert_eq!(throttle.next_check("2001:db8::ffff:2".parse().unwrap(), now), Instant::from_millis(1005));
        assert_eq!(throttle.next_check("2001:db8:0:1::1".parse().unwrap(), now), now);
        for i in 0..5_000 {
            let ip = IpAddr::V4(Ipv4Addr::from(i));
            throttle.penalise(ip, now, Duration::from_secs(1));
            assert_eq!(throttle.next_check(ip, now), Instant::from_millis(1005));
        }
        assert_eq!(throttle.until.len(), Throttle::MAX);
    }
}
