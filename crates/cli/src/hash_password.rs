//! `linerate hash-password`: a password as the configuration wants it, without its being seen.

use linerate_linux::{random, terminal};
use linerate_serve::ftp;
use std::fmt;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::process::ExitCode;

/// Longest password in bytes.
const LONGEST: usize = 1024;

/// Why there is no hash.
#[derive(Debug)]
pub enum HashPasswordError {
    /// Nothing was typed.
    Empty,
    /// The second time something else was typed.
    Different,
    /// It is longer than this program takes.
    TooLong,
    /// It is not UTF-8, or has a control character.
    Characters,
    /// It could not be read.
    Read(io::Error),
    /// It could not be hashed.
    Hash(ftp::HashError),
}

impl HashPasswordError {
    /// 130 where Ctrl-C ended it, as shells have it; 1 otherwise.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            HashPasswordError::Read(error) if error.kind() == io::ErrorKind::Interrupted => {
                ExitCode::from(130)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for HashPasswordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashPasswordError::Empty => f.write_str("the password is empty"),
            HashPasswordError::Different => f.write_str("the two passwords are not the same"),
            HashPasswordError::TooLong => write!(f, "the password is longer than {LONGEST} bytes"),
            HashPasswordError::Characters => {
                f.write_str("the password must be text in UTF-8 without control characters")
            }
            HashPasswordError::Read(error) if error.kind() == io::ErrorKind::Interrupted => {
                f.write_str("interrupted")
            }
            HashPasswordError::Read(error) => write!(f, "the password cannot be read: {error}"),
            HashPasswordError::Hash(error) => write!(f, "the password cannot be hashed: {error}"),
        }
    }
}

impl std::error::Error for HashPasswordError {}

/// Reads a password, twice from a terminal and once from anything else, and prints its hash.
pub fn run() -> Result<(), HashPasswordError> {
    let stdin = io::stdin();
    let password = if stdin.is_terminal() {
        let ask =
            |prompt| terminal::read_hidden(&stdin, prompt, io::stderr()).map_err(HashPasswordError::Read);
        let first = check(ask("Password: ")?)?;
        if ask("Again: ")? != first.as_bytes() {
            return Err(HashPasswordError::Different);
        }
        first
    } else {
        let mut line = Vec::new();
        let mut limited = io::Read::take(stdin.lock(), LONGEST as u64 + 3);
        limited.read_until(b'\n', &mut line).map_err(HashPasswordError::Read)?;
        check(line)?
    };
    println!("{}", hash(&password)?);
    Ok(())
}

/// The password of a line.
fn check(mut line: Vec<u8>) -> Result<String, HashPasswordError> {
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    if line.is_empty() {
        return Err(HashPasswordError::Empty);
    }
    if line.len() > LONGEST {
        return Err(HashPasswordError::TooLong);
    }
    let text = String::from_utf8(line).map_err(|_| HashPasswordError::Characters)?;
    if text.chars().any(char::is_control) { Err(HashPasswordError::Characters) } else { Ok(text) }
}

fn hash(password: &str) -> Result<String, HashPasswordError> {
    let mut salt = [0; 16];
    random::fill(&mut salt).map_err(HashPasswordError::Read)?;
    ftp::hash_password(password, &salt).map_err(HashPasswordError::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_password_or_refused() {
        assert_eq!(check(b"ding dong\r\n".to_vec()).unwrap(), "ding dong");
        assert_eq!(check("p\u{e4}ss".as_bytes().to_vec()).unwrap(), "p\u{e4}ss");
        assert!(matches!(check(b"\n".to_vec()), Err(HashPasswordError::Empty)));
        assert!(matches!(check(vec![b'x'; LONGEST + 1]), Err(HashPasswordError::TooLong)));
        assert!(matches!(check(b"a\x1bb".to_vec()), Err(HashPasswordError::Characters)));
        assert!(matches!(check(vec![0xff]), Err(HashPasswordError::Characters)));
    }

    #[test]
    fn the_same_password_has_another_hash_each_time() {
        let (one, two) = (hash("secret").unwrap(), hash("secret").unwrap());
        assert!(one.starts_with("$argon2id$") && one != two, "{one} {two}");
        // As the configuration takes it.
        let user: crate::values::FtpUser = format!("eric:{one}").parse().unwrap();
        assert_eq!(user.password, one);
    }
}
