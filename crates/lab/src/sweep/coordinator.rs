//! Hands the items of a sweep to worker processes, and sees it through whatever becomes of them.
//!
//! A thread for each worker takes chunks of items from a list, and gives back rows. A worker that ends is started again, and goes
//! on with what its chunk lacks. The item that it was working on is suspected: if it ends a second worker it gets a row that
//! says so, and the others go on. So every item ends at most two workers, and the whole ends.

use super::journal::{Journal, JournalError, Rows};
use super::plan::Plan;
use super::worker::{Done, Order, Ready, say};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

/// Most items of a chunk: what is lost when the coordinator ends.
const MOST_CHUNK: usize = 256;
/// Chunks that each worker gets at least, where there are enough items: the last ones are to end at about the same time.
const CHUNKS_EACH: usize = 16;
/// Workers that end before they have read the sweep, one after the other, after which no more are started.
const MOST_STILLBORN: usize = 3;
/// What is said of an item that ended two workers.
pub const POISON: &str = "the worker ended twice while it worked on this item";

/// Why a sweep did not end.
#[derive(Debug)]
pub enum CoordinatorError {
    /// Workers do not start, or do not speak.
    Workers(String),
    /// The journal failed.
    Journal(JournalError),
}

impl fmt::Display for CoordinatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoordinatorError::Workers(why) => write!(f, "the workers: {why}"),
            CoordinatorError::Journal(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CoordinatorError {}

impl From<JournalError> for CoordinatorError {
    fn from(error: JournalError) -> Self {
        CoordinatorError::Journal(error)
    }
}

/// How a sweep went.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Workers that ended before their work did, and were started again.
    pub restarts: u64,
    /// Items that ended two workers.
    pub poison: Vec<u64>,
}

/// Makes the command of a worker.
pub type Program<'a> = &'a (dyn Fn() -> Command + Sync);

/// Works on these items, `jobs` at a time, until there is a row for each; rows that are there stay. `told` hears of items as they
/// get done.
///
/// # Errors
/// Workers that cannot be started, and a journal that cannot be written.
pub fn run(
    plan: &Plan,
    items: &[u64],
    jobs: usize,
    program: Program<'_>,
    journal: &mut Journal,
    rows: &mut Rows,
    mut told: impl FnMut(u64),
) -> Result<Course, CoordinatorError> {
    let missing: Vec<u64> = items.iter().copied().filter(|item| !rows.contains_key(item)).collect();
    told((items.len() - missing.len()) as u64);
    let jobs = jobs.clamp(1, missing.len().max(1));
    let size = missing.len().div_ceil(jobs * CHUNKS_EACH).clamp(1, MOST_CHUNK);
    let work = Work {
        plan,
        program,
        chunks: Mutex::new(missing.chunks(size).map(|chunk| chunk.to_vec()).collect()),
        stop: AtomicBool::new(false),
    };
    let (send, receive) = mpsc::channel();
    let mut course = Course::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..jobs).map(|_| send.clone()).map(|send| scope.spawn(|| work.run(send))).collect();
        drop(send);
        let mut result = Ok(());
        for chunk in receive {
            match journal.note(&chunk) {
                Ok(()) => told(chunk.len() as u64),
                Err(error) => {
                    work.stop.store(true, Ordering::Relaxed);
                    result = Err(CoordinatorError::from(error));
                    break;
                }
            }
            rows.extend(chunk);
        }
        for thread in threads {
            match thread.join() {
                Ok(Ok(own)) => {
                    course.restarts += own.restarts;
                    course.poison.extend(own.poison);
                }
                Ok(Err(error)) => result = result.and(Err(error)),
                Err(_) => result = result.and(Err(CoordinatorError::Workers("a thread panicked".into()))),
            }
        }
        result
    })?;
    course.poison.sort_unstable();
    Ok(course)
}

/// What the threads share.
struct Work<'a> {
    plan: &'a Plan,
    program: Program<'a>,
    chunks: Mutex<VecDeque<Vec<u64>>>,
    /// One of them failed: the others need not go on.
    stop: AtomicBool,
}

impl Work<'_> {
    /// Takes chunks until there are none.
    fn run(&self, done: Sender<Vec<(u64, String)>>) -> Result<Course, CoordinatorError> {
        let mut course = Course::default();
        let mut worker = None;
        loop {
            let chunk = self.chunks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(chunk) = chunk.filter(|_| !self.stop.load(Ordering::Relaxed)) else { break };
            let rows = self.chunk(chunk, &mut worker, &mut course);
            if rows.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            if done.send(rows?).is_err() {
                break;
            }
        }
        if let Some(worker) = worker {
            worker.dismiss();
        }
        Ok(course)
    }

    /// The rows of a chunk.
    fn chunk(
        &self,
        items: Vec<u64>,
        worker: &mut Option<Worker>,
        course: &mut Course,
    ) -> Result<Vec<(u64, String)>, CoordinatorError> {
        let mut left = VecDeque::from(items);
        let mut rows = Vec::with_capacity(left.len());
        let mut suspect = None;
        while let Some(first) = left.front().copied() {
            let mut current = match worker.take() {
                Some(current) => current,
                None => self.start()?,
            };
            let answered = current.work(&mut left, &mut rows);
            if answered {
                *worker = Some(current);
                continue;
            }
            course.restarts += 1;
            current.end();
            let culprit = left.front().copied().unwrap_or(first);
            if suspect == Some(culprit) {
                rows.push((culprit, self.plan.failed(culprit, POISON)));
                course.poison.push(culprit);
                left.pop_front();
                suspect = None;
            } else {
                suspect = Some(culprit);
            }
        }
        Ok(rows)
    }

    /// Starts a worker.
    fn start(&self) -> Result<Worker, CoordinatorError> {
        let mut why = String::new();
        for _ in 0..MOST_STILLBORN {
            let mut command = (self.program)();
            let name = command.get_program().to_string_lossy().into_owned();
            let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let child =
                started.map_err(|why| CoordinatorError::Workers(format!("cannot start {name}: {why}")))?;
            let Some(mut worker) = Worker::new(child) else { continue };
            match worker.hear::<Ready>() {
                Some(Ready { ready }) if ready == self.plan.digest => return Ok(worker),
                Some(_) => why = "the sweep's file was changed while it ran".to_owned(),
                None => why = format!("{name} ends before it is ready"),
            }
            worker.end();
        }
        Err(CoordinatorError::Workers(why))
    }
}

/// A worker process.
struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn new(mut child: Child) -> Option<Worker> {
        let (orders, answers) = (child.stdin.take()?, child.stdout.take()?);
        Some(Worker { child, orders, answers: BufReader::new(answers) })
    }

    /// The next line; `None` if there is none, or something else.
    fn hear<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(len) if len > 0 => serde_json::from_str(&line).ok(),
            _ => None,
        }
    }

    /// Works on what is left of a chunk, and moves it to the rows; false if it ended on the way.
    fn work(&mut self, left: &mut VecDeque<u64>, rows: &mut Vec<(u64, String)>) -> bool {
        let order = Order { items: left.iter().copied().collect() };
        if say(&mut self.orders, &order).is_err() {
            return false;
        }
        while let Some(next) = left.front().copied() {
            match self.hear::<Done>() {
                Some(Done { item, row }) if item == next => rows.push((item, row)),
                _ => return false,
            }
            left.pop_front();
        }
        true
    }

    /// Ends it, if it has not.
    fn end(mut self) {
        // It may be gone already.
        let _: io::Result<()> = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets it end: there are no more orders.
    fn dismiss(self) {
        let Worker { mut child, orders, .. } = self;
        drop(orders);
        let _ = child.wait();
    }
}
