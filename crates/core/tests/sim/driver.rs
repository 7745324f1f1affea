//! What the tender and the call path do, in one thread: shows vitals, runs effects, admits and settles calls.

use std::time::Duration;

use linetender_core::{
    Admission, Class, Conclusion, Declared, Delivery, Detail, Effect, Event, Evidence, Gate, Generation,
    Heard, Instant, Leaf, Leaves, LossReport, Machine, Next, Phase, Plan, Record, RecordStep, RetryReason,
    Rules, ServerState, Settle, State, Vitals,
};

use crate::call::{Outcome, Place};
use crate::laws;
use crate::server::Try;
use crate::world::{GiveUp, Happening, World};

type Line = Machine<&'static str>;

impl World {
    /// One input to the machine: vitals first, then the input, then whatever it wants done.
    pub fn drive(&mut self, input: impl FnOnce(&mut Line, Instant)) -> Result<(), String> {
        let (generation, vitals) = (self.ledger.generation, self.vitals());
        self.checked(|machine, now| {
            let _ = machine.handle_vitals(now, generation, vitals);
        })?;
        self.checked(input)?;
        self.pump()?;
        self.reconsider()
    }

    fn vitals(&self) -> Vitals {
        let in_flight =
            self.calls.iter().filter(|call| call.place == Place::In(self.ledger.generation)).count();
        let owed = self.ledger.give_ups.iter().any(|it| it.cancelled && it.at > self.ledger.heard_at);
        Vitals {
            in_flight: u32::try_from(in_flight).unwrap(),
            owed: owed && !self.http,
            abandoned_at: self.abandoned_at(),
            exchanges: self.http,
            works: false,
            answered: self.ledger.answered,
            heard_at: self.ledger.heard_at,
        }
    }

    /// The whole history is looked through: the first that counts, since anything was heard.
    fn abandoned_at(&self) -> Option<Instant> {
        let counts = |it: &&GiveUp| !it.behind && it.at > self.ledger.heard_at;
        self.ledger.give_ups.iter().find(counts).map(|it| it.at)
    }

    /// A server that says nothing, to probes neither, after its oldest call was given up, is replaced in time if a call waits for it.
    pub fn no_hang_outlives_its_bound(&self) -> Result<(), String> {
        let Some(at) = self.abandoned_at().filter(|_| self.vitals().in_flight > 0) else { return Ok(()) };
        let (probes, keepalive) = (Duration::from_secs(10), self.policy.probe.keepalive);
        // After sleep a line looks by itself within a keepalive interval; and probes may have been under way.
        let until = (at + self.policy.call.abandoned_after).max(self.slept_at + keepalive) + probes + probes;
        if matches!(self.machine.state(), State::Up(_) | State::Suspect(_)) && until < self.now {
            return Err(format!("abandoned at {at:?}, and still there at {:?}", self.now));
        }
        Ok(())
    }

    /// Hands an input over and checks what an end cost.
    fn checked(&mut self, input: impl FnOnce(&mut Line, Instant)) -> Result<(), String> {
        let end_of = |machine: &Line| match machine.state() {
            State::Ending(ending) => Some(ending.cause().leaves()),
            _ => None,
        };
        // What it earned up to now is paid out first, so that only the charge is seen.
        let mut vitals = self.vitals();
        if matches!(self.machine.state(), State::Draining { .. }) {
            vitals.in_flight = vitals.in_flight.max(1);
        }
        self.machine.handle_vitals(self.now, self.ledger.generation, vitals);
        let (was, suspect) = (end_of(&self.machine), self.machine.state().name() == "suspect");
        let (tokens, useful) = (self.machine.budget().millis(), self.machine.budget().useful_millis());
        input(&mut self.machine, self.now);
        let (left, useful_left) = (self.machine.budget().millis(), self.machine.budget().useful_millis());
        if !suspect && self.machine.state().name() == "suspect" {
            self.seen.suspected += 1;
        }
        match end_of(&self.machine) {
            Some(leaves) if was != Some(leaves) => {
                // Once the end has begun, nothing is answered that counts.
                let answered = if was.is_none() { self.ledger.answered } else { self.ledger.answered_at_end };
                let (few, _) = laws::bucket(&self.policy, answered);
                if (few && left != tokens) || (!few && useful_left != useful) {
                    return Err(format!("{answered} answers, and the wrong bucket paid"));
                }
                let (tokens, left) = if few { (useful, useful_left) } else { (tokens, left) };
                self.seen.useful_ends += u64::from(few && left < tokens);
                self.check_charge(was.is_none(), leaves, tokens, left)
            }
            _ if left > tokens || useful_left > useful => Err("milli-tokens came from nowhere".into()),
            _ => Ok(()),
        }
    }

    /// An end began, or turned out to have another reason too.
    fn check_charge(&mut self, begins: bool, leaves: Leaves, tokens: u32, left: u32) -> Result<(), String> {
        if begins {
            self.ledger.answered_at_end = self.ledger.answered;
            let served = self.ledger.answered > 0;
            let up = self.ledger.up_at;
            let proven = up.is_some_and(|at| self.ledger.heard_at.since(at) >= self.policy.probe.keepalive);
            if served || proven {
                self.era_probed = false;
            }
            self.paid = 0;
            self.seen.up += up.map_or(Duration::ZERO, |at| self.now.since(at));
            self.no_killing_while_busy(leaves)?;
            let concluded = self.machine.state().cause().map(|cause| &cause.headline().detail);
            let abandoned = matches!(concluded, Some(Detail::Concluded(Conclusion::Abandoned)));
            self.seen.abandoned += u64::from(abandoned);
        }
        let answered = self.ledger.answered_at_end;
        let closing = leaves.has(Leaf::Planned(Plan::Close));
        let cost = if closing {
            0
        } else {
            laws::charge(&self.policy, leaves, answered, self.era_probed, tokens + self.paid) - self.paid
        };
        if tokens - left.min(tokens) != cost {
            return Err(format!(
                "{leaves:?} (answered: {answered}) cost {tokens} - {left} instead of {cost}"
            ));
        }
        let era = leaves.has(Leaf::Failed(Class::EraProbe));
        self.free_end = cost + self.paid == 0 && (!era || self.era_probed);
        self.era_probed |= era;
        self.paid += cost;
        self.seen.charged += u64::from(cost);
        match (leaves.planned(), leaves.iter().any(Leaf::planned)) {
            (true, _) => self.seen.planned_ends += 1,
            (false, true) => self.seen.mixed_ends += 1,
            (false, false) => self.seen.unplanned_ends += 1,
        }
        Ok(())
    }

    /// A server that works on something is not killed for not answering a probe.
    fn no_killing_while_busy(&self, leaves: Leaves) -> Result<(), String> {
        let silent = leaves.has(Leaf::Failed(Class::Silent));
        let vitals = self.vitals();
        let long = self.now.since(self.ledger.heard_at) >= self.policy.call.hang_after;
        let bound = if self.http { Duration::ZERO } else { self.policy.call.abandoned_after };
        let abandoned = vitals.abandoned_at.is_some_and(|at| at + bound <= self.now);
        if silent && vitals.busy() && !long && !abandoned {
            return Err(format!("killed for silence while busy: {vitals:?}"));
        }
        Ok(())
    }

    fn pump(&mut self) -> Result<(), String> {
        while let Some(effect) = self.machine.poll_effect() {
            if self.trace {
                println!("{:>16} {effect:?}", "");
            }
            self.walk.done(effect).map_err(|misstep| format!("{misstep:?}"))?;
            self.run(effect)?;
        }
        Ok(())
    }

    fn run(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Notice(gate) => self.notice(gate),
            Effect::Dial { generation } => {
                let alive = self.servers.values().any(|server| server.read || server.alive);
                if alive {
                    return Err(format!("generation {generation} was dialled before the old tree was gone"));
                }
                if self.out_of_service {
                    return Err(format!("generation {generation} was dialled while parked by an operator"));
                }
                let last = self.dialled_at.replace(self.now);
                if let Some(last) = last
                    && self.free_end
                    && self.now.since(last) < self.policy.dial.gap
                {
                    return Err(format!("two free dials within {:?}", self.now.since(last)));
                }
                self.born(generation);
            }
            Effect::Probe { generation } => self.probe(generation),
            Effect::Seal { .. } => {
                self.ledger.sealed = true;
                self.ledger.sealed_at = Some(self.now);
            }
            Effect::Drain { generation } => self.drain(generation),
            Effect::Settle { settle, .. } => return self.settle(settle),
            Effect::Kill { generation } | Effect::LetGo { generation } => {
                self.ledger.fell = true;
                let stuck = self.rng.percent(2);
                let takes = if stuck { Duration::from_secs(12) } else { self.rng.millis(0, 60) };
                self.seen.stuck += u64::from(stuck);
                self.put(takes, Happening::Felled(generation));
            }
            Effect::Close { generation } => {
                self.ledger.fell = true;
                let longest = if self.rng.percent(30) { 20 } else { 4000 };
                let takes = self.rng.millis(0, longest);
                self.put(takes, Happening::Felled(generation));
            }
            Effect::Forget { generation } => {
                if self.calls.iter().any(|call| call.place == Place::In(generation)) {
                    return Err(format!("generation {generation} was forgotten with calls in its ledger"));
                }
                self.haunt(generation);
            }
        }
        Ok(())
    }

    /// Late events of a dead generation, some time after.
    fn haunt(&mut self, generation: Generation) {
        let late = [
            Event::Lost(linetender_core::Cause::failed(linetender_core::Class::Exit, "late")),
            Event::Dialled,
            Event::ProbeFailed,
            Event::ProbeUnsent,
            Event::ProbeAnswered,
            Event::Trouble,
            Event::Gone(Some("late")),
        ];
        for event in late {
            if self.rng.percent(20) {
                let later = self.rng.millis(1, 20_000);
                self.put(later, Happening::Tell(generation, event));
            }
        }
    }

    fn notice(&mut self, gate: Gate) {
        self.gate = gate;
        match self.machine.state() {
            State::Parked { .. } => self.seen.parked += 1,
            State::OutOfService { .. } => self.seen.out_of_service += 1,
            State::NeedsAuth { .. } => self.seen.needs_auth += 1,
            _ => {}
        }
    }

    fn probe(&mut self, generation: Generation) {
        let server = &self.servers[&generation];
        let later = self.rng.millis(1, 20);
        let busy = self.single_threaded && self.vitals().busy();
        if server.alive && !server.hung && !busy {
            self.put(later, Happening::Tell(generation, Event::ProbeAnswered));
        } else if !server.alive {
            self.put(later, Happening::Tell(generation, Event::ProbeFailed));
        }
    }

    fn drain(&mut self, generation: Generation) {
        while let Some(a_try) =
            self.servers.get_mut(&generation).and_then(|server| server.answers.pop_front())
        {
            let before = self.seen.answered;
            self.answer(a_try);
            self.seen.answers_won_by_drain += self.seen.answered - before;
        }
        // A driver may be slow, or its drain hang: the end must not wait for it for ever.
        if self.rng.percent(95) {
            let later = self.rng.millis(0, 5);
            self.put(later, Happening::Tell(generation, Event::Drained));
        }
    }

    pub fn tell(&mut self, generation: Generation, event: Event<&'static str>) -> Result<(), String> {
        if generation != self.machine.generation() {
            self.seen.stale_events += 1;
            self.drive(|_, _| ())?;
            let before = self.machine.clone();
            let heard = self.machine.handle_event(self.now, generation, event);
            if heard != Heard::Stale {
                return Err(format!("a late event of generation {generation} was {heard:?}"));
            }
            return laws::nothing_changed(&before, &self.machine, generation);
        }
        match event {
            Event::Dialled | Event::FirstByte | Event::ProbeAnswered => self.ledger.heard_at = self.now,
            _ => {}
        }
        let dialled = event == Event::Dialled && matches!(self.machine.state(), State::Dialing(_));
        if dialled {
            self.ledger.up_at = Some(self.now);
        }
        let reasons = match &event {
            Event::Lost(cause) if !self.ledger.fell => Some(cause.leaves()),
            _ => None,
        };
        self.drive(|machine, now| {
            let _ = machine.handle_event(now, generation, event);
        })?;
        self.keeps_reasons(reasons)?;
        if dialled { self.ask_new_generation() } else { Ok(()) }
    }

    /// What the server died of before it was told to is a reason for its end, whatever else was.
    fn keeps_reasons(&self, reasons: Option<Leaves>) -> Result<(), String> {
        let kept = self.machine.state().cause().map(linetender_core::Cause::leaves);
        match (reasons, kept) {
            (Some(reasons), Some(kept)) if !reasons.planned() && kept.planned() => {
                Err(format!("died of {reasons:?}, which was taken for {kept:?}"))
            }
            _ => Ok(()),
        }
    }

    // The call path.

    pub fn admit(&mut self, call: usize) -> Result<(), String> {
        if self.calls[call].outcome.is_some() {
            return Ok(());
        }
        if self.calls[call].tries == 0 {
            self.seen.calls += 1;
        }
        match self.gate.admit(self.now) {
            Admission::Knock => self.knock(call),
            admission => self.admitted(call, admission),
        }
    }

    fn knock(&mut self, call: usize) -> Result<(), String> {
        let mut told = None;
        let parked = matches!(self.machine.state(), State::Parked { .. });
        // It stands before the gate while the tender thinks: news may come before the answer.
        self.calls[call].place = Place::Away;
        let (generation, vitals) = (self.ledger.generation, self.vitals());
        self.checked(|machine, now| {
            let _ = machine.handle_vitals(now, generation, vitals);
        })?;
        self.checked(|machine, now| told = Some(machine.handle_knock(now)))?;
        self.pump()?;
        let told = told.unwrap();
        self.seen.woken_by_use += u64::from(parked && matches!(told, Admission::Hold(_)));
        self.admitted(call, told)?;
        self.reconsider()
    }

    fn admitted(&mut self, call: usize, admission: Admission) -> Result<(), String> {
        match admission {
            Admission::Go { generation } => self.register(call, generation),
            Admission::Hold(held) => {
                if self.calls[call].place != Place::AtGate(held) {
                    self.calls[call].place = Place::AtGate(held);
                    self.put(held.until.since(self.now), Happening::HoldEnds(call));
                }
                Ok(())
            }
            Admission::Knock => Err("knocked twice".into()),
            Admission::Refuse { .. } => self.withdraw(call, RecordStep::Expire),
        }
    }

    fn register(&mut self, call: usize, generation: Generation) -> Result<(), String> {
        if generation != self.ledger.generation || self.ledger.sealed {
            return Err(format!("the gate sent call {call} into generation {generation}, which is sealed"));
        }
        self.calls[call].place = Place::In(generation);
        self.calls[call].tries += 1;
        self.ledger.queued.push_back(call);
        self.ledger.registered.push(Try { call, number: self.calls[call].tries });
        self.put(Duration::from_micros(100), Happening::Write(generation));
        Ok(())
    }

    /// The gate may have changed: those who wait before it look again.
    fn reconsider(&mut self) -> Result<(), String> {
        for call in 0..self.calls.len() {
            let Place::AtGate(held) = self.calls[call].place else { continue };
            match self.gate.recheck(held) {
                Admission::Knock => self.knock(call)?,
                admission => self.admitted(call, admission)?,
            }
        }
        Ok(())
    }

    pub fn step(&mut self, call: usize, step: RecordStep) -> Result<(), String> {
        match self.calls[call].record.step(step) {
            Ok(record) => {
                self.calls[call].record = record;
                Ok(())
            }
            Err(_) => Err(format!("{step:?} came too late for {:?}", self.calls[call])),
        }
    }

    /// The deadline or the caller ends a call that may be anywhere.
    pub fn withdraw(&mut self, call: usize, step: RecordStep) -> Result<(), String> {
        if self.calls[call].outcome.is_some() {
            return Ok(());
        }
        let before = self.calls[call].record;
        let registered = matches!(self.calls[call].place, Place::In(_));
        if let Place::Asking { .. } = self.calls[call].place {
            // It has its verdict already; only the permission to try again did not come.
            return self.finish(call, before.verdict().unwrap());
        }
        self.step(call, step)?;
        self.seen.withdrawn_while_writing += u64::from(matches!(before.phase(), Phase::Writing(_)));
        if registered {
            self.judge(call);
            if before.phase() != Phase::Queued {
                self.give_up(call, step == RecordStep::Cancel);
            }
        }
        let verdict = self.calls[call].record.verdict().unwrap();
        self.finish(call, verdict)?;
        if registered && step == RecordStep::Expire {
            let generation = self.ledger.generation;
            self.drive(|machine, now| {
                let _ = machine.handle_event(now, generation, Event::Overdue);
            })?;
        }
        Ok(())
    }

    fn give_up(&mut self, call: usize, cancelled: bool) {
        let (generation, number) = (self.ledger.generation, self.calls[call].tries);
        let waited_for = |it: &Try| {
            let other = &self.calls[it.call];
            it.call != call && other.place == Place::In(generation) && other.tries == it.number
        };
        let older = self.ledger.registered.iter().take_while(|it| **it != Try { call, number });
        let behind = older.into_iter().any(waited_for);
        self.ledger.give_ups.push(GiveUp { at: self.now, cancelled, behind });
        self.seen.given_up_behind += u64::from(behind);
    }

    /// Writes down the verdict on a try.
    fn judge(&mut self, call: usize) {
        let (number, verdict) = (self.calls[call].tries, self.calls[call].record.delivery());
        self.truths.entry(Try { call, number }).or_default().verdict = verdict;
    }

    pub fn answer(&mut self, a_try: Try) {
        self.ledger.heard_at = self.now;
        let call = &self.calls[a_try.call];
        let ours = call.place == Place::In(self.ledger.generation) && call.tries == a_try.number;
        if ours && self.step(a_try.call, RecordStep::Answer).is_ok() {
            self.ledger.answered += 1;
            self.seen.answered_by_server += 1;
            self.judge(a_try.call);
            let _ = self.finish(a_try.call, Delivery::Answered);
        }
    }

    fn finish(&mut self, call: usize, delivery: Delivery) -> Result<(), String> {
        if self.now > self.calls[call].deadline {
            return Err(format!("call {call} had to wait beyond its deadline"));
        }
        if self.calls[call].outcome.is_some() {
            return Err(format!("call {call} got a second outcome"));
        }
        match delivery {
            Delivery::Answered => self.seen.answered += 1,
            Delivery::Unknown(_) => self.seen.unknown += 1,
            Delivery::Refused(_) => self.seen.refused += 1,
            Delivery::NotExecuted(_) => self.seen.not_executed += 1,
        }
        self.seen.turned_away += u64::from(self.calls[call].tries == 0);
        self.calls[call].place = Place::Done;
        self.calls[call].outcome = Some(Outcome { delivery });
        Ok(())
    }

    fn settle(&mut self, settle: Settle) -> Result<(), String> {
        let generation = self.ledger.generation;
        let server = &self.servers[&generation];
        let residue = LossReport::Consumed { bytes: server.consumed };
        let late = self.ledger.sealed_at.is_some_and(|at| self.now.since(at) > self.policy.close.settle);
        if late {
            return Err("calls had to wait for their verdict".into());
        }
        if settle == Settle::Residue && server.read {
            return Err("settled by residue with a reader left".into());
        }
        for call in 0..self.calls.len() {
            if self.calls[call].place != Place::In(generation) {
                continue;
            }
            let queued = self.calls[call].record.phase() == Phase::Queued;
            let report = match settle {
                Settle::Certain if queued => LossReport::Nothing,
                Settle::Certain => continue,
                Settle::Residue if !self.http => residue,
                // Its own exchange breaks at this very moment.
                Settle::Residue | Settle::Unknown | Settle::Own => LossReport::Nothing,
            };
            self.lose(call, report, true)?;
        }
        Ok(())
    }

    /// An exchange of its own broke; the generation lives on.
    pub fn exchange_lost(&mut self, call: usize, report: LossReport, trouble: bool) -> Result<(), String> {
        self.lose(call, report, false)?;
        let generation = self.ledger.generation;
        if trouble {
            self.put(Duration::ZERO, Happening::Tell(generation, Event::Trouble));
        }
        Ok(())
    }

    fn lose(&mut self, call: usize, report: LossReport, crosses: bool) -> Result<(), String> {
        self.step(call, RecordStep::Lose(report))?;
        self.judge(call);
        let record = self.calls[call].record;
        if record.delivery() == Some(Delivery::NotExecuted(Evidence::Residue)) {
            self.seen.evidence_by_residue += 1;
        }
        let declared = if crosses { Declared::NotYet } else { self.declared() };
        self.decide(call, record, crosses, declared)
    }

    fn declared(&self) -> Declared {
        match self.servers.get(&self.ledger.generation) {
            Some(server) if server.declares_safe => Declared::Safe,
            _ => Declared::Unsafe,
        }
    }

    fn decide(
        &mut self,
        call: usize,
        record: Record,
        crosses: bool,
        declared: Declared,
    ) -> Result<(), String> {
        let is_bound = crosses && self.policy.state == ServerState::Process;
        let rules = Rules::new(&self.policy, is_bound, declared);
        let (calls, now, policy) = (self.seen.calls, self.now, self.policy.retry);
        let next = record.next(rules, || self.retry.withdraw(policy, calls, now));
        self.seen.kept_in_context += u64::from(is_bound);
        if is_bound && !matches!(next, Some(Next::Settle(_))) {
            return Err(format!("call {call} left its context"));
        }
        match next {
            None => Err(format!("call {call} has no verdict")),
            Some(Next::Settle(verdict)) => self.finish(call, verdict),
            Some(Next::AskNewGeneration) => {
                self.seen.asked_new_generation += 1;
                let until = self.now + self.policy.call.wait_for_line;
                self.calls[call].place = Place::Asking { until };
                self.put(until.since(self.now), Happening::HoldEnds(call));
                Ok(())
            }
            Some(Next::Bind(record)) => {
                self.send_again(call, record, Duration::ZERO);
                Ok(())
            }
            Some(Next::Again { record, reason, after, pause }) => {
                match reason {
                    RetryReason::NotExecuted => self.seen.sent_again_unexecuted += 1,
                    RetryReason::Reads | RetryReason::List | RetryReason::SafeTool => {
                        self.seen.retried_safe += 1;
                    }
                    RetryReason::DeclaredSafe => {
                        self.seen.retried_safe += 1;
                        self.calls[call].declared_safe |= declared == Declared::Safe;
                    }
                    _ => self.seen.sent_again_refused += 1,
                }
                let repair = if after.is_some() { self.rng.millis(1, 200) } else { pause };
                self.send_again(call, record, repair);
                Ok(())
            }
        }
    }

    fn send_again(&mut self, call: usize, record: Record, after: Duration) {
        self.calls[call].record = record;
        self.calls[call].place = Place::Away;
        self.put(after, Happening::Arrive(call));
    }

    /// A generation is up and its list is read: calls of unknown outcome on trusted tools learn their fate.
    fn ask_new_generation(&mut self) -> Result<(), String> {
        for call in 0..self.calls.len() {
            if matches!(self.calls[call].place, Place::Asking { .. }) {
                let record = self.calls[call].record;
                self.decide(call, record, true, self.declared())?;
            }
        }
        Ok(())
    }
}
