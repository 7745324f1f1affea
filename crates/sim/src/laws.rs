//! The laws of every world: the checker's, and those that only somebody who sees both sides can judge.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use linetender::{CallErrorKind, Delivery, Doubt, Evidence, RetryOn, RetryReason, ServerState, Settings};
use linetender_badserver::{BELIEVED, BELIEVED_AT_MOST, Bounds, Failure, History, ran_again_by_refusal};

use crate::book::{Book, Deed};
use crate::caller::{Asked, CAP, LIMIT, Told};
use crate::habits::Habits;
use crate::log::Entries;
use crate::mcp::{LISTED, LOOK, WRITE};
use crate::witness::Sent;

/// What a world came to, from all sides.
pub(crate) struct Course {
    pub(crate) calls: BTreeMap<String, Asked>,
    /// What linetender itself reported of each call.
    pub(crate) sent: BTreeMap<String, Sent>,
    pub(crate) log: Entries,
    pub(crate) book: Book,
    pub(crate) settings: Settings,
    pub(crate) habits: Habits,
    /// Whether a call was answered after the repair.
    pub(crate) back: bool,
    /// Whether the line could be closed in time.
    pub(crate) closed: bool,
    /// How many processes lived after that.
    pub(crate) left: usize,
    /// When streams of the host's own were opened.
    pub(crate) opened: Vec<Duration>,
    /// Whether the server is on the network.
    pub(crate) remote: bool,
}

/// A law that was broken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// The checker's word.
    Checked(linetender_badserver::Finding),
    /// A server saw what must never be.
    Wrong(String),
    /// A call took longer than its own time.
    Late {
        /// Which.
        nonce: String,
        /// How long.
        took: Duration,
    },
    /// The whole answer was in the pipe before the call was given up, and its caller was not told.
    AnswerLost {
        /// Which.
        nonce: String,
        /// What it was told.
        told: String,
    },
    /// It waited out its time, although its generation had ended in the meantime.
    WaitedForTheDead {
        /// Which.
        nonce: String,
        /// What it was told.
        told: String,
    },
    /// It reached its server more often than linetender reported, or was sent again without a record.
    NotRecorded {
        /// Which.
        nonce: String,
        /// How often it reached a server.
        reached: usize,
        /// What linetender reported.
        sent: Sent,
    },
    /// linetender counted it as not executed, could have sent it again, and did not.
    NotRecovered {
        /// Which.
        nonce: String,
        /// What it was told.
        told: String,
    },
    /// A stateful server's old session refused it, and the new one ran it.
    Crossed {
        /// Which.
        nonce: String,
    },
    /// It ran in a new process or session, and its agent had not been told that one which it had used was replaced.
    Unwarned {
        /// Which.
        nonce: String,
    },
    /// A line that did not come back after everything was repaired.
    StaysDown,
    /// Streams were opened again and again.
    StreamStorm {
        /// How many in a minute.
        streams: usize,
    },
    /// A close that did not end, or left something.
    NotClosed {
        /// How many processes are left.
        left: usize,
    },
}

/// More dials than this in a second are a storm, unless callers were served in it: a budget of five, people who ask for a
/// redial, and the free ones.
const DIALS: usize = 8;

/// How long after a death the last of its calls is told.
const SETTLED: Duration = Duration::from_millis(50);

/// How many streams a generation may open in a minute.
const STREAMS: usize = 20;

/// How many answers earn a dial.
const ANSWERS_PER_DIAL: usize = 10;

/// Judges a world.
pub(crate) fn judge(course: &Course) -> Vec<Finding> {
    let bounds = Bounds {
        call: Duration::from_secs(700),
        dials_per_second: usize::MAX,
        changes: match course.remote {
            // A stream that ended while the lists were first read may have hidden a change: agents are told once.
            true => 1,
            false if course.habits.chats => u32::MAX,
            false => 0,
        },
    };
    let attempts =
        |nonce: &str| course.book.deeds.get(nonce).map(|deed| deed.attempts.clone()).unwrap_or_default();
    let checked = linetender_badserver::check_attempts(&history(course), attempts, bounds);
    let mut findings: Vec<_> = checked.into_iter().map(Finding::Checked).collect();
    findings.extend(course.book.wrongs.iter().cloned().map(Finding::Wrong));
    for (nonce, asked) in &course.calls {
        findings.extend(judge_call(course, nonce, asked));
    }
    findings.extend(unrecorded(course));
    findings.extend(crossed(course));
    findings.extend(unwarned(course));
    findings.extend(storm(course));
    findings.extend(stream_storm(course));
    if !course.back {
        findings.push(Finding::StaysDown);
    }
    if !course.closed || course.left > 0 {
        findings.push(Finding::NotClosed { left: course.left });
    }
    findings
}

/// Whose promise not to have run a call is believed in this world, by the catalogue.
fn believed(retry_on: RetryOn) -> &'static [&'static str] {
    if retry_on.contains(RetryReason::RateLimited) {
        BELIEVED_AT_MOST
    } else if retry_on.contains(RetryReason::SessionLost) {
        BELIEVED
    } else {
        &[]
    }
}

/// How many calls ran again since their servers ran them and then said that they had not.
pub(crate) fn ran_again(course: &Course) -> u64 {
    let believed = believed(course.settings.retry_on);
    course.book.deeds.values().filter(|deed| ran_again_by_refusal(&deed.attempts, believed)).count() as u64
}

/// Every time that a call is sent again has a record. A call that is under way when its line closes has not ended.
fn unrecorded(course: &Course) -> impl Iterator<Item = Finding> {
    course.sent.iter().filter_map(|(nonce, sent)| {
        let reached = course.book.deeds.get(nonce).map_or(0, |deed| deed.attempts.len());
        let recorded =
            sent.attempts as usize >= reached && sent.attempts == sent.retries + sent.attempts.min(1);
        (!recorded).then(|| Finding::NotRecorded { nonce: nonce.clone(), reached, sent: *sent })
    })
}

/// Nothing crosses a generation of a server that keeps state in its process.
fn crossed(course: &Course) -> impl Iterator<Item = Finding> {
    let stateful = course.settings.state == ServerState::Process;
    let crossed = |deed: &Deed| deed.session_gone.is_some_and(|at| deed.runs.iter().any(|run| *run > at));
    let deeds = course.book.deeds.iter().filter(move |(_, deed)| stateful && crossed(deed));
    deeds.map(|(nonce, _)| Finding::Crossed { nonce: nonce.clone() })
}

/// No call is executed in a new context before its agent, which is all callers together, was told of the end of one that it had used.
fn unwarned(course: &Course) -> Vec<Finding> {
    let state = course.settings.state;
    let is_use = |tool| state != ServerState::None && (state == ServerState::Process || tool != LOOK);
    let is_held = |tool| is_use(tool) && (state == ServerState::Process || tool != LISTED);
    let answers_in = |context: u64| {
        let of = |deed: &&Deed| deed.answered.is_some() && deed.contexts.last() == Some(&Some(context));
        course.book.deeds.values().filter(of).count()
    };
    // When the agent heard the answer of a call that used a context.
    let used = course.calls.iter().filter_map(|(nonce, asked)| {
        let (at, Told::Answer) = asked.told.as_ref()? else { return None };
        let context = (*course.book.deeds.get(nonce)?.contexts.last()?)?;
        // A server that exits after its only answer keeps nothing.
        (is_use(asked.tool) && (course.remote || answers_in(context) > 1)).then_some((*at, context))
    });
    let used: Vec<_> = used.collect();
    let told = course.calls.values().filter_map(|asked| match asked.told.as_ref()? {
        (at, Told::Error(error)) if error.context.is_some() => Some(*at),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    let is_unwarned = |asked: &Asked, ran: Duration, context: u64| {
        used.iter().any(|(heard, used)| {
            let is_told = || told.iter().any(|at| (*heard..=ran).contains(at));
            *heard < asked.at && *used < context && !is_told()
        })
    };
    let runs = course.calls.iter().filter(|(_, asked)| is_held(asked.tool)).filter_map(|(nonce, asked)| {
        let deed = course.book.deeds.get(nonce)?;
        let mut runs = deed.runs.iter().zip(&deed.contexts);
        let unwarned =
            runs.any(|(at, context)| context.is_some_and(|context| is_unwarned(asked, *at, context)));
        unwarned.then(|| Finding::Unwarned { nonce: nonce.clone() })
    });
    runs.collect()
}

/// The budget's own promise: dials are paid for with service.
fn storm(course: &Course) -> Option<Finding> {
    let second = |from: Duration| from..from + Duration::from_secs(1);
    let told = |asked: &Asked| {
        asked.told.as_ref().filter(|(_, told)| matches!(told, Told::Answer)).map(|(at, _)| *at)
    };
    let answers: Vec<_> = course.calls.values().filter_map(told).collect();
    let dials: Vec<_> =
        course.log.states.iter().filter(|(_, state)| *state == "dialing").map(|(at, _)| *at).collect();
    dials.iter().find_map(|from| {
        let within = |times: &[Duration]| times.iter().filter(|at| second(*from).contains(*at)).count();
        let (dials, earned) = (within(&dials), within(&answers) / ANSWERS_PER_DIAL);
        (dials > DIALS + earned).then_some(Finding::Checked(linetender_badserver::Finding::Storm { dials }))
    })
}

/// Streams have waits of their own, which begin anew with a generation and with nothing else.
fn stream_storm(course: &Course) -> Option<Finding> {
    let within = |from: Duration, at: &Duration| (from..from + Duration::from_secs(60)).contains(at);
    course.opened.iter().find_map(|from| {
        let streams = course.opened.iter().filter(|at| within(*from, at)).count();
        let dials =
            course.log.states.iter().filter(|(at, state)| *state == "dialing" && within(*from, at)).count();
        (streams > STREAMS * (dials + 1)).then_some(Finding::StreamStorm { streams })
    })
}

fn judge_call(course: &Course, nonce: &str, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((at, told)) = &asked.told else { return findings };
    let took = at.saturating_sub(asked.at);
    if took > asked.bound {
        findings.push(Finding::Late { nonce: nonce.to_owned(), took });
    }
    let Told::Error(error) = told else { return findings };
    let deed = course.book.deeds.get(nonce);
    let during = |when: &Duration| *when >= asked.at && *when <= *at;
    let deaths = || course.log.states.iter().filter(|(when, state)| *state == "ending" && during(when));
    let deadest = deaths().map(|(when, _)| *when).next_back();
    let waited_for_the_dead = !course.remote
        && asked.by_policy
        && error.kind == CallErrorKind::TimedOut
        && took < CAP
        && deadest.is_some_and(|death| *at + Duration::from_secs(1) < death + LIMIT);
    if waited_for_the_dead {
        findings.push(Finding::WaitedForTheDead { nonce: nonce.to_owned(), told: error.to_string() });
    }
    // Where annotations are trusted, the next generation's list is asked first.
    let settled_late = !course.remote
        && !course.settings.trust_annotations
        && asked.tool == WRITE
        && error.kind == CallErrorKind::Lost
        && deadest.is_some_and(|death| *at > death + SETTLED);
    if settled_late {
        findings.push(Finding::WaitedForTheDead { nonce: nonce.to_owned(), told: error.to_string() });
    }
    let lost = error.kind == CallErrorKind::Lost && matches!(error.delivery, Delivery::Unknown(Doubt::Lost));
    // What comes after the seal comes too late: the call was given up with its generation, which is the first that ended
    // after its process began.
    let in_time = |deed: &Deed| {
        let Some((answered, began)) = deed.answered else { return false };
        let given_up = course.log.states.iter().find(|(when, state)| *state == "ending" && *when >= began);
        deed.runs.len() == 1 && given_up.is_some_and(|(when, _)| answered < *when)
    };
    if lost && deed.is_some_and(in_time) {
        findings.push(Finding::AnswerLost { nonce: nonce.to_owned(), told: error.to_string() });
    }
    let permitted = match error.delivery {
        Delivery::NotExecuted(Evidence::Queued) => true,
        Delivery::NotExecuted(Evidence::Residue) => {
            course.settings.retry_on.contains(RetryReason::NotExecuted)
        }
        _ => false,
    };
    if permitted
        && error.kind == CallErrorKind::Lost
        && deaths().count() < 2
        && course.settings.state == ServerState::None
    {
        findings.push(Finding::NotRecovered { nonce: nonce.to_owned(), told: error.to_string() });
    }
    findings
}

/// The world as the checker wants to see it.
fn history(course: &Course) -> History {
    let safe = |tool: &str| tool == LISTED || tool == LOOK && course.settings.trust_annotations;
    let told = |told: &Told| match told {
        Told::Answer => Ok(()),
        Told::Error(error) if error.answered.is_some() => Err(Failure::of_server(&error.cause)),
        Told::Error(error) => Err(Failure::of_fields(&error.fields())),
        // It is told nothing, and that is what it wanted.
        Told::Left => Err(Failure {
            server: "simulated".into(),
            phase: "left".into(),
            cause: "its caller left".into(),
            delivery: "unknown".into(),
            next_try: "never".into(),
        }),
    };
    let calls = course.calls.iter().map(|(nonce, asked)| {
        let told = asked.told.as_ref().map(|(at, how)| (*at, told(how)));
        (nonce.clone(), linetender_badserver::Asked { at: asked.at, safe: safe(asked.tool), told })
    });
    History {
        calls: calls.collect(),
        states: course.log.states.clone(),
        changes: course.log.changes,
        missed: course.log.missed,
        believed: believed(course.settings.retry_on),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checked(finding) => finding.fmt(f),
            Self::Wrong(wrong) => f.write_str(wrong),
            Self::Late { nonce, took } => write!(f, "call {nonce} took {took:?}, longer than its time"),
            Self::AnswerLost { nonce, told } => {
                write!(f, "call {nonce} was answered before it was given up, and was told: {told}")
            }
            Self::WaitedForTheDead { nonce, told } => {
                write!(f, "call {nonce} waited for a generation that had ended: {told}")
            }
            Self::NotRecorded { nonce, reached, sent } => {
                write!(f, "call {nonce} reached its server {reached} times, and linetender reported {sent:?}")
            }
            Self::NotRecovered { nonce, told } => {
                write!(f, "call {nonce} was counted as not executed, and was not sent again: {told}")
            }
            Self::Crossed { nonce } => {
                write!(
                    f,
                    "call {nonce} was refused by a session of a stateful server, and the next one ran it"
                )
            }
            Self::Unwarned { nonce } => {
                write!(f, "call {nonce} ran in a context that its agent had not been told of")
            }
            Self::StreamStorm { streams } => write!(f, "{streams} streams were opened within a minute"),
            Self::StaysDown => f.write_str("the line did not come back after the repair"),
            Self::NotClosed { left } => {
                write!(f, "the line was not closed in time, or {left} processes were left")
            }
        }
    }
}
