//! Where the server stands, and what calls get.

use std::time::SystemTime;

use serde::Serialize;

use super::{Scene, spans};
use crate::holder::LineReport;
use crate::journal::Reason;
use linetender::visible;
use linetender_wire::wall::from_rfc3339;

/// Where a server stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Now {
    /// Whether a running linetender process holds it.
    pub live: bool,
    /// Its state, as `linetender status` has it; the last one that the journal knows if it is not live.
    pub state: String,
    /// For how long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_millis: Option<u64>,
    /// What that means.
    pub text: String,
    /// What becomes of calls.
    pub calls: String,
    /// What is wrong with a server that is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Process id of a local server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// When it is tried next, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try: Option<String>,
    /// Whether an operator parked it.
    pub parked_by_operator: bool,
    /// Whether what it failed of does not pass by itself: it cannot work as configured.
    pub misconfigured: bool,
    /// The process that held it last, if none says that it holds it now.
    #[serde(skip)]
    pub(super) last_holder: Option<u32>,
}

impl Now {
    pub(super) fn of(live: Option<&LineReport>, last: Option<&Scene<'_>>, now: SystemTime) -> Self {
        match (live, last) {
            (Some(live), _) => Self::live(live),
            (None, Some(last)) => Self::gone(last, now),
            (None, None) => Self::unknown(),
        }
    }

    fn live(live: &LineReport) -> Self {
        let has = |found: fn(&Reason) -> bool| live.cause.as_ref().is_some_and(found);
        let down = live.state == "parked" || live.state == "draining" || live.state == "ending";
        let parked_by_operator = down && has(Reason::parked_by_operator);
        let misconfigured = live.state == "parked" && has(of_config);
        let (text, calls) = words(&live.state, parked_by_operator, misconfigured);
        Self {
            live: true,
            state: visible::cut(&live.state, 40),
            for_millis: Some(live.since_millis),
            text: text.to_owned(),
            calls: calls.to_owned(),
            health: live.health.as_deref().map(|health| visible::cut(health, 300)),
            pid: live.pid,
            next_try: live.next_try.as_deref().map(|next| visible::cut(next, 80)),
            parked_by_operator,
            misconfigured,
            last_holder: None,
        }
    }

    /// What the journal knows last of a server that nobody holds.
    fn gone(last: &Scene<'_>, now: SystemTime) -> Self {
        let text = if last.state == "closed" {
            "not running: the linetender process that ran it was shut down".to_owned()
        } else {
            format!(
                "not running: the linetender process that ran it (pid {}) is gone and did not write why, so it was killed or it crashed",
                last.holder
            )
        };
        Self {
            live: false,
            state: visible::cut(last.state, 40),
            for_millis: from_rfc3339(last.at).map(|at| spans::millis(at, now)),
            text,
            calls: "No agent is connected to it through linetender, so there are no calls.".to_owned(),
            health: None,
            pid: None,
            next_try: last.next_try.map(|next| visible::cut(next, 80)),
            parked_by_operator: false,
            misconfigured: last.cause.is_some_and(of_config),
            last_holder: Some(last.holder),
        }
    }

    fn unknown() -> Self {
        Self {
            live: false,
            state: "unknown".to_owned(),
            for_millis: None,
            text: "not known: the journal has no entry for it".to_owned(),
            calls: String::new(),
            health: None,
            pid: None,
            next_try: None,
            parked_by_operator: false,
            misconfigured: false,
            last_holder: None,
        }
    }

    /// Whether calls are answered.
    pub(super) fn serves(&self) -> bool {
        self.live && matches!(self.state.as_str(), "up" | "suspect")
    }
}

fn of_config(reason: &Reason) -> bool {
    reason.leaves.iter().any(|leaf| leaf == "config")
}

fn words(state: &str, by_operator: bool, misconfigured: bool) -> (&'static str, &'static str) {
    const WAIT: &str = "Calls wait a few seconds for it; if it is not back by then, they fail, and their error says whether they were executed.";
    const REFUSED: &str = "Calls fail at once. They are not executed, and their error says so.";
    match state {
        "up" => ("in service", "Calls are answered."),
        "suspect" => ("in service, but linetender is checking its health", "Calls are answered."),
        "idle" => ("not running, because nobody uses it", "The next call starts it."),
        "dialing" => ("being started or connected to", WAIT),
        "draining" if by_operator => (
            "being parked by an operator",
            "Calls that it has may finish; new ones fail at once, not executed.",
        ),
        "draining" => ("being replaced", "Calls that it has may finish; new ones wait for the next one."),
        "ending" if by_operator => ("being stopped by an operator", REFUSED),
        "ending" => ("down: what is left of the last process or connection is being cleaned up", WAIT),
        "waiting" => ("down; linetender tries it again by itself", WAIT),
        "parked" if by_operator => ("parked: an operator took it out of service", REFUSED),
        "parked" if misconfigured => ("parked: it cannot work as it is configured", REFUSED),
        "parked" => (
            "parked: it failed too often, or its login was refused, so linetender tries it only now and then",
            REFUSED,
        ),
        "needs-auth" => ("waiting for credentials", REFUSED),
        "closed" => ("shut down", "There are no calls."),
        _ => ("in a state that this version of linetender does not know", ""),
    }
}
