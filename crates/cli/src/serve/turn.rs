//! The loop of the thread that a server began with: its own queue, and what there is once.

use super::banner::{Announcements, Banner};
use super::company::Company;
use super::post::Post;
use super::stats::Stats;
use super::summary::Summary;
use super::worker::{DRAIN_INTERVAL, LOOK_INTERVAL, Worker};
use super::{ServeError, post::Told};
use crate::logging;
use linerate_linux::clock::wall_clock_ns;
use linerate_linux::signals::{Signal, Signals};
use linerate_serve::Service as _;
use linerate_wire::units::Instant;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// How long a stopping server waits for transfers under way.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Everything that one server process has.
pub struct Process {
    /// The first queue's sockets, files and servers.
    pub worker: Worker,
    /// The threads of the other queues.
    pub company: Company,
    /// Signals of the process.
    pub signals: Signals,
    /// Statistics, if wanted.
    pub stats: Option<Stats>,
    /// When serving began.
    pub started: Instant,
    /// What is printed of addresses.
    pub banner: Banner,
    /// Which addresses were told.
    pub announcements: Announcements,
}

impl Process {
    /// Serves until all `addresses` can be used, `patience` is over, or a signal has come.
    pub fn settle(&mut self, addresses: &[IpAddr], patience: Duration) -> Result<(), ServeError> {
        let until = self.worker.now() + patience;
        loop {
            let usable = self.worker.core.engine.addresses_in_use();
            let waits = usable.is_some_and(|usable| addresses.iter().any(|ip| !usable.contains(ip)));
            if !waits || self.worker.now() >= until || self.signals.has_any() {
                return Ok(());
            }
            self.worker.answer_status();
            if !self.worker.turn().map_err(ServeError::Device)? {
                self.worker.sleep(self.worker.now(), Some(until), Some(self.signals.as_fd()));
            }
        }
    }

    /// Serves until a signal ends it; returns how many connections were cut off. `reload` is called for SIGHUP.
    pub fn run(&mut self, mut reload: impl FnMut(&mut Process)) -> Result<u64, ServeError> {
        let mut drain_until: Option<Instant> = None;
        let mut next_look = self.worker.now();
        loop {
            let mut busy = self.worker.turn().map_err(ServeError::Device)?;
            let now = self.worker.now();
            if now < next_look
                && (busy || drain_until.is_none())
                && self.worker.rest(busy, now, next_look, Some(self.signals.as_fd()))
            {
                continue;
            }
            next_look = now + LOOK_INTERVAL;
            logging::settle(now);
            busy |= self.take_orders()?;
            self.print_stats();
            self.worker.answer_status();
            self.worker.note_levels();
            self.announce();
            while let Some(signal) = self.signals.take() {
                busy = true;
                match signal {
                    Signal::Hangup => reload(self),
                    Signal::User => log::debug!("SIGUSR1 and SIGUSR2 have no meaning here"),
                    Signal::Interrupt | Signal::Terminate if drain_until.is_some() => {
                        return self.end(true);
                    }
                    Signal::Interrupt | Signal::Terminate => {
                        log::info!("finishing what is under way; a second signal ends at once");
                        self.company.drain(self.worker.post.as_ref());
                        self.worker.with(|services, ctx| services.drain(ctx));
                        drain_until = Some(self.worker.now() + DRAIN_TIME);
                    }
                }
            }
            if let Some(until) = drain_until {
                if self.company.is_idle() && self.worker.core.is_idle() {
                    return self.end(false);
                }
                if self.worker.now() >= until {
                    log::warn!(
                        "transfers were still under way after {} s and are cut off",
                        DRAIN_TIME.as_secs()
                    );
                    return self.end(true);
                }
            }
            if !busy && !self.worker.asks_on(now) {
                let stats = self.stats.as_ref().filter(|_| !self.company.gathers()).map(Stats::due_at);
                let look = drain_until.map(|until| until.min(now + DRAIN_INTERVAL));
                let deadline = [stats, look].into_iter().flatten().min();
                self.worker.sleep(self.worker.now(), deadline, Some(self.signals.as_fd()));
            }
        }
    }

    /// What was served so far.
    pub fn summary(&mut self, cut_off: u64) -> Summary {
        Summary {
            figures: self.worker.core.engine.figures() + self.company.ended,
            cut_off,
            duration: self.worker.now() - self.started,
        }
    }

    /// Ends all threads after an error: there is nobody any more to send to, but what came of uploads is kept.
    pub fn give_up(&mut self) {
        // The error that is told is the first one.
        let _ = self.end(true);
    }

    /// Ends all threads; returns how many connections were cut off.
    fn end(&mut self, resets: bool) -> Result<u64, ServeError> {
        let company = self.company.tell_end(self.worker.post.as_ref(), resets);
        let ours = self.worker.end(resets);
        let others = if company { self.company.join(&mut self.worker)? } else { 0 };
        Ok(ours + others)
    }

    /// Takes what the other threads have told; true if they had.
    fn take_orders(&mut self) -> Result<bool, ServeError> {
        let mut any = false;
        while let Some(order) = self.worker.orders.pop_front() {
            any = true;
            match order {
                Post::Told(told) => {
                    if let Some(others) = self.company.gather(told) {
                        self.print_all(others);
                    }
                }
                Post::Idle(seat, is_idle) => self.company.set_idle(seat, is_idle),
                Post::Ended(seat, ending) => self.company.note_end(seat, ending)?,
                Post::Letter(_)
                | Post::Changed(_)
                | Post::Reload(_)
                | Post::Drain
                | Post::End { .. }
                | Post::Ask => {}
            }
        }
        Ok(any)
    }

    /// Tells of addresses that have come or gone since they were last looked at.
    fn announce(&mut self) {
        let Some(usable) = self.worker.core.engine.addresses_in_use() else { return };
        let news = self.announcements.update(usable);
        news.gone.into_iter().for_each(|ip| self.banner.print_gone(ip));
        news.new.into_iter().for_each(|ip| self.banner.print_address(ip));
    }

    fn print_stats(&mut self) {
        let now = self.worker.now();
        if self.company.gathers() || self.stats.as_ref().is_none_or(|stats| stats.due_at() > now) {
            return;
        }
        if !self.company.ask(self.worker.post.as_ref()) {
            self.print_all(Vec::new());
        }
    }

    /// Prints the line of statistics, of this thread and of what the others have told.
    fn print_all(&mut self, others: Vec<Told>) {
        let now = self.worker.now();
        let Some(stats) = &mut self.stats else { return };
        let mut all = self.worker.told();
        others.into_iter().for_each(|told| all.add(told));
        stats.print(now, Duration::from_nanos(wall_clock_ns()), all.figures, &all.tallies);
    }
}

#[cfg(test)]
mod tests;
