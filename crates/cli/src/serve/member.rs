//! The thread of another queue than the first: the same engine, files and servers, and orders from the first.

use super::ServeError;
use super::common::Common;
use super::open::Maker;
use super::post::{Ending, Post, PostOffice};
use super::record::Recorder;
use super::services::{Ports, Services};
use super::status::Status;
use super::worker::{DRAIN_INTERVAL, LOOK_INTERVAL, Machine, Worker};
use crate::logging;
use crate::settings::Settings;
use linerate_linux::files::{AnyFiles, SharedFiles};
use linerate_nic::DeviceError;
use linerate_serve::{Loop, Service as _, ftp};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// What such a thread is made from; all of it may cross to the thread.
pub struct Member {
    /// Makes the engine.
    pub maker: Maker,
    /// Makes the file service.
    pub files: SharedFiles,
    /// The settings.
    pub settings: Settings,
    /// Addresses to listen on.
    pub bind: Vec<Option<IpAddr>>,
    /// Ports of all servers.
    pub ports: Ports,
    /// Connections of all queues.
    pub table: usize,
    /// FTP users.
    pub users: Vec<ftp::User>,
    /// What servers of all queues share.
    pub common: Common,
    /// Its end of the status port, if there is one.
    pub status: Option<Status>,
    /// What it notes with, if anything is noted.
    pub recorder: Option<Recorder>,
    /// Its end of the post.
    pub post: PostOffice,
}

/// Starts the thread and waits until its servers listen.
pub fn start(member: Member) -> Result<JoinHandle<()>, ServeError> {
    let (started, result) = mpsc::sync_channel(1);
    let name = format!("queue-{}", member.post.seat().index);
    let live = move || {
        let worker = match member.into_worker() {
            Ok(worker) => worker,
            // Who waits for it tells the user.
            Err(error) => return drop(started.send(Err(error))),
        };
        // The one who waits is there as long as this has not been said.
        let _ = started.send(Ok(()));
        Life { worker, draining: false, told_idle: false, ending: Some(Ending::Panicked) }.live();
    };
    let thread = thread::Builder::new().name(name).spawn(live).map_err(ServeError::System)?;
    match result.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ServeError::System(io::Error::other("the thread of a queue has panicked"))),
    }
}

impl Member {
    fn into_worker(self) -> Result<Worker, ServeError> {
        let seat = self.post.seat();
        let files = self.files.into_files().map_err(ServeError::System)?;
        let mut engine = (self.maker)(&files, seat).map_err(ServeError::Open)?;
        engine.set_offloads(self.settings.offload).map_err(ServeError::Device)?;
        let place = super::services::Place { seat, common: Some(self.common) };
        let services = Services::new(&self.settings, self.bind, self.ports, self.table, self.users, &place)
            .map_err(ServeError::Ftp)?;
        let mut worker = Worker::new(Loop::new(engine, files, services), Machine::default(), Some(self.post));
        worker.with(|services, ctx| services.start(ctx)).map_err(ServeError::Start)?;
        worker.status = self.status;
        worker.busy_poll = self.settings.busy_poll;
        worker.record(self.recorder);
        Ok(worker)
    }
}

/// The thread while it lives; what became of it is told when this is dropped, also by a panic.
struct Life {
    worker: Worker,
    draining: bool,
    told_idle: bool,
    ending: Option<Ending>,
}

impl Life {
    fn live(mut self) {
        let result = self.serve();
        self.ending = Some(match result {
            Ok(cut_off) => Ending::Done { figures: self.worker.core.engine.figures(), cut_off },
            Err(error) => {
                // Nobody is there any more to send to, but what came of uploads is kept.
                self.worker.end(true);
                Ending::Failed(error)
            }
        });
    }

    /// Serves until it is told to end; returns how many connections were cut off.
    fn serve(&mut self) -> Result<u64, DeviceError> {
        let mut next_look = self.worker.now();
        loop {
            let mut busy = self.worker.turn()?;
            let now = self.worker.now();
            if now < next_look && (busy || !self.draining) && self.worker.rest(busy, now, next_look, None) {
                continue;
            }
            next_look = now + LOOK_INTERVAL;
            logging::settle(now);
            self.worker.answer_status();
            self.worker.note_levels();
            while let Some(order) = self.worker.orders.pop_front() {
                // What follows from it is done before any sleep.
                busy = true;
                match order {
                    Post::End { resets } => return Ok(self.worker.end(resets)),
                    order => self.follow(order),
                }
            }
            self.tell_idle();
            if !busy && !self.worker.asks_on(now) {
                let waits = self.draining && !self.told_idle;
                self.worker.sleep(self.worker.now(), waits.then(|| now + DRAIN_INTERVAL), None);
            }
        }
    }

    fn follow(&mut self, order: Post) {
        match order {
            Post::Reload(new) => self.reload(&new),
            Post::Drain => {
                self.worker.with(|services, ctx| services.drain(ctx));
                self.draining = true;
            }
            Post::Ask => {
                let told = self.worker.told();
                self.tell(Post::Told(told));
            }
            Post::Letter(_)
            | Post::Changed(_)
            | Post::End { .. }
            | Post::Told(_)
            | Post::Idle(..)
            | Post::Ended(..) => {}
        }
    }

    /// The first thread has found that these settings are good.
    fn reload(&mut self, new: &Arc<(Settings, Vec<ftp::User>)>) {
        let (settings, users) = new.as_ref();
        let reloaded = self.worker.with(|services, ctx| services.reload(ctx, settings, users.clone()));
        if let Err(error) = reloaded {
            log::error!("queue {}: FTP: {error}", self.seat());
        }
        if let AnyFiles::Directory(files) = &mut self.worker.core.files {
            files.set_writable(settings.writable);
        }
        if let Err(error) = self.worker.core.engine.set_offloads(settings.offload) {
            log::error!("queue {}: {error}", self.seat());
        }
        self.worker.busy_poll = settings.busy_poll;
    }

    fn tell_idle(&mut self) {
        let is_idle = self.draining && self.worker.core.is_idle();
        if is_idle != self.told_idle {
            self.told_idle = is_idle;
            self.tell(Post::Idle(self.seat(), is_idle));
        }
    }

    fn seat(&self) -> usize {
        self.worker.post.as_ref().map_or(0, |post| usize::from(post.seat().index))
    }

    fn tell(&self, post: Post) {
        if let Some(office) = &self.worker.post {
            office.out.tell(0, post);
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if let Some(ending) = self.ending.take() {
            self.tell(Post::Ended(self.seat(), ending));
        }
    }
}
