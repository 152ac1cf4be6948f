//! Request methods (RFC 9110 section 9, RFC 5789).

/// The methods that the standard defines; a server tells "not allowed here" (405) from "never heard of it" (501).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Transfer the representation.
    Get,
    /// As GET, without the content.
    Head,
    /// What may be done with the resource.
    Options,
    /// Process the content.
    Post,
    /// Store the content.
    Put,
    /// Remove the resource.
    Delete,
    /// Change the resource in part (RFC 5789).
    Patch,
    /// Make a tunnel.
    Connect,
    /// Loop the request back.
    Trace,
}

const NAMES: [(&str, Method); 9] = [
    ("GET", Method::Get),
    ("HEAD", Method::Head),
    ("OPTIONS", Method::Options),
    ("POST", Method::Post),
    ("PUT", Method::Put),
    ("DELETE", Method::Delete),
    ("PATCH", Method::Patch),
    ("CONNECT", Method::Connect),
    ("TRACE", Method::Trace),
];

impl Method {
    /// The method of this name (case matters, RFC 9110 section 9.1); `None` for all others.
    pub fn parse(name: &[u8]) -> Option<Method> {
        NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, method)| *method)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// Whether preconditions answer 304 instead of 412 (RFC 9110 section 13.1.2).
    pub fn is_get_or_head(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_methods_are_one_to_one() {
        for (name, method) in NAMES {
            assert_eq!(Method::parse(name.as_bytes()), Some(method));
            assert_eq!(method.name(), name);
        }
        assert_eq!(Method::parse(b"get"), None);
        assert_eq!(Method::parse(b""), None);
    }
}
