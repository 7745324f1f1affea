//! What must be true of every history.

use std::time::Duration;

use linetender_core::{
    Class, Delivery, DialPhase, Generation, Leaf, Leaves, Machine, RetryOn, RetryReason, ServerRefusal,
    Settings, State,
};

use crate::call::{Call, Truths};
use crate::server::Try;

/// How often something happened: a sweep that never saw a rare thing proves nothing about it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub answered: u64,
    pub not_executed: u64,
    pub unknown: u64,
    pub refused: u64,
    pub turned_away: u64,
    pub evidence_by_residue: u64,
    pub sent_again_unexecuted: u64,
    pub sent_again_refused: u64,
    /// Calls that ran again after a refusal that their server may send only before it runs anything.
    pub ran_twice_by_refusal: u64,
    pub retried_safe: u64,
    pub asked_new_generation: u64,
    pub withdrawn_while_writing: u64,
    pub answers_won_by_drain: u64,
    pub planned_ends: u64,
    pub unplanned_ends: u64,
    pub mixed_ends: u64,
    pub parked: u64,
    pub out_of_service: u64,
    pub needs_auth: u64,
    pub suspected: u64,
    pub stuck: u64,
    pub stale_events: u64,
    pub slept: u64,
    pub woken_by_use: u64,
    pub kept_in_context: u64,
    pub survivors_read_on: u64,
    pub abandoned: u64,
    pub useful_ends: u64,
    pub given_up_behind: u64,
    /// Sums for the laws below.
    pub calls: u64,
    pub charged: u64,
    pub answered_by_server: u64,
    pub up: Duration,
    pub elapsed: Duration,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.not_executed += other.not_executed;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.turned_away += other.turned_away;
        self.evidence_by_residue += other.evidence_by_residue;
        self.sent_again_unexecuted += other.sent_again_unexecuted;
        self.sent_again_refused += other.sent_again_refused;
        self.ran_twice_by_refusal += other.ran_twice_by_refusal;
        self.retried_safe += other.retried_safe;
        self.asked_new_generation += other.asked_new_generation;
        self.withdrawn_while_writing += other.withdrawn_while_writing;
        self.answers_won_by_drain += other.answers_won_by_drain;
        self.planned_ends += other.planned_ends;
        self.unplanned_ends += other.unplanned_ends;
        self.mixed_ends += other.mixed_ends;
        self.parked += other.parked;
        self.out_of_service += other.out_of_service;
        self.needs_auth += other.needs_auth;
        self.suspected += other.suspected;
        self.stuck += other.stuck;
        self.stale_events += other.stale_events;
        self.slept += other.slept;
        self.woken_by_use += other.woken_by_use;
        self.kept_in_context += other.kept_in_context;
        self.survivors_read_on += other.survivors_read_on;
        self.abandoned += other.abandoned;
        self.useful_ends += other.useful_ends;
        self.given_up_behind += other.given_up_behind;
        self.calls += other.calls;
        self.charged += other.charged;
        self.answered_by_server += other.answered_by_server;
    }

    /// Everything that a law speaks of has to have happened.
    pub fn everything(&self) {
        for (what, times) in [
            ("answered", self.answered),
            ("not executed", self.not_executed),
            ("unknown", self.unknown),
            ("refused", self.refused),
            ("turned away", self.turned_away),
            ("evidence by residue", self.evidence_by_residue),
            ("sent again as not executed", self.sent_again_unexecuted),
            ("sent again as refused", self.sent_again_refused),
            ("ran twice by refusal", self.ran_twice_by_refusal),
            ("retried as safe", self.retried_safe),
            ("asked the new generation", self.asked_new_generation),
            ("withdrawn while writing", self.withdrawn_while_writing),
            ("answer won by the drain", self.answers_won_by_drain),
            ("planned end", self.planned_ends),
            ("unplanned end", self.unplanned_ends),
            ("mixed end", self.mixed_ends),
            ("parked", self.parked),
            ("out of service", self.out_of_service),
            ("needs auth", self.needs_auth),
            ("suspected", self.suspected),
            ("stuck", self.stuck),
            ("stale event", self.stale_events),
            ("slept", self.slept),
            ("woken by use", self.woken_by_use),
            ("kept in its context", self.kept_in_context),
            ("survivor read on", self.survivors_read_on),
            ("abandoned", self.abandoned),
            ("charged as useful", self.useful_ends),
            ("given up behind an older call", self.given_up_behind),
        ] {
            assert!(times > 0, "{what} never happened");
        }
    }
}

/// Every state but closed has a way out: a timer, a knock, an operator's command, or the driver's own business.
pub fn way_out(machine: &Machine<&'static str>) -> Result<(), String> {
    let out = match machine.state() {
        State::Idle(_) | State::OutOfService { .. } | State::Closed => true,
        State::Dialing(dialing) => dialing.phase == DialPhase::AtGate || machine.poll_timeout().is_some(),
        _ => machine.poll_timeout().is_some(),
    };
    if out { Ok(()) } else { Err(format!("no way out of {:?}", machine.state())) }
}

/// The most that the bucket can hold which pays for the end of a generation that answered so many: the larger one, if it
/// answered a few and those did not pay for it.
pub fn bucket(policy: &Settings, answered: u64) -> (bool, u32) {
    let few = answered >= 3 && answered * u64::from(policy.budget.millis_per_answer) < 1000;
    let tokens = if few { policy.budget.useful_tokens } else { policy.budget.tokens };
    (few, u32::from(tokens) * 1000)
}

/// What an end must have cost, said in the plainest way.
pub fn charge(policy: &Settings, leaves: Leaves, answered: u64, era_probed: bool, tokens: u32) -> u32 {
    let served = answered > 0;
    let costs = |leaf| match leaf {
        Leaf::Planned(_) => false,
        Leaf::Failed(Class::Auth | Class::Config | Class::Local) => false,
        Leaf::Failed(Class::SessionLost) => !served,
        Leaf::Failed(Class::EraProbe) => era_probed,
        Leaf::Failed(_) => true,
    };
    assert!(tokens <= bucket(policy, answered).1);
    if leaves.iter().any(costs) && tokens >= 1000 { 1000 } else { 0 }
}

/// The member of `retry_on` that permits one re-send after this refusal, by the catalogue.
const fn permits(refusal: ServerRefusal) -> Option<RetryReason> {
    match refusal {
        ServerRefusal::SessionLost => Some(RetryReason::SessionLost),
        ServerRefusal::Auth => Some(RetryReason::Auth),
        ServerRefusal::HeaderMismatch | ServerRefusal::UnsupportedVersion => Some(RetryReason::Protocol),
        ServerRefusal::Goaway => Some(RetryReason::Goaway),
        ServerRefusal::RateLimited => Some(RetryReason::RateLimited),
        ServerRefusal::RefusedStream => Some(RetryReason::RefusedStream),
        _ => None,
    }
}

/// How often a call ran again although it must not run twice. Only a refusal that `retry_on` names excuses that, each once.
fn excused(tries: &[(Try, u32, Option<ServerRefusal>)], retry_on: RetryOn) -> Option<u64> {
    let ran: Vec<_> = tries.iter().filter(|(_, runs, _)| *runs > 0).collect();
    let mut used = RetryOn::NOTHING;
    for (_, runs, refused) in &ran[..ran.len().saturating_sub(1)] {
        let reason = refused.and_then(permits)?;
        if *runs > 1 || !retry_on.contains(reason) || used.contains(reason) {
            return None;
        }
        used = used.with(reason);
    }
    ran.last().is_none_or(|(_, runs, _)| *runs == 1).then_some(ran.len().saturating_sub(1) as u64)
}

/// The laws about calls, once the world is over.
pub fn calls(calls: &[Call], truths: &Truths, retry_on: RetryOn, seen: &mut Seen) -> Result<(), String> {
    for (at, call) in calls.iter().enumerate() {
        let tries = || truths.range(Try { call: at, number: 0 }..=Try { call: at, number: u32::MAX });
        let runs: u32 = tries().map(|(_, truth)| truth.runs).sum();
        let told = call.outcome.ok_or_else(|| format!("call {at} has no outcome: {call:?}"))?;
        if runs > 1 && !call.may_run_twice(retry_on) {
            let tries: Vec<_> = tries().map(|(a_try, truth)| (*a_try, truth.runs, truth.refused)).collect();
            match excused(&tries, retry_on) {
                Some(again) => seen.ran_twice_by_refusal += again,
                None => {
                    return Err(format!(
                        "call {at} must not run twice and ran {runs} times: {tries:?} {call:?}"
                    ));
                }
            }
        }
        for (a_try, truth) in tries() {
            if matches!(truth.verdict, Some(Delivery::NotExecuted(_))) && truth.runs > 0 {
                return Err(format!("{a_try:?} was called not executed ({truth:?}), and ran: {call:?}"));
            }
        }
        let not_run = matches!(told.delivery, Delivery::NotExecuted(_));
        if not_run && runs > 0 {
            return Err(format!("call {at} was called not executed, and ran {runs} times: {call:?}"));
        }
        let refusals: Vec<_> = tries().filter_map(|(_, truth)| truth.refused).collect();
        if let Delivery::Refused(refusal) = told.delivery
            && !refusals.contains(&refusal)
        {
            return Err(format!(
                "call {at} was called refused ({refusal:?}), and the server said {refusals:?}"
            ));
        }
        if told.delivery == Delivery::Answered && runs == 0 {
            return Err(format!("call {at} was answered and never ran"));
        }
    }
    Ok(())
}

/// The laws about totals, once the world is over.
pub fn totals(policy: &Settings, seen: &Seen) -> Result<(), String> {
    let retry = policy.retry;
    let allowed = seen.calls * u64::from(retry.percent) / 100
        + millis(seen.elapsed) / 1000 * u64::from(retry.reserve_per_sec)
        + u64::from(retry.burst)
        + 1;
    if seen.retried_safe > allowed {
        return Err(format!("{} retries of {} allowed", seen.retried_safe, allowed));
    }
    // Tokens come from service to callers and from time up, and from nothing else.
    let earned = u64::from(policy.budget.tokens) * 1000
        + u64::from(policy.budget.useful_tokens) * 1000
        + millis(seen.up) * 1000 / millis(policy.budget.useful_uptime_per_token)
        + seen.answered_by_server * u64::from(policy.budget.millis_per_answer)
        + millis(seen.up) * 1000 / millis(policy.budget.uptime_per_token)
        + 1;
    if seen.charged > earned {
        return Err(format!("{} milli-tokens were charged and only {earned} earned", seen.charged));
    }
    Ok(())
}

/// A stale event may change nothing.
pub fn nothing_changed(
    before: &Machine<&'static str>,
    after: &Machine<&'static str>,
    from: Generation,
) -> Result<(), String> {
    if before == after {
        Ok(())
    } else {
        Err(format!(
            "a late event of generation {from} changed {:?} into {:?}",
            before.state(),
            after.state()
        ))
    }
}

pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap()
}
