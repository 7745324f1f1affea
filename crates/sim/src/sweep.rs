//! Many worlds, on as many threads as somebody likes; each world has one for itself.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::coverage::Coverage;
use crate::laws::Finding;
use crate::world::play;

/// How a person plays one world again.
const REPLAY: &str = "cargo run -p linetender-sim -- --trace --seeds";

/// What came of many worlds.
#[derive(Debug, Default)]
pub struct Swept {
    /// How many worlds were played.
    pub worlds: u64,
    /// How many calls were made in them.
    pub calls: usize,
    /// How many of them ran again since their servers ran them and then said that they had not.
    pub ran_again: u64,
    /// What they reached together.
    pub coverage: Coverage,
    /// The worlds in which a law was broken; a world that panicked has no findings.
    pub broken: Vec<(u64, Vec<Finding>)>,
}

/// Plays the worlds of these seeds, until so many calls have been made, or so many worlds are broken.
pub fn sweep(seeds: Range<u64>, calls: usize, broken: usize, threads: usize) -> Swept {
    let next = AtomicU64::new(seeds.start);
    let swept = Mutex::new(Swept::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || lock(&swept).is_enough(calls, broken) {
                        return;
                    }
                    let played = catch_unwind(AssertUnwindSafe(|| play(seed, false)));
                    let mut swept = lock(&swept);
                    swept.worlds += 1;
                    match played {
                        Ok(played) => {
                            swept.calls += played.calls;
                            swept.ran_again += played.ran_again;
                            swept.coverage.add(&played.coverage);
                            if !played.findings.is_empty() {
                                swept.broken.push((seed, played.findings));
                            }
                        }
                        Err(_) => swept.broken.push((seed, Vec::new())),
                    }
                }
            });
        }
    });
    let mut swept = swept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    swept.broken.sort_by_key(|(seed, _)| *seed);
    swept
}

fn lock(swept: &Mutex<Swept>) -> std::sync::MutexGuard<'_, Swept> {
    swept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Swept {
    fn is_enough(&self, calls: usize, broken: usize) -> bool {
        self.calls >= calls || self.broken.len() >= broken
    }

    /// What was broken, and how to see it happen again.
    pub fn complaints(&self) -> Vec<String> {
        let of = |(seed, findings): &(u64, Vec<Finding>)| {
            let what = findings.first().map_or_else(|| "panicked, see above".to_owned(), ToString::to_string);
            format!("world {seed}: {what} ({} findings)\nreplay: {REPLAY} {seed}", findings.len())
        };
        self.broken.iter().map(of).collect()
    }
}
