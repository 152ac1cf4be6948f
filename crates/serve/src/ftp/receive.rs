//! The receiving half of transfers: bytes are gathered into pieces, and a bounded number of pieces is being written.

use super::ascii::FromNetwork;
use super::config::Limits;
use super::hub::{Hub, JobId, Kind, Turn};
use super::send::Pump;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;
use linerate_transport::{CloseReason, ConnId, ConnState, FileError, FileId, FileOp, Files};

/// Bytes that one transfer may take in one turn; then others get theirs.
const TURN_LEN: u64 = 1 << 20;
/// Most parcels under way at once: one is written while the next one is taken, and what comes meanwhile makes that one large.
pub(super) const PARCELS_MAX: usize = 2;

/// A transfer's receiving half.
pub(super) struct Receiver {
    /// The file; none for the one that forgets everything.
    pub(super) file: Option<FileId>,
    /// Where the next piece goes.
    offset: u64,
    /// The file is to be cut there before anything is written.
    cut: bool,
    /// That is under way.
    cutting: bool,
    chunk: Vec<u8>,
    /// Bytes after which a piece is written.
    chunk_len: usize,
    /// Most writes under way at once.
    writes_max: usize,
    /// The lengths of those under way.
    writes: VecDeque<u64>,
    /// The transport takes bytes for the file without their passing through memory.
    parcels: bool,
    /// Where the upload began in the file.
    start: u64,
    /// There is a file, or was.
    stores: bool,
    /// Everything came; whether it was so.
    ending: Option<bool>,
    whole: bool,
    /// Bytes that are in the file.
    pub(super) stored: u64,
    /// Whether what came has the name that it was sent to.
    pub(super) kept: Option<bool>,
    /// TYPE A.
    ascii: Option<FromNetwork>,
    /// Bytes received, as they came.
    pub(super) received: u64,
    /// The first write that failed.
    pub(super) failed: Option<FileError>,
}

impl Receiver {
    /// Receives into `file` from `offset` on.
    pub(super) fn new(file: Option<FileId>, offset: u64, ascii: bool, limits: &Limits) -> Self {
        let ascii = ascii.then(FromNetwork::default);
        Receiver {
            file,
            offset,
            cut: true,
            cutting: false,
            chunk: Vec::new(),
            chunk_len: limits.write_chunk_len,
            writes_max: limits.writes_under_way,
            writes: VecDeque::new(),
            parcels: false,
            start: offset,
            stores: file.is_some(),
            ending: None,
            whole: false,
            stored: 0,
            kept: None,
            ascii,
            received: 0,
            failed: None,
        }
    }

    /// Whether the delay is not the client's but that of our files.
    pub(super) fn awaits_files(&self) -> bool {
        self.cutting || !self.writes.is_empty()
    }

    /// The data connection is there: what the file has from the offset on gives way. Not earlier, so that an upload
    /// that never comes about harms nothing.
    pub(super) fn start(&mut self, turn: &mut Turn<'_, '_>, job: JobId) {
        if let Some(file) = self.file
            && core::mem::take(&mut self.cut)
        {
            self.cutting = true;
            turn.submit(job, Kind::Truncate, FileOp::Truncate { file, len: self.offset });
        }
    }

    /// Takes what was received. `Done`: the client has sent everything. An error tells why the connection was lost.
    ///
    /// While too many writes are under way nothing is taken, so that the receive window closes and the client waits.
    pub(super) fn pump(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        conn: ConnId,
    ) -> Result<Pump, CloseReason> {
        let start = self.received;
        while self.received - start < TURN_LEN {
            let writes_max = if self.parcels { PARCELS_MAX } else { self.writes_max };
            if self.cutting || self.writes.len() >= writes_max {
                return Ok(Pump::Blocked);
            }
            let len = TURN_LEN - (self.received - start);
            match self.store(turn, conn, len).or_else(|| self.take(turn, job, conn, len)) {
                None => {}
                // Whoever asked looks at that first.
                Some(_) if self.failed.is_some() => return Ok(Pump::Blocked),
                Some(0) => {
                    let state = turn.ctx.net.state(conn);
                    return self.pause(turn, job, state);
                }
                Some(_) => continue,
            }
            // The state first: what arrives between the two looks is seen by the second.
            let state = turn.ctx.net.state(conn);
            let readable = turn.ctx.net.readable(conn);
            let piece = turn.ctx.net.peek(conn);
            if piece.is_empty() {
                return self.pause(turn, job, state);
            }
            let taken = match self.file {
                None => readable.max(piece.len()).min(TURN_LEN as usize),
                Some(file) => match self.write_now(turn.hub, turn.ctx.files, file, piece) {
                    0 => {
                        if self.chunk.is_empty() {
                            // Once, instead of moving what is there whenever it grows.
                            self.chunk.reserve(readable.min(self.chunk_len));
                        }
                        self.gather(piece)
                    }
                    written => written,
                },
            };
            self.received += taken as u64;
            turn.ctx.net.consume(conn, taken);
            if self.chunk.len() >= self.chunk_len {
                self.write(turn, job);
            }
        }
        Ok(Pump::Again)
    }

    /// Nothing is here now; the state tells whether more comes.
    fn pause(&mut self, turn: &mut Turn<'_, '_>, job: JobId, state: ConnState) -> Result<Pump, CloseReason> {
        match state {
            ConnState::Open { finished: true } | ConnState::Closed(CloseReason::Done) => {
                self.write(turn, job);
                Ok(Pump::Done)
            }
            ConnState::Closed(reason) => Err(reason),
            ConnState::Open { finished: false } | ConnState::Connecting => {
                // Nothing to wait for: what is here goes to the disk now.
                if self.writes.is_empty() {
                    self.write(turn, job);
                }
                Ok(Pump::Blocked)
            }
        }
    }

    /// Lets the transport move bytes to the file, if that may be; returns how many.
    fn store(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, len: u64) -> Option<usize> {
        let file = self.file.filter(|_| self.writes_are_next(turn.hub))?;
        let stored = turn.ctx.net.store(conn, file, self.offset, len as usize)?;
        self.offset += stored.len as u64;
        self.stored += stored.len as u64;
        self.received += stored.len as u64;
        if let Some(error) = stored.error {
            self.fail(error);
        }
        Some(stored.len)
    }

    /// Lets the transport take bytes for the file, if that may be; returns how many.
    fn take(&mut self, turn: &mut Turn<'_, '_>, job: JobId, conn: ConnId, len: u64) -> Option<usize> {
        let as_they_came = self.ascii.is_none() && self.failed.is_none() && self.chunk.is_empty();
        let file = self.file.filter(|_| as_they_came && turn.ctx.files.takes_parcels())?;
        let parcel = turn.ctx.net.take(conn, len as usize);
        self.parcels = parcel.is_some();
        let parcel = parcel?;
        let len = parcel.len();
        if len > 0 {
            let offset = self.offset;
            self.offset += len as u64;
            self.received += len as u64;
            self.writes.push_back(len as u64);
            turn.submit(job, Kind::Write, FileOp::WriteParcel { file, offset, parcel });
        }
        Some(len)
    }

    /// Whether what comes next is what is written next, and as it came.
    fn writes_are_next(&self, hub: &Hub) -> bool {
        let nothing_before = self.writes.is_empty() && self.chunk.is_empty() && !hub.has_waiting_operations();
        nothing_before && self.ascii.is_none() && self.failed.is_none()
    }

    /// Takes bytes into the piece that is written next; returns how many.
    fn gather(&mut self, piece: &[u8]) -> usize {
        let taken = piece.len().min(self.chunk_len.saturating_sub(self.chunk.len()).max(1));
        let piece = &piece[..taken];
        match &mut self.ascii {
            Some(convert) => convert.convert(piece, &mut self.chunk),
            None => self.chunk.extend_from_slice(piece),
        }
        taken
    }

    /// Writes bytes to the file from where they were received, if nothing is to be written before them and the files
    /// take them at once; returns how many.
    fn write_now(&mut self, hub: &Hub, files: &mut dyn Files, file: FileId, piece: &[u8]) -> usize {
        if !self.writes_are_next(hub) {
            return 0;
        }
        let written = files.write_now(file, self.offset, piece).min(piece.len());
        self.offset += written as u64;
        self.stored += written as u64;
        written
    }

    /// Writes what was gathered.
    fn write(&mut self, turn: &mut Turn<'_, '_>, job: JobId) {
        let Some(file) = self.file.filter(|_| !self.chunk.is_empty()) else { return };
        let data = mem::take(&mut self.chunk);
        let offset = self.offset;
        self.offset += data.len() as u64;
        self.writes.push_back(data.len() as u64);
        turn.submit(job, Kind::Write, FileOp::Write { file, offset, data });
    }

    /// Nothing more comes: writes the rest, and when that is done gives the file its name and closes it. `whole`: the
    /// client sent everything. False when there is no file.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_, '_>, job: JobId, whole: bool) -> bool {
        if let Some(convert) = &mut self.ascii {
            convert.finish(&mut self.chunk);
        }
        self.write(turn, job);
        self.whole = whole;
        self.ending = self.file.is_some().then_some(whole);
        self.settle(turn, job);
        self.ending.is_some() || self.stores && self.file.is_none()
    }

    /// Ends the file as soon as all is written.
    fn settle(&mut self, turn: &mut Turn<'_, '_>, job: JobId) {
        if !self.writes.is_empty() {
            return;
        }
        let (Some(whole), Some(file)) = (self.ending, self.file) else { return };
        (self.ending, self.file) = (None, None);
        if self.failed.is_some() && !self.cut {
            // A write that failed may have left some of its bytes: what is told to be there is there, and no more.
            let len = self.start.saturating_add(self.stored);
            turn.submit(job, Kind::Truncate, FileOp::Truncate { file, len });
        }
        let whole = whole && self.failed.is_none();
        if whole || self.stored > 0 {
            turn.submit(job, Kind::Publish, FileOp::Publish { file, whole });
        }
        turn.submit(job, Kind::Close, FileOp::Close { file });
    }

    /// The session is over: what came is written, without waiting for how that ends. False where it was being ended already.
    pub(super) fn abandon(&mut self, turn: &mut Turn<'_, '_>, job: JobId) -> bool {
        if let Some(convert) = &mut self.ascii {
            convert.finish(&mut self.chunk);
        }
        self.write(turn, job);
        let Some(file) = self.file.take() else { return false };
        (self.ending, self.whole) = (None, false);
        if self.stored > 0 || !self.writes.is_empty() {
            turn.submit(job, Kind::Publish, FileOp::Publish { file, whole: false });
        }
        turn.submit(job, Kind::Close, FileOp::Close { file });
        true
    }

    /// An operation on the file ended.
    pub(super) fn on_done(
        &mut self,
        turn: &mut Turn<'_, '_>,
        job: JobId,
        kind: Kind,
        result: Result<(), FileError>,
    ) {
        self.cutting &= kind != Kind::Truncate;
        match (kind, result) {
            (Kind::Write, result) => {
                let len = self.writes.pop_front().unwrap_or(0);
                match result {
                    Ok(()) if self.failed.is_none() => self.stored += len,
                    Ok(()) => {}
                    Err(error) => self.fail(error),
                }
                self.settle(turn, job);
            }
            // A part does not take the place of a whole file.
            (Kind::Publish, Err(FileError::Exists)) if !self.whole => self.kept = Some(false),
            (Kind::Publish, Ok(())) => self.kept = Some(true),
            (_, Err(error)) => self.fail(error),
            (_, Ok(())) => {}
        }
    }

    fn fail(&mut self, error: FileError) {
        self.failed.get_or_insert(error);
    }

    /// Whether there is a file that was not closed when the session ended.
    pub(super) fn stores(&self) -> bool {
        self.stores
    }

    /// Bytes for the log: those that are in the file of the name that they were sent to, or received where nothing is stored.
    pub(super) fn counted(&self) -> u64 {
        match (self.stores, self.kept) {
            (false, _) => self.received,
            (true, Some(true)) => self.stored,
            (true, _) => 0,
        }
    }
}
