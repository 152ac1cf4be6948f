//! The sending half of transfers: a file range as it is, or pieces made one after the other.

use super::ascii::ToNetwork;
use super::hub::{JobId, Kind, Turn};
use super::listing::Listing;
use crate::memory;
use alloc::vec::Vec;
use linerate_transport::{Bytes, ConnId, ConnState, DirEntry, FileId, FileOp, FileRange, Payload, SendError};

/// Bytes that one transfer may queue in one turn; then others get theirs.
const TURN_LEN: u64 = 1 << 20;
/// Bytes read at once to be converted. Twice as many are at most what one payload may hold.
const CONVERT_LEN: usize = 32 << 10;
/// Bytes of listing made at once.
const LISTING_LEN: usize = 16 << 10;
/// Directory entries asked for at once.
pub(super) const PAGE_ENTRIES: usize = 256;

/// Where the bytes come from.
pub(super) enum Source {
    /// A file as it is, by one range that nothing copies; none once it is queued.
    Range(Option<FileRange>),
    /// A memory file.
    Memory {
        /// The next byte.
        at: u64,
        /// The end.
        end: u64,
    },
    /// A file or memory file in TYPE A.
    Ascii {
        /// The file; none for a memory file.
        file: Option<FileId>,
        /// The next byte to read.
        at: u64,
        /// The end.
        end: u64,
        /// The conversion.
        convert: ToNetwork,
    },
    /// A directory.
    Listing {
        /// The listing.
        listing: Listing,
        /// The directory, if one has to be read.
        dir: Option<FileId>,
    },
}

impl Source {
    /// A file or memory file of `len` bytes in TYPE A, from byte `restart` of its network form on.
    pub(super) fn ascii(file: Option<FileId>, len: u64, restart: u64) -> Source {
        let (mut at, mut skip) = (0, restart);
        if file.is_none() {
            // Whole periods of the pattern are left out by arithmetic: to convert a terabyte in vain takes minutes. None of its lines ends
            // in CR LF, so that each LF becomes two bytes.
            let period = memory::pattern(0, u64::MAX);
            let ends = period.iter().filter(|byte| **byte == b'\n').count();
            let network_len = (period.len() + ends) as u64;
            at = (restart / network_len * period.len() as u64).min(len);
            skip = restart % network_len;
        }
        Source::Ascii { file, at, end: len, convert: ToNetwork::skipping(skip) }
    }
}

/// What comes of sending as much as possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pump {
    /// Something must happen first: room, data, a file operation.
    Blocked,
    /// The budget of this turn is used up.
    Again,
    /// Everything is queued, or was received.
    Done,
}

/// The next thing to send.
enum Next {
    Payload(Payload),
    Wait,
    End,
}

/// A transfer's sending half.
pub(super) struct Sender {
    source: Source,
    /// What is to be closed at the end.
    pub(super) file: Option<FileId>,
    /// Made, and not taken by the transport yet.
    staged: Option<Payload>,
    /// A read or a page is under way.
    waiting: bool,
    /// Everything was queued and the connection shut down for sending.
    pub(super) shut: bool,
    /// Bytes queued.
    pub(super) queued: u64,
}

impl Sender {
    pub(super) fn new(source: Source, file: Option<FileId>) -> Self {
        Sender { source, file, staged: None, waiting: false, shut: false, queued: 0 }
    }

    /// Whether the delay is not the client's but that of our files.
    pub(super) fn awaits_files(&self) -> bool {
        self.waiting
    }

    /// Queues what can be queued.
    pub(super) fn pump(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        conn: ConnId,
    ) -> Result<Pump, SendError> {
        if self.shut {
            return Ok(Pump::Blocked);
        }
        let start = self.queued;
        while self.queued - start < TURN_LEN {
            let payload = match self.staged.take() {
                Some(payload) => payload,
                None => match self.next(turn, job) {
                    Next::Payload(payload) => payload,
                    Next::Wait => return Ok(Pump::Blocked),
                    Next::End => {
                        turn.ctx.net.shutdown(conn);
                        // It may have broken before the transfer, which was not told of it then and is not told again.
                        if matches!(turn.ctx.net.state(conn), ConnState::Closed(_)) {
                            return Err(SendError::Closed);
                        }
                        self.shut = true;
                        return Ok(Pump::Done);
                    }
                },
            };
            // A clone shares the bytes.
            match turn.ctx.net.send(conn, payload.clone()) {
                Ok(()) => self.queued += payload.len(),
                Err(SendError::Full) => {
                    self.staged = Some(payload);
                    return Ok(Pump::Blocked);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Pump::Again)
    }

    fn next(&mut self, turn: &mut Turn<'_, '_>, job: JobId) -> Next {
        if self.waiting {
            return Next::Wait;
        }
        match &mut self.source {
            Source::Range(range) => match range.take() {
                Some(range) if range.len > 0 => Next::Payload(Payload::File(range)),
                _ => Next::End,
            },
            Source::Memory { at, end } => {
                let piece = memory::pattern(*at, *end - *at);
                *at += piece.len() as u64;
                if piece.is_empty() { Next::End } else { Next::Payload(Payload::Static(piece)) }
            }
            Source::Ascii { at, end, .. } if *at >= *end => Next::End,
            Source::Ascii { file: Some(file), at, .. } => {
                let op = FileOp::Read { file: *file, offset: *at, len: CONVERT_LEN };
                self.waiting = true;
                turn.submit(job, Kind::Read, op);
                Next::Wait
            }
            Source::Ascii { file: None, at, end, convert } => {
                let piece = memory::pattern(*at, (*end - *at).min(CONVERT_LEN as u64));
                *at += piece.len() as u64;
                Next::Payload(Payload::Shared(Bytes::from(convert.convert(piece))))
            }
            Source::Listing { listing, dir } => {
                let mut lines = Vec::new();
                listing.write(&mut lines, LISTING_LEN);
                if !lines.is_empty() {
                    return Next::Payload(Payload::Shared(Bytes::from(lines)));
                }
                match dir {
                    Some(dir) if listing.wants_page() => {
                        let op = FileOp::ReadDir { dir: *dir, limit: PAGE_ENTRIES };
                        self.waiting = true;
                        turn.submit(job, Kind::ReadDir, op);
                        Next::Wait
                    }
                    _ => Next::End,
                }
            }
        }
    }

    /// Bytes to convert were read. False when the file became shorter meanwhile.
    pub(super) fn on_data(&mut self, data: &Bytes) -> bool {
        let Source::Ascii { at, convert, .. } = &mut self.source else { return true };
        self.waiting = false;
        *at += data.len() as u64;
        let converted = convert.convert(data.as_ref());
        self.staged = (!converted.is_empty()).then(|| Payload::Shared(Bytes::from(converted)));
        !data.is_empty()
    }

    /// A page of a directory was read. Answers how many names cannot be shown.
    pub(super) fn on_entries(&mut self, page: Vec<DirEntry>) -> u64 {
        let Source::Listing { listing, .. } = &mut self.source else { return 0 };
        self.waiting = false;
        listing.add(page)
    }
}
