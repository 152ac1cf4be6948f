//! An answer by HTTP/1.1 as it comes in, in any pieces (RFC 9112). Bodies are counted, not kept.

/// Most bytes that a head may have, and that a line about a chunk or a trailer may have.
const MAX_HEAD: usize = 64 << 10;
const MAX_LINE: usize = 8 << 10;
/// Most header fields of an answer.
const MAX_FIELDS: usize = 96;

/// Why what came is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

/// Where in an answer the next byte lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    #[default]
    Head,
    /// A body of which so much is missing.
    Length(u64),
    /// A body that ends with the connection.
    UntilClose,
    /// The size of a chunk, as far as it was read; `None` before its first digit.
    Size(Option<u64>),
    /// What may follow a size on its line.
    Extension(u64),
    /// In a chunk.
    Chunk(u64),
    /// The line end behind a chunk, as many bytes of it as were read.
    ChunkEnd(u8),
    /// In the trailers; whether the line has bytes.
    Trailer(bool),
    Whole,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Response {
    place: Place,
    head: Vec<u8>,
    /// Bytes of a line within a chunked body.
    line: usize,
    status: u16,
    keep: bool,
    body: u64,
}

/// What a head says.
struct Head {
    len: usize,
    status: u16,
    keep: bool,
    place: Place,
}

impl Response {
    /// Takes what came. Once the answer is whole: how many of the bytes belonged to it.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut used = 0;
        while self.place != Place::Whole {
            let rest = &bytes[used..];
            if rest.is_empty() {
                return Ok(None);
            }
            used += match self.place {
                Place::Head => self.take_head(rest)?,
                Place::Length(left) => {
                    let len = left.min(rest.len() as u64);
                    self.body += len;
                    self.place = if len == left { Place::Whole } else { Place::Length(left - len) };
                    len as usize
                }
                Place::UntilClose => {
                    self.body += rest.len() as u64;
                    rest.len()
                }
                Place::Chunk(left) => {
                    let len = left.min(rest.len() as u64);
                    self.body += len;
                    self.place = if len == left { Place::ChunkEnd(0) } else { Place::Chunk(left - len) };
                    len as usize
                }
                _ => {
                    self.take_line(rest[0])?;
                    1
                }
            };
        }
        Ok(Some(used))
    }

    /// The connection has ended. Whether that made the answer whole.
    pub fn end(&mut self) -> bool {
        if self.place == Place::UntilClose {
            self.place = Place::Whole;
        }
        self.place == Place::Whole
    }

    /// Whether nothing of it has come.
    pub fn is_empty(&self) -> bool {
        self.place == Place::Head && self.head.is_empty() && self.status == 0
    }

    /// Its status, once its head is there; 0 before.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection is kept for another request, as far as this answer says.
    pub fn keeps(&self) -> bool {
        self.keep
    }

    /// Bytes of its body, without what a transfer coding adds.
    pub fn body_len(&self) -> u64 {
        self.body
    }

    /// Ready for another.
    pub fn clear(&mut self) {
        let mut head = std::mem::take(&mut self.head);
        head.clear();
        *self = Response { head, ..Response::default() };
    }

    /// Takes bytes of a head; returns how many of them belong to it.
    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let before = self.head.len();
        // Nearly always a head comes in one piece and need not be copied.
        let parsed = if before == 0 {
            parse(bytes)?
        } else {
            self.head.extend_from_slice(bytes);
            parse(&self.head)?
        };
        let Some(head) = parsed else {
            if before == 0 {
                self.head.extend_from_slice(bytes);
            }
            if self.head.len() > MAX_HEAD {
                return Err(Malformed("the head is longer than 64 KiB"));
            }
            return Ok(bytes.len());
        };
        self.head.clear();
        // 101 would make it another protocol, which nobody asked for.
        if (100..200).contains(&head.status) && head.status != 101 {
            // An interim answer: the real one follows.
            self.status = 0;
        } else {
            (self.status, self.keep, self.place) = (head.status, head.keep, head.place);
        }
        Ok(head.len - before)
    }

    /// Takes a byte of what stands between chunks.
    fn take_line(&mut self, byte: u8) -> Result<(), Malformed> {
        self.line += 1;
        if self.line > MAX_LINE {
            return Err(Malformed("a line between chunks is longer than 8 KiB"));
        }
        let digit = (byte as char).to_digit(16).map(u64::from);
        let next = match (self.place, byte) {
            (Place::Size(size), _) if digit.is_some() => {
                let size = size.unwrap_or(0);
                if size >> 60 != 0 {
                    return Err(Malformed("the size of a chunk is beyond 64 bits"));
                }
                Place::Size(Some(size << 4 | digit.unwrap_or(0)))
            }
            (Place::Size(None), _) => return Err(Malformed("the size of a chunk is no number")),
            (Place::Size(Some(size)), b'\n') => self.behind_size(size),
            (Place::Size(Some(size)), b'\r' | b';' | b' ' | b'\t') => Place::Extension(size),
            (Place::Size(Some(_)), _) => return Err(Malformed("the size of a chunk is no number")),
            (Place::Extension(size), b'\n') => self.behind_size(size),
            (Place::ChunkEnd(0), b'\r') => Place::ChunkEnd(1),
            (Place::ChunkEnd(_), b'\n') => self.new_line(Place::Size(None)),
            (Place::ChunkEnd(_), _) => return Err(Malformed("a chunk is longer than its size")),
            (Place::Trailer(false), b'\n') => self.new_line(Place::Whole),
            (Place::Trailer(true), b'\n') => self.new_line(Place::Trailer(false)),
            (Place::Trailer(has_bytes), _) => Place::Trailer(has_bytes || byte != b'\r'),
            (place, _) => place,
        };
        self.place = next;
        Ok(())
    }

    fn behind_size(&mut self, size: u64) -> Place {
        self.new_line(if size == 0 { Place::Trailer(false) } else { Place::Chunk(size) })
    }

    fn new_line(&mut self, place: Place) -> Place {
        self.line = 0;
        place
    }
}

/// Reads a head; `None` while it is not whole.
fn parse(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let len = match response.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed("more than 96 header fields")),
        Err(_) => return Err(Malformed("the head is none of HTTP/1.1")),
    };
    let status = response.code.unwrap_or(0);
    let mut keep = response.version == Some(1);
    let (mut length, mut coded, mut chunked) = (None, false, false);
    for field in response.headers.iter() {
        let value = std::str::from_utf8(field.value).unwrap_or_default().trim();
        if field.name.eq_ignore_ascii_case("content-length") {
            let said = value.parse::<u64>().map_err(|_| Malformed("Content-Length is no number"))?;
            if length.is_some_and(|before| before != said) {
                return Err(Malformed("two lengths"));
            }
            length = Some(said);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            // The last coding says where the body ends (RFC 9112, section 6.3).
            chunked =
                value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
            coded = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for word in value.split(',').map(str::trim) {
                keep = match word {
                    _ if word.eq_ignore_ascii_case("close") => false,
                    _ if word.eq_ignore_ascii_case("keep-alive") => true,
                    _ => keep,
                };
            }
        }
    }
    let place = match length {
        _ if matches!(status, 204 | 304) => Place::Whole,
        _ if chunked => Place::Size(None),
        _ if coded => Place::UntilClose,
        Some(0) => Place::Whole,
        Some(length) => Place::Length(length),
        None => Place::UntilClose,
    };
    Ok(Some(Head { len, status, keep: keep && place != Place::UntilClose, place }))
}
