//! Callers: each makes its calls one after the other, in its own time, and writes down what it was told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::{CallError, Deadline, Line, Options};
use tokio::time::{sleep, timeout};

use crate::mcp::{LISTED, LOOK, WRITE};
use crate::rng::Rng;
use crate::scene::Scene;

/// Beyond a call's own time: settling after a death, and the tick of a timer.
const SLACK: Duration = Duration::from_millis(60);

/// The policy's limit on a call that the server is quiet about, and its cap.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
pub(crate) const CAP: Duration = Duration::from_secs(600);

/// One call, from its caller's side.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) at: Duration,
    pub(crate) tool: &'static str,
    /// How long it may take at most.
    pub(crate) bound: Duration,
    /// Whether its time is the policy's.
    pub(crate) by_policy: bool,
    pub(crate) told: Option<(Duration, Told)>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Answer,
    Error(CallError),
    /// Its caller went away.
    Left,
}

/// Every call of a world, by nonce.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<BTreeMap<String, Asked>>>);

impl Calls {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes one call and writes down both ends of it.
    pub(crate) async fn make(&self, scene: &Scene, line: &Line, nonce: String, call: Call) -> bool {
        let at = scene.now();
        let asked = Asked {
            at,
            tool: call.tool,
            bound: call.bound(),
            by_policy: call.deadline == Deadline::Policy,
            told: None,
        };
        self.lock().insert(nonce.clone(), asked);
        let params = format!(
            r#"{{"name":"{}","arguments":{{"nonce":"{nonce}","more":"{}"}}}}"#,
            call.tool,
            "x".repeat(call.padding)
        );
        let options = Options::default().deadline(call.deadline);
        let asking = line.request("tools/call", linetender::Raw(&params), options);
        let told = match call.leaves {
            None => Ok(asking.await),
            Some(patience) => timeout(patience, asking).await,
        };
        let told = match told {
            Ok(Ok(_)) => Told::Answer,
            Ok(Err(error)) => Told::Error(error),
            Err(_) => Told::Left,
        };
        scene.say(|| match &told {
            Told::Answer => format!("{nonce}: answered"),
            Told::Error(error) => format!("{nonce}: {:?} {:?} {error}", error.kind, error.delivery),
            Told::Left => format!("{nonce}: its caller left"),
        });
        let answered = matches!(told, Told::Answer);
        if let Some(asked) = self.lock().get_mut(&nonce) {
            asked.told = Some((scene.now(), told));
        }
        answered
    }
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) deadline: Deadline,
    /// After how long its caller goes away.
    pub(crate) leaves: Option<Duration>,
    pub(crate) padding: usize,
}

impl Call {
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let tool = rng.pick(&[WRITE, WRITE, LOOK, LISTED]);
        let within = |rng: &mut Rng| {
            let total = Duration::from_millis(rng.pick(&[30, 200, 2000, 20_000]) + rng.below(100));
            let quiet = if rng.percent(50) { total } else { total / 2 + Duration::from_millis(1) };
            Deadline::Within { quiet, total }
        };
        let (deadline, leaves) = match rng.below(100) {
            0..60 => (Deadline::Policy, None),
            60..85 => (within(rng), None),
            85..92 => (Deadline::Policy, Some(rng.millis(0, 300))),
            _ => (Deadline::Agent, Some(rng.millis(1000, 60_000))),
        };
        let padding = if rng.percent(5) { rng.size(0, 20_000) } else { rng.size(0, 100) };
        Self { tool, deadline, leaves, padding }
    }

    /// One that has to be answered, once everything is well.
    pub(crate) const fn last() -> Self {
        Self { tool: WRITE, deadline: Deadline::after(Duration::from_secs(30)), leaves: None, padding: 0 }
    }

    fn bound(&self) -> Duration {
        let own = match self.deadline {
            Deadline::Within { total, .. } => total,
            _ => CAP,
        };
        self.leaves.map_or(own, |leaves| leaves.min(own)) + SLACK
    }
}

/// A caller.
pub(crate) async fn call_on(
    scene: Arc<Scene>,
    line: Line,
    calls: Calls,
    (number, times, pause): (usize, usize, u64),
    mut rng: Rng,
) {
    for n in 0..times {
        if rng.percent(50) {
            sleep(rng.millis(0, pause)).await;
        }
        let call = Call::any(&mut rng);
        calls.make(&scene, &line, format!("{number}-{n}"), call).await;
    }
}
