//! The one judge: holds a history against the server's own book.

use std::fmt;
use std::time::Duration;

use crate::book::{Attempt, Book};
use crate::history::History;

/// What a run must keep to.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A call that takes longer hung.
    pub call: Duration,
    /// More dials than this in a second are a storm.
    pub dials_per_second: usize,
    /// How often a list may change.
    pub changes: u32,
}

/// Something that must not be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// A call that was told nothing, or too late.
    Hung {
        /// Which.
        nonce: String,
    },
    /// A call that must not run twice did.
    RanTwice {
        /// Which.
        nonce: String,
        /// How often.
        runs: u32,
    },
    /// A caller was told something that is not so.
    WrongVerdict {
        /// Which.
        nonce: String,
        /// What it was told.
        told: String,
        /// How often it ran.
        runs: u32,
    },
    /// An error that does not say what happened, or what happens next.
    Causeless {
        /// Which.
        nonce: String,
    },
    /// A list was said to have changed, and had not.
    ListFlapped {
        /// How often.
        changes: u32,
    },
    /// Too many dials in too short a time.
    Storm {
        /// How many in a second.
        dials: usize,
    },
    /// Processes are left, zombies included.
    Orphans {
        /// How many.
        processes: usize,
    },
    /// There is more of something than there was.
    Leak {
        /// Of what.
        what: &'static str,
        /// Before.
        before: usize,
        /// After.
        after: usize,
    },
}

/// The refusals that are believed by default: MCP, or HTTP, requires them to come before the work.
pub const BELIEVED: &[&str] = &["session-lost", "auth", "protocol", "redirect", "goaway"];

/// All that can be believed, if a user asks for it.
pub const BELIEVED_AT_MOST: &[&str] =
    &["session-lost", "auth", "protocol", "redirect", "goaway", "rate-limited", "refused-stream"];

/// Judges a history. Nothing found is a good answer.
pub fn check(history: &History, book: &Book, bounds: Bounds) -> Vec<Finding> {
    let mut attempts = book.attempts();
    check_attempts(history, |nonce| attempts.remove(nonce).unwrap_or_default(), bounds)
}

/// True if the call ran again only after refusals by which its server promised that it had not run it, each of them once.
/// Such a server breaks MCP's own rule. `believed` are the refusals after which a call may be sent again.
pub fn ran_again_by_refusal(attempts: &[Attempt], believed: &[&str]) -> bool {
    let ran: Vec<_> = attempts.iter().filter(|attempt| attempt.runs > 0).collect();
    let Some((_, earlier)) = ran.split_last() else { return false };
    let words: Vec<_> = earlier.iter().filter_map(|attempt| attempt.refused.as_deref()).collect();
    !earlier.is_empty()
        && ran.iter().all(|attempt| attempt.runs == 1)
        && words.len() == earlier.len()
        && words.iter().enumerate().all(|(at, word)| believed.contains(word) && !words[..at].contains(word))
}

/// Judges a history, if what became of each call is known from somewhere else than a book on disk.
pub fn check_attempts(
    history: &History,
    mut attempts: impl FnMut(&str) -> Vec<Attempt>,
    bounds: Bounds,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (nonce, asked) in &history.calls {
        let attempts = attempts(nonce);
        let runs = attempts.iter().map(|attempt| attempt.runs).sum();
        let nonce = nonce.clone();
        let Some((_, told)) = asked.told.as_ref().filter(|(at, _)| *at <= asked.at + bounds.call) else {
            findings.push(Finding::Hung { nonce });
            continue;
        };
        if runs > 1 && !asked.safe && !ran_again_by_refusal(&attempts, history.believed) {
            findings.push(Finding::RanTwice { nonce: nonce.clone(), runs });
        }
        match told {
            Ok(()) if runs == 0 => {
                findings.push(Finding::WrongVerdict { nonce, told: "answered".into(), runs });
            }
            Ok(()) => {}
            Err(failure) if failure.not_executed() && runs > 0 || failure.answered() && runs == 0 => {
                findings.push(Finding::WrongVerdict { nonce, told: failure.to_string(), runs });
            }
            Err(failure) if failure.is_silent() => findings.push(Finding::Causeless { nonce }),
            Err(_) => {}
        }
    }
    if history.changes > bounds.changes {
        findings.push(Finding::ListFlapped { changes: history.changes });
    }
    let dials = most_dials_in_a_second(history);
    if dials > bounds.dials_per_second {
        findings.push(Finding::Storm { dials });
    }
    findings
}

fn most_dials_in_a_second(history: &History) -> usize {
    let dials: Vec<_> =
        history.states.iter().filter(|(_, state)| *state == "dialing").map(|(at, _)| *at).collect();
    let within = |from: Duration| {
        dials.iter().filter(|at| **at >= from && **at < from + Duration::from_secs(1)).count()
    };
    dials.iter().map(|from| within(*from)).max().unwrap_or(0)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hung { nonce } => write!(f, "call {nonce} hung"),
            Self::RanTwice { nonce, runs } => write!(f, "call {nonce} ran {runs} times"),
            Self::WrongVerdict { nonce, told, runs } => {
                write!(f, "call {nonce} ran {runs} times and was told: {told}")
            }
            Self::Causeless { nonce } => write!(f, "call {nonce} failed without a cause"),
            Self::ListFlapped { changes } => write!(f, "a list was said to have changed {changes} times"),
            Self::Storm { dials } => write!(f, "{dials} dials within a second"),
            Self::Orphans { processes } => write!(f, "{processes} processes are left"),
            Self::Leak { what, before, after } => write!(f, "{before} {what} became {after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Finding, check};
    use crate::book::Book;
    use crate::failure::Failure;
    use crate::history::{Asked, History};
    use std::time::Duration;

    const BOUNDS: Bounds = Bounds { call: Duration::from_secs(1), dials_per_second: 3, changes: 0 };

    fn book(text: &str) -> Book {
        let name = format!("linetender-checker-{}-{}", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Book::at(path)
    }

    fn told(millis: Option<u64>) -> History {
        let told = millis.map(|millis| (Duration::from_millis(millis), Ok(())));
        let mut history = History::default();
        history.calls.insert("a".into(), Asked { at: Duration::ZERO, safe: false, told });
        history
    }

    #[test]
    fn a_good_history_has_no_findings() {
        assert_eq!(check(&told(Some(5)), &book("read a 1\nrun a 1\n"), BOUNDS), []);
    }

    #[test]
    fn each_fault_is_found() {
        let a = || "a".to_owned();
        assert_eq!(check(&told(None), &book("run a 1\n"), BOUNDS), [Finding::Hung { nonce: a() }]);
        assert_eq!(check(&told(Some(1001)), &book("run a 1\n"), BOUNDS), [Finding::Hung { nonce: a() }]);
        let twice = [Finding::RanTwice { nonce: a(), runs: 2 }];
        assert_eq!(check(&told(Some(5)), &book("run a 1\nrun a 2\n"), BOUNDS), twice);
        let never = [Finding::WrongVerdict { nonce: a(), told: "answered".into(), runs: 0 }];
        assert_eq!(check(&told(Some(5)), &book(""), BOUNDS), never);
        let mut history = told(Some(5));
        history.changes = 1;
        assert_eq!(check(&history, &book("run a 1\n"), BOUNDS), [Finding::ListFlapped { changes: 1 }]);
        let mut history = told(Some(5));
        history.states = (0..4).map(|dial| (Duration::from_millis(dial * 100), "dialing")).collect();
        assert_eq!(check(&history, &book("run a 1\n"), BOUNDS), [Finding::Storm { dials: 4 }]);
    }

    #[test]
    fn a_verdict_is_held_against_the_book_and_must_say_all_five() {
        let full = Failure {
            server: "s".into(),
            phase: "flushed".into(),
            cause: "it died".into(),
            delivery: "unknown".into(),
            next_try: "now".into(),
        };
        let failed = |change: fn(&mut Failure)| {
            let mut failure = full.clone();
            change(&mut failure);
            let mut history = told(Some(5));
            history.calls.get_mut("a").unwrap().told = Some((Duration::ZERO, Err(failure)));
            history
        };
        let wrong = |findings: &[Finding]| matches!(findings, [Finding::WrongVerdict { .. }]);
        let (ran, never) = (book("run a 1\n\n\n"), book("\n"));
        assert_eq!(check(&failed(|_| ()), &ran, BOUNDS), []);
        assert_eq!(check(&failed(|_| ()), &never, BOUNDS), []);
        assert!(wrong(&check(&failed(|failure| failure.delivery = "not executed".into()), &ran, BOUNDS)));
        assert!(wrong(&check(&failed(|failure| failure.delivery = "answered".into()), &never, BOUNDS)));
        let silent: [fn(&mut Failure); 3] = [
            |failure| failure.cause.clear(),
            |failure| failure.delivery.clear(),
            |failure| failure.next_try.clear(),
        ];
        for change in silent {
            assert_eq!(check(&failed(change), &ran, BOUNDS), [Finding::Causeless { nonce: "a".into() }]);
        }
    }

    #[test]
    fn a_call_runs_twice_by_the_fault_of_its_server_if_a_refusal_is_believed() {
        let text = "read a 1\nrun a 1\nrefused auth a 1\nread a 1\nrun a 1\n";
        let mut history = told(Some(5));
        let twice = [Finding::RanTwice { nonce: "a".into(), runs: 2 }];
        assert_eq!(check(&history, &book(text), BOUNDS), twice);
        history.believed = &["goaway"];
        assert_eq!(check(&history, &book(text), BOUNDS), twice, "another refusal");
        history.believed = &["auth"];
        assert_eq!(check(&history, &book(text), BOUNDS), []);
        let again = format!("{text}refused auth a 1\nread a 1\nrun a 1\n");
        let thrice = [Finding::RanTwice { nonce: "a".into(), runs: 3 }];
        assert_eq!(check(&history, &book(&again), BOUNDS), thrice, "each refusal is believed once");
    }

    #[test]
    fn a_servers_own_error_may_come_without_a_run() {
        let mut history = told(Some(5));
        history.calls.get_mut("a").unwrap().told = Some((Duration::ZERO, Err(Failure::of_server("no"))));
        assert_eq!(check(&history, &book("\n\n\n\n"), BOUNDS), []);
    }

    #[test]
    fn a_safe_call_may_run_twice() {
        let mut history = told(Some(5));
        history.calls.get_mut("a").unwrap().safe = true;
        assert_eq!(check(&history, &book("run a 1\nrun a 2\n\n"), BOUNDS), []);
    }
}
