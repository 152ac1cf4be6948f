//! Does what a question of `fabric` asks for, on this machine, and says what it took.

use super::chase::{LINK_CYCLES, chain, circle, follow};
use super::memory::{Block, Chance};
use super::sample::{Effort, LOST, Sampled, cluster, measure};
use super::timer::{Machine, Timer as _};
use super::{cores, kernels};
use linerate_fabric::hierarchy::{Question, Work};
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Room behind a working set, so that a copy may begin at any place of a line.
const ROOM: usize = 256;
/// The least steps of a sample through a circle: short beside the largest circles, long beside a turn of the smallest.
const WARM_STEPS: u64 = 4_000_000;

/// The memory and the clock of one thread that measures.
pub struct Bench {
    timer: Machine,
    effort: Effort,
    from: Block,
    to: Block,
    chance: Chance,
}

impl Bench {
    /// For working sets of up to `most` bytes, on the core that the thread keeps to.
    pub fn new(most: usize, core: Option<usize>, effort: Effort) -> Bench {
        let block = || Block::new(most + ROOM);
        Bench { timer: Machine::new(core), effort, from: block(), to: block(), chance: Chance(1) }
    }

    /// Whether the machine tells of what takes the core away.
    pub fn tells(&self) -> bool {
        self.timer.tells()
    }

    /// Nanoseconds of a cycle of the core: the least of several figures, as nothing makes a chain faster than its clock.
    pub fn cycle(&mut self) -> Sampled {
        let mut once = || {
            let sampled = measure(&mut self.timer, self.effort, |repeat| {
                black_box(chain(repeat * 8));
                repeat * 8
            });
            sampled.times(1.0 / LINK_CYCLES)
        };
        let mut best = once();
        for _ in 1..CYCLE_TRIES {
            let other = once();
            best = if other.ns < best.ns { other } else { best };
        }
        best
    }

    /// Nanoseconds a load or store, or a byte, of one core. `backwards` reads from the end.
    pub fn ask(&mut self, question: Question, backwards: bool) -> Sampled {
        let room = self.from.bytes().len() - ROOM;
        let bytes = usize::try_from(question.bytes).unwrap_or(usize::MAX).min(room);
        let words = bytes / 8;
        if let Work::Chase(stride) = question.work {
            return self.chase(words, (stride as usize / 8).max(1));
        }
        let Bench { timer, effort, from, to, chance } = self;
        match question.work {
            Work::Stride(stride) => {
                let step = (stride as usize / 8).max(1);
                let each = kernels::strided_loads(words, step);
                measure(timer, *effort, |repeat| {
                    for _ in 0..repeat {
                        black_box(kernels::sum_strided(black_box(&from.words()[..words]), step));
                    }
                    repeat.saturating_mul(each)
                })
            }
            Work::Gather => measure(timer, *effort, |repeat| {
                black_box(kernels::gather(black_box(&from.words()[..words]), repeat * BATCH, chance));
                repeat * BATCH
            }),
            Work::Scatter => measure(timer, *effort, |repeat| {
                kernels::scatter(black_box(&mut from.words_mut()[..words]), repeat * BATCH, chance);
                repeat * BATCH
            }),
            work => measure(timer, *effort, |repeat| {
                for _ in 0..repeat {
                    pass(work, bytes, from, to, backwards);
                }
                repeat.saturating_mul(bytes as u64)
            }),
        }
    }

    fn chase(&mut self, words: usize, step: usize) -> Sampled {
        let places = circle(&mut self.from.words_mut()[..words], step, &mut self.chance) as u64;
        // Once round, so that what is held is what a round leaves.
        let mut at = follow(self.from.words(), 0, places.clamp(1, WARM_STEPS));
        let (timer, from) = (&mut self.timer, &self.from);
        measure(timer, self.effort, |repeat| {
            at = follow(from.words(), at, repeat * BATCH);
            repeat * BATCH
        })
    }
}

/// How often the clock is told, of which the fastest counts.
const CYCLE_TRIES: usize = 12;
/// Accesses in a call of a loop over places at random.
const BATCH: u64 = 256;

/// Once through a working set in order.
fn pass(work: Work, bytes: usize, from: &Block, to: &mut Block, backwards: bool) {
    let source = || black_box(&from.words()[..bytes / 8]);
    match work {
        Work::Read(None) if backwards => _ = black_box(kernels::sum_backwards(source())),
        Work::Read(None) => _ = black_box(kernels::sum(source())),
        Work::Read(Some(width)) => {
            _ = black_box(kernels::read_elements(black_box(&from.bytes()[..bytes]), width as usize));
        }
        Work::Fill => kernels::fill(&mut to.bytes_mut()[..bytes], 1),
        Work::Copy(source, target) => {
            let (source, target) = (source as usize % ROOM, target as usize % ROOM);
            kernels::copy(&mut to.bytes_mut()[target..target + bytes], &from.bytes()[source..source + bytes]);
        }
        Work::Chase(_) | Work::Stride(_) | Work::Gather | Work::Scatter => {}
    }
}

/// Threads that do the same at once, each on a core of its own with memory of its own.
pub struct Crowd {
    cores: Vec<usize>,
    blocks: Vec<(Block, Block)>,
    effort: Effort,
}

/// Samples of one thread end apart by as much as the others take to notice; a sample is this much longer to make up for it.
const LONGER: u64 = 4;

impl Crowd {
    /// A thread for each core, for working sets of up to `most` bytes.
    pub fn new(most: usize, cores: &[usize], effort: Effort) -> Crowd {
        let blocks = cores.iter().map(|_| (Block::new(most + ROOM), Block::new(most + ROOM))).collect();
        Crowd { cores: cores.to_vec(), blocks, effort }
    }

    /// Nanoseconds a byte of all threads together, when the first `question.cores` of them work.
    ///
    /// # Errors
    /// A thread that cannot keep to its core.
    pub fn ask(&mut self, question: Question) -> Result<Sampled, String> {
        let threads = (question.cores as usize).min(self.cores.len());
        let mut rates: Vec<(f64, bool)> = Vec::new();
        let mut found = None;
        while rates.len() < self.effort.most {
            rates.push(self.round(question, threads)?);
            let clean: Vec<f64> = rates.iter().filter(|(_, clean)| *clean).map(|(ns, _)| *ns).collect();
            if clean.len() >= self.effort.samples {
                found = cluster(&clean);
                if found.is_some() {
                    break;
                }
            }
        }
        Ok(Sampled::of(&rates, found))
    }

    /// All work until time is up; what a byte took, and whether none lost its core.
    fn round(&mut self, question: Question, threads: usize) -> Result<(f64, bool), String> {
        let (ready, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
        let bytes = question.bytes as usize;
        let time = std::time::Duration::from_nanos(self.effort.sample_ns * LONGER);
        let results: Vec<Result<(f64, bool), String>> = std::thread::scope(|scope| {
            let workers: Vec<_> = self.cores.iter().zip(&mut self.blocks).take(threads).collect();
            let workers: Vec<_> = workers
                .into_iter()
                .map(|(core, (from, to))| {
                    let (ready, stop) = (&ready, &stop);
                    scope.spawn(move || {
                        let kept = cores::keep_to(*core);
                        let mut timer = Machine::new(Some(*core));
                        pass(question.work, bytes, from, to, false);
                        ready.wait();
                        kept?;
                        let (lost, start) = (timer.lost_ns(), timer.now_ns());
                        let mut passes = 0u64;
                        // At least one, however large it is.
                        while passes == 0 || !stop.load(Ordering::Relaxed) {
                            pass(question.work, bytes, from, to, false);
                            passes += 1;
                        }
                        let time = timer.now_ns().saturating_sub(start).max(1) as f64;
                        let lost = timer.lost_ns().saturating_sub(lost) as f64;
                        Ok((passes as f64 * bytes as f64 / time, lost <= time * LOST))
                    })
                })
                .collect();
            ready.wait();
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            let joined = workers.into_iter().map(|worker| worker.join());
            joined
                .map(|result| result.unwrap_or_else(|_| Err("a thread that measures failed".to_owned())))
                .collect()
        });
        let (mut rate, mut clean) = (0.0, true);
        for result in results {
            let (own, undisturbed) = result?;
            rate += own;
            clean &= undisturbed;
        }
        Ok((1.0 / rate, clean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every question has an answer above nothing; how large it is, is the machine's to say.
    #[test]
    fn every_question_is_answered() {
        let effort = Effort { sample_ns: 10_000, samples: 1, most: 1 };
        let mut bench = Bench::new(1 << 16, None, effort);
        assert!(bench.cycle().ns > 0.0);
        let works = [
            Work::Chase(8),
            Work::Chase(4096),
            Work::Stride(72),
            Work::Gather,
            Work::Scatter,
            Work::Read(None),
            Work::Read(Some(1)),
            Work::Read(Some(32)),
            Work::Fill,
            Work::Copy(0, 0),
            Work::Copy(63, 1),
        ];
        for work in works {
            for bytes in [1 << 12, 1 << 16, 1 << 40] {
                let found = bench.ask(Question { work, bytes, cores: 1 }, false);
                assert!(found.ns > 0.0 && found.ns.is_finite(), "{work:?} {bytes}: {found:?}");
            }
        }
        let cores = cores::allowed();
        let mut crowd = Crowd::new(1 << 12, &cores[..1], effort);
        let found = crowd.ask(Question { work: Work::Copy(0, 0), bytes: 1 << 12, cores: 1 }).unwrap();
        assert!(found.ns > 0.0, "{found:?}");
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        let effort = Effort { sample_ns: 1000, samples: 1, most: 1 };
        let error =
            Crowd::new(4096, &[1020], effort).ask(Question { work: Work::Fill, bytes: 4096, cores: 1 });
        assert!(error.unwrap_err().contains("core 1020"));
    }
}
