//! What is said of a mistake in the configuration file or on the command line: never a password.
//!
//! The parser shows the line that it stumbled over, and the value that did not fit. Both may be passwords where a line names FTP users, and
//! messages end up in journals that others read.

use clap::error::{ContextKind, ContextValue};

/// The key whose values are secret, without the signs that people leave out or mistake.
const SECRET: &str = "ftpuser";
/// What stands in the place of a value.
const HIDDEN: &str = "(not shown)";

/// What the parser says of `text`, without passwords.
pub(super) fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let Some(span) = error.span() else { return hide_values(message) };
    let before = text.get(..span.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
    let place = format!("TOML parse error at line {line}, column {column}");
    if is_secret(text, line) {
        return format!(
            "{place}; the line is not shown, as it may hold a password\n{}\n",
            hide_values(message)
        );
    }
    // Whose key is unknown, its value may be anything: a password, too, under a name that was mistaken.
    if message.starts_with("unknown field") {
        return format!("{place}\n{message}\n");
    }
    error.to_string()
}

/// Whether a line, counted from 1, belongs to what is said of FTP users: it names them, or no other key has begun since. A file that does
/// not parse has no structure to go by, so in doubt it does.
fn is_secret(text: &str, line: usize) -> bool {
    let (mut key, mut table) = (false, false);
    for line in text.lines().take(line) {
        let names_users = names_users(line);
        if is_header(line) {
            (key, table) = (names_users, names_users);
        } else if names_users || is_assignment(line) {
            key = names_users;
        }
    }
    key || table
}

fn names_users(line: &str) -> bool {
    let letters = line.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase());
    letters.collect::<String>().contains(SECRET)
}

fn is_key(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// `[table]` or `[[table]]`, which a line of a list is not: that has quotes.
fn is_header(line: &str) -> bool {
    let line = line.split('#').next().unwrap_or(line).trim();
    let inner = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner =
        inner.map(|inner| inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(inner));
    inner.is_some_and(is_key)
}

fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| is_key(key))
}

/// A message without the value that it complains of; what was expected stays.
fn hide_values(message: &str) -> String {
    let complains =
        ["invalid type", "invalid value", "invalid length"].iter().any(|start| message.starts_with(start));
    if !complains {
        return message.to_owned();
    }
    // The kind of value, such as `string`, says what is wrong; the value begins with a quotation mark, a digit, or the like.
    let kind =
        message.split(|c: char| !c.is_ascii_alphabetic() && !matches!(c, ' ' | ':')).next().unwrap_or("");
    let kind = kind.trim_end_matches([' ', ':']);
    match message.rfind("expected ") {
        Some(at) => format!("{kind} {HIDDEN}, {}", &message[at..]),
        None => format!("{kind} {HIDDEN}"),
    }
}

/// What the command line's parser says, without passwords.
pub fn hide_password(mut error: clap::Error) -> clap::Error {
    let is_of_users = error.context().any(|(kind, value)| {
        kind == ContextKind::InvalidArg && matches!(value, ContextValue::String(name) if names_users(name))
    });
    if is_of_users && error.get(ContextKind::InvalidValue).is_some() {
        error.insert(ContextKind::InvalidValue, ContextValue::String(HIDDEN.to_owned()));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, ServeOptions};
    use clap::Parser as _;

    fn told(text: &str) -> String {
        describe(text, &toml::from_str::<ServeOptions>(text).expect_err("must be refused"))
    }

    #[test]
    fn no_password_is_told_of_a_file_with_a_mistake() {
        for (text, parts) in [
            ("ftp-user = [\"annatopsecret\"]", &["line 1, column 13", "expected", "NAME:PASSWORD"][..]),
            ("dir = \"/srv\"\nftp-user = [[\"anna:topsecret\"]]", &["line 2, column 13", "expected"]),
            ("ftp-user = [\"anna:topsecret]", &["line 1"]),
            ("ftp-user = [anna:topsecret]", &["line 1"]),
            ("ftp-user = [\"anna:topsecret\" \"eric:topsecret\"]", &["line 1"]),
            ("ftp-user = \"anna:topsecret\"", &["line 1, column 12", "string", "expected a list"]),
            ("ftp-user = 'anna, expected topsecret'", &["line 1", "string", "expected a list"]),
            ("ftp-users = [\"anna:topsecret\"]", &["line 1, column 1", "ftp-users", "ftp-user"]),
            ("ftp_user = [\"anna:topsecret\"]", &["line 1", "ftp_user"]),
            ("[ftp]\nusers = [\"anna:topsecret\"]", &["line 2, column 1", "users", "banner"]),
            ("fpt-user = [\"anna:topsecret\"]", &["line 1", "fpt-user"]),
            (
                "ftp-user = [\n  \"anna:x\",\n  # eric\n  \"erictopsecret\",\n]",
                &["line 4, column 3", "NAME:PASSWORD"],
            ),
            ("ftp-user = [\n  \"anna:x\",\n[\"eric:topsecret\"],\n]", &["line 3"]),
            ("ftp-user = [\n  \"anna:x\",\n  \"topsecret=\n]", &["line 3"]),
            ("[ftp-user]\nanna = topsecret", &["line 2"]),
            ("[[ftp-user]]\nanna = \"topsecret\"", &["line 1", "NAME:PASSWORD"]),
            ("ftp-user.anna = \"topsecret\"", &["expected a list"]),
            ("writable = true ftp-user = [\"anna:topsecret\"]", &["line 1"]),
        ] {
            let told = told(text);
            assert!(!told.contains("topsecret"), "{text:?}: {told}");
            for part in parts {
                assert!(told.contains(part), "{text:?}: {part:?} is not in {told}");
            }
        }
    }

    #[test]
    fn other_lines_are_shown_as_they_are() {
        for text in [
            "ftp-user = [\"anna:topsecret\"]\nmtu = \"many\"",
            "ftp-user = [\n\"anna:topsecret\"\n]\n[http]\nautoindex = 7",
            "mtu = \"many\"\nftp-user = [\"anna:topsecret\"]",
            "writable = maybe",
        ] {
            let error = toml::from_str::<ServeOptions>(text).unwrap_err().to_string();
            assert_eq!(told(text), error);
            assert!(!error.contains("topsecret"), "{error}");
        }
    }

    #[test]
    fn no_password_of_the_command_line_is_told_either() {
        for (flags, part) in [
            (&["--ftp-user", "annatopsecret"][..], "NAME:PASSWORD"),
            (&["--ftp-user=:topsecret"], "--ftp-user"),
            (&["--ftp-users=anna:topsecret"], "--ftp-users"),
            (&["--mtu", "7"], "'7'"),
        ] {
            let line = ["linerate", "serve"].iter().chain(flags);
            let told = hide_password(Cli::try_parse_from(line).expect_err("must be refused")).to_string();
            assert!(!told.contains("topsecret") && told.contains(part), "{told}");
        }
    }
}
