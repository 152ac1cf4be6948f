//! The cookie of the TCP Fast Open option (RFC 7413 section 4.1.1).

use core::fmt;

/// Fewest bytes of a cookie.
pub const MIN_COOKIE_LEN: usize = 4;

/// Most bytes of a cookie.
pub const MAX_COOKIE_LEN: usize = 16;

/// What a Fast Open option carries, by value: a cookie of 4 to 16 bytes, an even number, or none, which asks for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FastOpenCookie {
    // Zero from `len` on, so that equal cookies are equal.
    bytes: [u8; MAX_COOKIE_LEN],
    len: u8,
}

impl FastOpenCookie {
    /// No cookie: a client asks for one.
    pub const REQUEST: FastOpenCookie = FastOpenCookie { bytes: [0; MAX_COOKIE_LEN], len: 0 };

    /// The cookie of these bytes, or the request where there are none; `None` for a length that no cookie has (RFC 7413
    /// section 4.1.1).
    pub fn new(cookie: &[u8]) -> Option<FastOpenCookie> {
        let len = cookie.len();
        if len != 0 && (len < MIN_COOKIE_LEN || !len.is_multiple_of(2)) {
            return None;
        }
        let mut bytes = [0; MAX_COOKIE_LEN];
        bytes.get_mut(..len)?.copy_from_slice(cookie);
        Some(FastOpenCookie { bytes, len: len as u8 })
    }

    /// The bytes of the cookie.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether it asks for a cookie instead of being one.
    pub fn is_request(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FastOpenCookie").field(&self.as_slice()).finish()
    }
}
