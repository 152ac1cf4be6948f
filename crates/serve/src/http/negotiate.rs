//! Content negotiation of encodings (RFC 9110 section 12.5.3): which compressed copy of a file a client prefers.

/// A content coding that a file may lie there in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
    /// Gzip (RFC 1952).
    Gzip,
}

impl Coding {
    /// All codings; the first is the densest, and preferred where the client does not mind.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// The value of `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// What the name of a compressed copy has after the name of the file.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }
}

/// The codings that a client takes, best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Preference {
    order: [Option<Coding>; 3],
}

impl Preference {
    /// The codings, best first.
    pub fn iter(&self) -> impl Iterator<Item = Coding> {
        self.order.iter().copied().flatten()
    }

    /// What the values of all `Accept-Encoding` fields of a request prefer. No field: none, although the standard
    /// would allow any, because a client that does not say so rarely decodes.
    ///
    /// Codings that the client likes less than `identity` are left out. Elements that do not follow the grammar are
    /// ignored.
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Preference {
        // In thousandths.
        let mut quality: [Option<u16>; 3] = [None; 3];
        let (mut identity, mut any) = (None, None);
        for element in values.flat_map(|value| value.split(|b| *b == b',')) {
            let Some((name, q)) = parse_element(element.trim_ascii()) else { continue };
            let place = match Coding::ALL.iter().position(|coding| is_named(*coding, name)) {
                Some(at) => &mut quality[at],
                None if name.eq_ignore_ascii_case(b"identity") => &mut identity,
                None if name == b"*" => &mut any,
                None => continue,
            };
            *place = Some(q);
        }
        let least = identity.unwrap_or(0).max(1);
        let mut ranked = [(0u16, None); 3];
        for (at, coding) in Coding::ALL.into_iter().enumerate() {
            let q = quality[at].or(any).unwrap_or(0);
            if q >= least {
                ranked[at] = (q, Some(coding));
            }
        }
        // Stable: equals stay in the order of preference above.
        ranked.sort_by_key(|(q, _)| core::cmp::Reverse(*q));
        Preference { order: ranked.map(|(_, coding)| coding) }
    }
}

fn is_named(coding: Coding, name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(coding.name().as_bytes())
        || (coding == Coding::Gzip && name.eq_ignore_ascii_case(b"x-gzip"))
}

/// A coding and its quality in thousandths.
fn parse_element(element: &[u8]) -> Option<(&[u8], u16)> {
    let Some(at) = element.iter().position(|b| *b == b';') else {
        return (!element.is_empty()).then_some((element, 1000));
    };
    let name = element[..at].trim_ascii_end();
    let weight = element[at + 1..].trim_ascii_start();
    let digits = weight.strip_prefix(b"q=").or_else(|| weight.strip_prefix(b"Q="))?;
    Some((name, parse_quality(digits)?))
}

/// `0`, `0.123`, `1`, `1.000` (RFC 9110 section 12.4.2).
fn parse_quality(digits: &[u8]) -> Option<u16> {
    let (whole, fraction) = match digits {
        [whole @ (b'0' | b'1')] => (*whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0') * 1000;
    let mut place = 100;
    for digit in fraction {
        if !digit.is_ascii_digit() {
            return None;
        }
        thousandths += u16::from(digit - b'0') * place;
        place /= 10;
    }
    (thousandths <= 1000).then_some(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn check(values: &[&str], expected: &[Coding]) {
        let preference = Preference::parse(values.iter().map(|v| v.as_bytes()));
        assert_eq!(preference.iter().collect::<Vec<_>>(), expected, "{values:?}");
    }

    #[test]
    fn clients_get_what_they_prefer() {
        use Coding::*;
        check(&[], &[]);
        check(&[""], &[]);
        check(&["gzip, deflate, br"], &[Brotli, Gzip]);
        check(&["gzip, deflate, br, zstd"], &[Brotli, Zstd, Gzip]);
        check(&["gzip", "zstd"], &[Zstd, Gzip]);
        check(&["gzip;q=1.0, br;q=0.5"], &[Gzip, Brotli]);
        check(&["gzip ; q=0.001 ,br; Q=0"], &[Gzip]);
        check(&["x-GZIP"], &[Gzip]);
        check(&["*"], &[Brotli, Zstd, Gzip]);
        check(&["*;q=0.5, gzip;q=0"], &[Brotli, Zstd]);
        check(&["identity, gzip;q=0.5"], &[]);
        check(&["identity;q=0.5, gzip;q=0.5, br;q=0.4"], &[Gzip]);
        check(&["identity;q=0, gzip"], &[Gzip]);
        check(&["gzip;q=2, br;q=1.001, zstd;q=0.1234"], &[]);
        check(&["gzip;q=a, br;level=5, ;q=1, gzipx"], &[]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(value in proptest::collection::vec(any::<u8>(), 0..60)) {
            Preference::parse([&value[..]].into_iter());
        }
    }
}
