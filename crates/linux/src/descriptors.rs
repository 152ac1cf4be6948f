//! The limit of open descriptors of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the highest that the process may set, and returns what it is then. Where the
/// system refuses, the limit stays what it was.
pub fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // An error leaves the old limit, which is read below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        let hard = getrlimit(Resource::Nofile).maximum.map_or(usize::MAX, |limit| limit as usize);
        assert_eq!(raise_limit(), hard);
    }
}
