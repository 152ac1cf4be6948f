//! From engines that can be made to threads that serve.

use super::ServeError;
use super::common::Common;
use super::company::Company;
use super::member::{self, Member};
use super::open::Maker;
use super::post::PostOffice;
use super::record::Recorder;
use super::services::{Place, Ports, Services};
use super::status::Status;
use super::worker::{Machine, Worker};
use crate::settings::Settings;
use linerate_linux::files::AnyFiles;
use linerate_serve::{Loop, Service as _, ftp};
use std::io;
use std::net::IpAddr;

/// What the threads of a server are made from.
pub struct Crew {
    /// Makes the engine of each.
    pub makers: Vec<Maker>,
    /// Addresses to listen on.
    pub bind: Vec<Option<IpAddr>>,
    /// Ports of all servers.
    pub ports: Ports,
    /// Connections of all.
    pub table: usize,
    /// FTP users.
    pub users: Vec<ftp::User>,
    /// One for each, or none.
    pub statuses: Vec<Status>,
    /// One for each, or none.
    pub recorders: Vec<Recorder>,
}

impl Crew {
    /// Starts the servers of all queues: the first one's in this thread, which comes first, as it finds out whether ports are
    /// to be had.
    pub fn start(
        self,
        settings: &Settings,
        files: AnyFiles,
        machine: Machine,
    ) -> Result<(Worker, Company), ServeError> {
        let Crew { makers, bind, ports, table, users, statuses, recorders } = self;
        let mut recorders = recorders.into_iter();
        let seats = u16::try_from(makers.len()).unwrap_or(u16::MAX);
        let mut makers = makers.into_iter();
        let mut statuses = statuses.into_iter();
        let mut posts = PostOffice::open(seats).map_err(ServeError::System)?.into_iter();
        let (Some(maker), Some(post)) = (makers.next(), posts.next()) else {
            return Err(ServeError::System(io::Error::other("there is no queue")));
        };
        let seat = post.seat();
        let shares = files.share();
        let common = Common::default();
        let place = Place { seat, common: seat.is_shared().then(|| common.clone()) };
        let engine = maker(&files, seat).map_err(ServeError::Open)?;
        let services = Services::new(settings, bind.clone(), ports, table, users.clone(), &place)
            .map_err(ServeError::Ftp)?;
        let post = seat.is_shared().then_some(post);
        let mut worker = Worker::new(Loop::new(engine, files, services), machine, post);
        worker.with(|services, ctx| services.start(ctx)).map_err(ServeError::Start)?;
        worker.status = statuses.next();
        worker.busy_poll = settings.busy_poll;
        worker.record(recorders.next());
        let mut threads = Vec::new();
        for (maker, post) in makers.zip(posts) {
            let member = Member {
                maker,
                files: shares.clone(),
                settings: settings.clone(),
                bind: bind.clone(),
                ports,
                table,
                users: users.clone(),
                common: common.clone(),
                status: statuses.next(),
                recorder: recorders.next(),
                post,
            };
            threads.push(member::start(member)?);
        }
        Ok((worker, Company::new(threads)))
    }
}
