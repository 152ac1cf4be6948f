//! The control protocol: state bytes, cookies, length-prefixed JSON, error numbers.

use alloc::vec::Vec;

/// States that either side announces with one signed byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
pub enum State {
    TestStart = 1,
    TestRunning = 2,
    TestEnd = 4,
    ParamExchange = 9,
    CreateStreams = 10,
    ServerTerminate = 11,
    ClientTerminate = 12,
    ExchangeResults = 13,
    DisplayResults = 14,
    IperfDone = 16,
    AccessDenied = -1,
    ServerError = -2,
}

impl State {
    /// The byte on the wire.
    pub fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }
}

/// Length of a cookie: 36 characters and a NUL.
pub const COOKIE_LEN: usize = 37;

/// What identifies a test on each of its connections.
pub type Cookie = [u8; COOKIE_LEN];

/// Whether a cookie has the form that clients give it: 36 characters of `a`-`z` and `2`-`7`, then NUL.
pub fn cookie_is_valid(cookie: &Cookie) -> bool {
    let (text, end) = cookie.split_at(COOKIE_LEN - 1);
    end == [0] && text.iter().all(|c| matches!(c, b'a'..=b'z' | b'2'..=b'7'))
}

/// Longest parameter message in bytes.
pub const MAX_PARAMS: usize = 8 << 10;
/// Longest results message in bytes: 256 streams with all their fields, and room for a client's extra data.
pub const MAX_RESULTS: usize = 256 << 10;
/// The same where the server's own report is inside, which has a line for each stream and interval.
pub const MAX_RESULTS_WITH_TEXT: usize = 8 << 20;

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageError {
    /// Longer than it may be.
    TooLong,
}

/// The JSON text at the front of `input` once it is there in full, with the number of bytes that it takes with its
/// length field.
pub fn message(input: &[u8], most: usize) -> Result<Option<(&[u8], usize)>, MessageError> {
    let Some((len, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
    let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
    if len > most {
        return Err(MessageError::TooLong);
    }
    Ok(rest.get(..len).map(|text| (text, 4 + len)))
}

/// A message with its length field.
pub fn framed(text: &[u8]) -> Vec<u8> {
    let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(4 + text.len());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(text);
    out
}

/// Error numbers of the original (`i_errno`), as far as this server sends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ErrorCode {
    /// Test duration too long.
    Duration = 5,
    /// Too many streams.
    Streams = 6,
    /// Block size too large.
    BlockSize = 7,
    /// Socket buffer too large.
    BufferSize = 8,
    /// Segment size out of range.
    Mss = 10,
    /// Omit time too long.
    Omit = 12,
    /// More blocks at once than the original has.
    Burst = 15,
    /// The parameters could not be read.
    Params = 114,
    /// The results could not be read.
    Results = 117,
    /// There is no such congestion control.
    Congestion = 134,
}

/// The nine bytes that tell a client of an error: state, `i_errno`, `errno` (none of ours comes from a system call).
pub fn error_message(code: ErrorCode) -> [u8; 9] {
    let mut out = [0; 9];
    out[0] = State::ServerError.byte();
    out[1..5].copy_from_slice(&(code as u32).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_for_their_last_byte_and_have_a_limit() {
        let whole = framed(b"{}x");
        for cut in 0..whole.len() {
            assert_eq!(message(&whole[..cut], 3), Ok(None));
        }
        assert_eq!(message(&whole, 3), Ok(Some((&b"{}x"[..], 7))));
        assert_eq!(message(&whole, 2), Err(MessageError::TooLong));
        assert_eq!(message(&[0xff; 4], MAX_RESULTS), Err(MessageError::TooLong));
    }

    #[test]
    fn cookies_are_base32() {
        let mut cookie = [b'a'; COOKIE_LEN];
        assert!(!cookie_is_valid(&cookie));
        cookie[36] = 0;
        assert!(cookie_is_valid(&cookie));
        cookie[3] = b'1';
        assert!(!cookie_is_valid(&cookie));
    }

    #[test]
    fn states_are_signed_bytes() {
        assert_eq!(State::AccessDenied.byte(), 0xff);
        assert_eq!(error_message(ErrorCode::Streams), [0xfe, 0, 0, 0, 6, 0, 0, 0, 0]);
    }
}
