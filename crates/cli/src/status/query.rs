//! What a client of the status asks for: the part of a URL behind the question mark.

/// Connections listed when nothing is said.
pub const DEFAULT_LIMIT: usize = 100;
/// The same on the page for people.
pub const PAGE_LIMIT: usize = 50;
/// Most connections that are listed.
pub const MAX_LIMIT: usize = 1_000;

/// What connections are sorted by, the largest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// Payload per second, both directions together.
    #[default]
    Rate,
    /// Payload since the start, both directions together.
    Bytes,
    /// Memory that they hold.
    Memory,
}

impl Sort {
    /// All of them.
    pub const ALL: [Sort; 3] = [Sort::Rate, Sort::Bytes, Sort::Memory];

    /// Its name in the URL and in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Rate => "rate",
            Sort::Bytes => "bytes",
            Sort::Memory => "memory",
        }
    }
}

/// Which connections to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Query {
    /// How many.
    pub limit: usize,
    /// Which come first.
    pub sort: Sort,
}

impl Default for Query {
    fn default() -> Self {
        Query { limit: DEFAULT_LIMIT, sort: Sort::default() }
    }
}

impl Query {
    /// Reads `limit=20&sort=bytes`, where what is not said is as in `default`; the error says what was wrong and what was
    /// expected.
    pub fn parse(text: &str, default: Query) -> Result<Query, String> {
        let mut query = default;
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| *limit <= MAX_LIMIT);
                    query.limit = limit.ok_or_else(|| {
                        format!("invalid value '{value}' for 'limit': expected 0 to {MAX_LIMIT}")
                    })?;
                }
                "sort" => {
                    let sort = Sort::ALL.into_iter().find(|sort| sort.name() == value);
                    query.sort = sort.ok_or_else(|| {
                        format!("invalid value '{value}' for 'sort': expected rate, bytes or memory")
                    })?;
                }
                _ => return Err(format!("unknown parameter '{name}': expected limit or sort")),
            }
        }
        Ok(query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(usize, Sort), &str>) {
        match (Query::parse(text, Query::default()), expected) {
            (Ok(query), Ok(expected)) => assert_eq!((query.limit, query.sort), expected, "{text}"),
            (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn limits_and_orders() {
        check("", Ok((100, Sort::Rate)));
        check("limit=0", Ok((0, Sort::Rate)));
        check("sort=memory&limit=1000", Ok((1000, Sort::Memory)));
        check("limit=1001", Err("0 to 1000"));
        check("limit=-1", Err("'-1'"));
        check("limit", Err("''"));
        check("sort=name", Err("rate, bytes or memory"));
        check("page=2", Err("'page'"));
    }
}
