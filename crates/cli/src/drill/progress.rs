//! Where a drill stands, while it runs: one line that is drawn again on a terminal, now and then a line elsewhere.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use linetender_drill::drills::{Enough, Soak, Step};

/// How often a line is written where it cannot be drawn again.
const EVERY: Duration = Duration::from_secs(10);

/// Begins the line anew, and empties it.
const ANEW: &str = "\r\x1b[K";

/// The line.
pub(super) struct Progress {
    is_terminal: bool,
    begun: Instant,
    told: Cell<Instant>,
    broken: Cell<usize>,
}

impl Progress {
    #[expect(clippy::disallowed_methods, reason = "a line every ten seconds is by the clock")]
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let is_terminal = std::io::stderr().is_terminal();
        Self { is_terminal, begun: now, told: Cell::new(now), broken: Cell::new(0) }
    }

    /// A row is over.
    pub(super) fn row(&self, step: &Step<'_>) {
        let Step { done, of, target, row } = step;
        let broken = row.skipped.is_none() && !row.kept;
        self.broken.set(self.broken.get() + usize::from(broken));
        self.tell(&format!(
            "{done} of {of} rows, {} broken; {target}: {} ({})",
            self.broken.get(),
            row.row,
            row.era
        ));
    }

    /// A block of a soak is over.
    pub(super) fn soak(&self, target: &str, stand: &Soak, enough: Enough) {
        let Soak { faults, calls, findings, found, took } = stand;
        for found in found {
            eprintln!("{}BROKEN: {found}", if self.is_terminal { ANEW } else { "" });
        }
        let (took, of) = match enough {
            Enough::Faults(all) => (took.as_secs(), format!("of {all} ")),
            Enough::Time(time) => (took.as_secs(), format!("({} s of {}) ", took.as_secs(), time.as_secs())),
        };
        self.tell(&format!("{target}: {faults} {of}faults in {took} s, {calls} calls, {findings} findings"));
    }

    #[expect(clippy::disallowed_methods, reason = "a line every ten seconds is by the clock")]
    fn tell(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        if self.is_terminal {
            let _ = write!(stderr, "{ANEW}{text}");
            let _ = stderr.flush();
        } else if self.told.get().elapsed() >= EVERY {
            self.told.set(Instant::now());
            let _ = writeln!(stderr, "{:>4} s  {text}", self.begun.elapsed().as_secs());
        }
    }

    /// Leaves an empty line to what comes.
    pub(super) fn end(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "{ANEW}");
        }
    }
}
