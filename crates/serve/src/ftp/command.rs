//! Commands: the table of verbs, and the parser of a line.

use core::fmt;

/// What a verb takes after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arg {
    /// Nothing.
    None,
    /// A word or nothing.
    Optional,
    /// A word.
    Required,
    /// A path, which may hold spaces.
    Path,
    /// A path, or nothing for the working directory.
    OptionalPath,
}

impl Arg {
    /// Whether the line may have the length that a path needs.
    pub(super) fn is_path(self) -> bool {
        matches!(self, Arg::Path | Arg::OptionalPath)
    }
}

/// One row of the table of verbs.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) verb: Verb,
    pub(super) name: &'static str,
    /// Whether it needs a login.
    pub(super) login: bool,
    pub(super) arg: Arg,
    /// What follows the name, for HELP.
    pub(super) syntax: &'static str,
}

macro_rules! verbs {
    ($($variant:ident $name:literal $login:ident $arg:ident $syntax:literal;)*) => {
        /// A command of RFC 959, 1123, 2228, 2389, 2428, 2640, 3659, 7151 or one of the common extensions.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(super) enum Verb {
            $($variant,)*
        }

        /// Every verb, in the order of [`Verb`].
        pub(super) static VERBS: &[Spec] = &[
            $(Spec {
                verb: Verb::$variant,
                name: $name,
                login: verbs!(@$login),
                arg: Arg::$arg,
                syntax: $syntax,
            },)*
        ];
    };
    (@open) => { false };
    (@login) => { true };
}

verbs! {
    Abor "ABOR" login None "";
    Acct "ACCT" open Required "<account>";
    Adat "ADAT" open Optional "<data>";
    Allo "ALLO" login Required "<bytes> [R <record>]";
    Appe "APPE" login Path "<path>";
    Auth "AUTH" open Optional "<mechanism>";
    Ccc "CCC" open Optional "";
    Cdup "CDUP" login None "";
    Clnt "CLNT" open Optional "<client>";
    Conf "CONF" open Optional "<data>";
    Cwd "CWD" login Path "<path>";
    Dele "DELE" login Path "<path>";
    Enc "ENC" open Optional "<data>";
    Eprt "EPRT" login Required "|<family>|<address>|<port>|";
    Epsv "EPSV" login Optional "[1|2|ALL]";
    Feat "FEAT" open None "";
    Hash "HASH" login Path "<path>";
    Help "HELP" open Optional "[<command>]";
    Host "HOST" open Required "<name>";
    Lang "LANG" open Optional "[<language>]";
    List "LIST" login OptionalPath "[-a] [<path>]";
    Mdtm "MDTM" login Path "<path>";
    Mfmt "MFMT" login Path "<YYYYMMDDHHMMSS> <path>";
    Mic "MIC" open Optional "<data>";
    Mkd "MKD" login Path "<path>";
    Mlsd "MLSD" login OptionalPath "[<path>]";
    Mlst "MLST" login OptionalPath "[<path>]";
    Mode "MODE" login Required "S";
    Nlst "NLST" login OptionalPath "[-a] [<path>]";
    Noop "NOOP" open Optional "";
    Opts "OPTS" open Required "<command> [<options>]";
    Pass "PASS" open Optional "<password>";
    Pasv "PASV" login None "";
    Pbsz "PBSZ" open Optional "<bytes>";
    Port "PORT" login Required "<h1>,<h2>,<h3>,<h4>,<p1>,<p2>";
    Prot "PROT" open Optional "<level>";
    Pwd "PWD" login None "";
    Quit "QUIT" open None "";
    Rein "REIN" open None "";
    Rest "REST" login Required "<offset>";
    Retr "RETR" login Path "<path>";
    Rmd "RMD" login Path "<path>";
    Rnfr "RNFR" login Path "<path>";
    Rnto "RNTO" login Path "<path>";
    Site "SITE" login Path "CHMOD <mode> <path> | HELP";
    Size "SIZE" login Path "<path>";
    Smnt "SMNT" login Path "<path>";
    Stat "STAT" login OptionalPath "[-a] [<path>]";
    Stor "STOR" login Path "<path>";
    Stou "STOU" login OptionalPath "[<name>]";
    Stru "STRU" login Required "F";
    Syst "SYST" open None "";
    Type "TYPE" login Required "A [N] | I | L 8";
    User "USER" open Required "<name>";
    Xcup "XCUP" login None "";
    Xcwd "XCWD" login Path "<path>";
    Xmkd "XMKD" login Path "<path>";
    Xpwd "XPWD" login None "";
    Xrmd "XRMD" login Path "<path>";
}

impl Verb {
    /// Its row of the table.
    pub(super) fn spec(self) -> &'static Spec {
        // The table is made from the same list, in the same order.
        VERBS.get(self as usize).unwrap_or(&VERBS[0])
    }

    /// The verb of this name, in any case.
    pub(super) fn by_name(name: &str) -> Option<Verb> {
        VERBS.iter().find(|spec| spec.name.eq_ignore_ascii_case(name)).map(|spec| spec.verb)
    }

    /// The old and experimental names of a command stand for it (RFC 1123 section 4.1.3.1).
    pub(super) fn canonical(self) -> Verb {
        match self {
            Verb::Xcup => Verb::Cdup,
            Verb::Xcwd => Verb::Cwd,
            Verb::Xmkd => Verb::Mkd,
            Verb::Xpwd => Verb::Pwd,
            Verb::Xrmd => Verb::Rmd,
            other => other,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)
    }
}

/// Words that begin a line of HTTP: a browser was tricked into posting to this port.
const HTTP: &[&str] =
    &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI", "HOST:"];

/// A command as it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Command<'a> {
    /// The verb, one of the X names included.
    pub(super) verb: Verb,
    /// What follows it, without the one space between; trimmed unless it is a path. Empty for nothing.
    pub(super) arg: &'a str,
}

/// Why a line is no command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ParseError {
    /// Not UTF-8 (RFC 2640 section 3.1).
    NotUtf8,
    /// No verb that we know.
    Unknown,
    /// A request line or header of HTTP.
    Http,
}

/// Splits a line into verb and argument.
pub(super) fn parse(line: &[u8]) -> Result<Command<'_>, ParseError> {
    let (name, rest) = match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &line[line.len()..]),
    };
    let name = core::str::from_utf8(name).map_err(|_| ParseError::Unknown)?;
    if HTTP.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Err(ParseError::Http);
    }
    let verb = Verb::by_name(name).ok_or(ParseError::Unknown)?;
    let arg = core::str::from_utf8(rest).map_err(|_| ParseError::NotUtf8)?;
    // A password may begin or end with a space as well as a path may.
    let whole = verb.spec().arg.is_path() || verb == Verb::Pass;
    Ok(Command { verb, arg: if whole { arg } else { arg.trim_matches(' ') } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn check(line: &[u8], expected: Result<(Verb, &str), ParseError>) {
        assert_eq!(parse(line).map(|command| (command.verb, command.arg)), expected, "{line:?}");
    }

    #[test]
    fn the_table_is_in_the_order_of_the_verbs_and_of_the_alphabet() {
        for (at, spec) in VERBS.iter().enumerate() {
            assert_eq!(spec.verb as usize, at);
            assert_eq!(spec.verb.spec().name, spec.name);
        }
        assert!(VERBS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn lines_are_split_at_the_first_space() {
        check(b"noop", Ok((Verb::Noop, "")));
        check(b"Retr my file ", Ok((Verb::Retr, "my file ")));
        check(b"RETR  x", Ok((Verb::Retr, " x")));
        check(b"TYPE  I ", Ok((Verb::Type, "I")));
        check(b"PASS  secret ", Ok((Verb::Pass, " secret ")));
        check("RETR é".as_bytes(), Ok((Verb::Retr, "é")));
        check(b"RETR \xe9", Err(ParseError::NotUtf8));
        check(b"\xe9 x", Err(ParseError::Unknown));
        check(b"", Err(ParseError::Unknown));
        check(b" NOOP", Err(ParseError::Unknown));
        check(b"NOOPX", Err(ParseError::Unknown));
        check(b"RETR\tx", Err(ParseError::Unknown));
    }

    #[test]
    fn http_is_recognised() {
        check(b"GET / HTTP/1.1", Err(ParseError::Http));
        check(b"Host: example.com", Err(ParseError::Http));
        check(b"HOST example.com", Ok((Verb::Host, "example.com")));
        check(b"post / HTTP/1.0", Err(ParseError::Http));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&line);
        }

        #[test]
        fn every_verb_is_found_in_any_case(at in 0..VERBS.len(), upper in any::<u8>()) {
            let name: Vec<u8> = VERBS[at].name.bytes().enumerate()
                .map(|(i, b)| if upper >> i & 1 == 1 { b } else { b.to_ascii_lowercase() })
                .collect();
            prop_assert_eq!(parse(&name).map(|c| c.verb), Ok(VERBS[at].verb));
        }
    }
}
