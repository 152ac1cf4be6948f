//! Questions from the status thread to the loops, and their answers: bounded in number, in time and in what they cost.

use super::query::Query;
use super::report::Report;
use super::together;
use linerate_linux::mailbox::Mailbox;
use linerate_wire::units::Instant;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Longest that a client waits for the loop.
const PATIENCE: Duration = Duration::from_secs(2);
/// Least time between two reports.
const LEAST_GAP: Duration = Duration::from_millis(100);
/// Making reports takes this part of the loop's time at most.
const SHARE: u32 = 20;

/// A question, and where its answer goes.
#[derive(Debug)]
struct Question {
    query: Query,
    answer: mpsc::SyncSender<Arc<Report>>,
}

/// The end of those who ask; clones ask the same loops.
#[derive(Clone, Debug)]
pub struct Asker {
    loops: Vec<Arc<Mailbox<Question>>>,
}

/// A loop did not answer in time: it is stopping, or far too busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoAnswer;

impl Asker {
    /// Waits for a report of all loops together.
    pub fn ask(&self, query: Query) -> Result<Arc<Report>, NoAnswer> {
        let ask = |questions: &Arc<Mailbox<Question>>| {
            let (answer, report) = mpsc::sync_channel(1);
            questions.push(Question { query, answer });
            report
        };
        let until = std::time::Instant::now() + PATIENCE;
        let answers: Vec<_> = self.loops.iter().map(ask).collect();
        let mut reports = Vec::with_capacity(answers.len());
        for answer in answers {
            let left = until.saturating_duration_since(std::time::Instant::now());
            reports.push(answer.recv_timeout(left).map_err(|_| NoAnswer)?);
        }
        Ok(together::report(reports, query))
    }
}

/// A loop's end.
#[derive(Debug)]
pub struct Desk {
    questions: Arc<Mailbox<Question>>,
    waiting: VecDeque<Question>,
    /// No report is made before.
    next: Instant,
}

/// The end of those who ask, and one for each of so many loops.
pub fn open(loops: usize) -> io::Result<(Asker, Vec<Desk>)> {
    let boxes = (0..loops).map(|_| Mailbox::new().map(Arc::new)).collect::<io::Result<Vec<_>>>()?;
    let desk = |questions: &Arc<_>| Desk {
        questions: Arc::clone(questions),
        waiting: VecDeque::new(),
        next: Instant::ZERO,
    };
    let desks = boxes.iter().map(desk).collect();
    Ok((Asker { loops: boxes }, desks))
}

/// Both ends for one loop.
#[cfg(test)]
pub fn pair() -> io::Result<(Asker, Desk)> {
    let (asker, mut desks) = open(1)?;
    Ok((asker, desks.remove(0)))
}

impl Desk {
    /// What is asked, if a report may be made now. Costs next to nothing while nobody asks.
    pub fn due(&mut self, now: Instant) -> Option<Query> {
        self.questions.drain_into(&mut self.waiting);
        let question = self.waiting.front()?;
        (now >= self.next).then_some(question.query)
    }

    /// When [`Desk::due`] has something for who asks already; `None` while nobody does.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next)
    }

    /// Gives everybody who asked for `query` the report, whose making began at `begun` and took until `now`.
    pub fn answer(&mut self, begun: Instant, now: Instant, query: Query, report: Report) {
        let report = Arc::new(report);
        self.waiting.retain(|question| {
            let is_it = question.query == query;
            if is_it {
                // Who does not wait any more has gone.
                let _ = question.answer.try_send(Arc::clone(&report));
            }
            !is_it
        });
        self.next = now + LEAST_GAP.max(now.saturating_since(begun) * (SHARE - 1));
    }
}

impl AsFd for Desk {
    /// Becomes readable when somebody asks.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.questions.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_report_serves_all_who_asked_for_it_and_none_comes_too_soon() {
        let (asker, mut desk) = pair().unwrap();
        let at = Instant::from_millis;
        assert_eq!((desk.due(at(0)), desk.poll_timeout()), (None, None));
        let ask = |query| {
            let asker = asker.clone();
            std::thread::spawn(move || asker.ask(query).map(|report| report.uptime))
        };
        let other = Query { limit: 1, ..Query::default() };
        let askers = [ask(Query::default()), ask(Query::default()), ask(other)];
        while desk.waiting.len() < 3 {
            desk.due(at(0));
            std::thread::yield_now();
        }
        let mut now = 0;
        let mut reports = 0;
        while let Some(due) = desk.poll_timeout() {
            now = now.max((due - Instant::ZERO).as_millis() as u64);
            let query = desk.due(at(now)).expect("it is due");
            // It took 10 ms, so that the next one comes 190 ms later.
            now += 10;
            desk.answer(
                at(now - 10),
                at(now),
                query,
                Report { uptime: query.limit as f64, ..Report::default() },
            );
            reports += 1;
            assert!(desk.due(at(now + 189)).is_none());
        }
        assert_eq!(reports, 2);
        let answers = askers.map(|asker| asker.join().unwrap());
        assert_eq!(answers, [Ok(100.0), Ok(100.0), Ok(1.0)]);
    }

    #[test]
    fn who_went_away_harms_nobody() {
        let (asker, mut desk) = pair().unwrap();
        let (answer, gone) = mpsc::sync_channel(1);
        asker.loops[0].push(Question { query: Query::default(), answer });
        drop(gone);
        let query = desk.due(Instant::ZERO).unwrap();
        desk.answer(Instant::ZERO, Instant::ZERO, query, Report::default());
        assert_eq!(desk.poll_timeout(), None);
    }
}
