//! What the tender and the call path do, in one thread: shows vitals, runs effects, admits and settles calls.

use linetender_core::{
    Admission, Declared, Delivery, Effect, Event, Evidence, Gate, Generation, Heard, Instant, Machine, Next,
    Phase, Record, RecordStep, Refusal, Rules, ServerState, Settle, Span, State, Vitals, Wake,
};

use crate::call::{Outcome, Place};
use crate::laws;
use crate::server::Try;
use crate::world::{Happening, World};

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
        Vitals {
            in_flight: u32::try_from(in_flight).unwrap(),
            answered: self.ledger.answered,
            heard_at: self.ledger.heard_at,
        }
    }

    /// Hands an input over and checks what an end cost.
    fn checked(&mut self, input: impl FnOnce(&mut Line, Instant)) -> Result<(), String> {
        let ending = |machine: &Line| matches!(machine.state(), State::Ending(_));
        let (was_ending, suspect) = (ending(&self.machine), self.machine.state().name() == "suspect");
        // What it earned up to now is paid out first, so that only the charge is seen.
        let mut vitals = self.vitals();
        if matches!(self.machine.state(), State::Draining { .. }) {
            vitals.in_flight = vitals.in_flight.max(1);
        }
        self.machine.handle_vitals(self.now, self.ledger.generation, vitals);
        let tokens = self.machine.budget().millis();
        input(&mut self.machine, self.now);
        let left = self.machine.budget().millis();
        if !suspect && self.machine.state().name() == "suspect" {
            self.seen.suspected += 1;
        }
        if !was_ending && let State::Ending(end) = self.machine.state() {
            let leaves = end.cause().leaves();
            let closing = leaves.has(linetender_core::Leaf::Planned(linetender_core::Plan::Close));
            let served = self.ledger.answered > 0;
            let up = self.ledger.up_at.map(|at| self.now.since(at));
            if served || up.is_some_and(|up| up >= self.policy.probe.keepalive) {
                self.era_probed = false;
            }
            let cost = laws::charge(&self.policy, leaves, served, self.era_probed, tokens);
            self.era_probed |= leaves.has(linetender_core::Leaf::Failed(linetender_core::Class::EraProbe));
            if !closing && tokens - left.min(tokens) != cost {
                return Err(format!(
                    "{leaves:?} (served: {served}) cost {tokens} - {left} instead of {cost}"
                ));
            }
            self.seen.charged += u64::from(cost);
            self.seen.up = self.seen.up + up.unwrap_or(Span::ZERO);
            match (leaves.planned(), leaves.iter().any(linetender_core::Leaf::planned)) {
                (true, _) => self.seen.planned_ends += 1,
                (false, true) => self.seen.mixed_ends += 1,
                (false, false) => self.seen.unplanned_ends += 1,
            }
        } else if left > tokens {
            return Err(format!("{} milli-tokens came from nowhere", left - tokens));
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
                self.born(generation);
            }
            Effect::Probe { generation } => self.probe(generation),
            Effect::Seal { .. } => self.ledger.sealed = true,
            Effect::Drain { generation } => self.drain(generation),
            Effect::Settle { settle, .. } => return self.settle(settle),
            Effect::Kill { generation } => {
                let stuck = self.rng.percent(2);
                let takes = if stuck { Span::from_secs(12) } else { self.rng.millis(0, 60) };
                self.seen.stuck += u64::from(stuck);
                self.put(takes, Happening::Felled(generation));
            }
            Effect::Close { generation } => {
                let takes = self.rng.millis(0, 4000);
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
            State::NeedsAuth { .. } => self.seen.needs_auth += 1,
            _ => {}
        }
    }

    fn probe(&mut self, generation: Generation) {
        let server = &self.servers[&generation];
        let later = self.rng.millis(1, 20);
        if server.alive && !server.hung {
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
        self.drive(|machine, now| {
            let _ = machine.handle_event(now, generation, event);
        })?;
        if dialled { self.ask_new_generation() } else { Ok(()) }
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
            admission => self.admitted(call, admission, false),
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
        let woke = parked && matches!(told, Admission::Hold { .. });
        self.seen.woken_by_use += u64::from(woke);
        self.admitted(call, told, woke)?;
        self.reconsider()
    }

    fn admitted(&mut self, call: usize, admission: Admission, woke: bool) -> Result<(), String> {
        match admission {
            Admission::Go { generation } => self.register(call, generation),
            Admission::Hold { until } => {
                self.calls[call].place = Place::AtGate { until, woke };
                self.put(until.since(self.now), Happening::HoldEnds(call));
                Ok(())
            }
            Admission::Knock => Err("knocked twice".into()),
            Admission::Refuse { why, .. } => {
                self.seen.state_lost += u64::from(why == Refusal::StateLost);
                self.withdraw(call, RecordStep::Expire)
            }
        }
    }

    fn register(&mut self, call: usize, generation: Generation) -> Result<(), String> {
        if generation != self.ledger.generation || self.ledger.sealed {
            return Err(format!("the gate sent call {call} into generation {generation}, which is sealed"));
        }
        self.calls[call].place = Place::In(generation);
        self.calls[call].tries += 1;
        self.ledger.queued.push_back(call);
        self.put(Span::from_nanos(100_000), Happening::Write(generation));
        Ok(())
    }

    /// The gate may have changed: those who wait before it look again.
    fn reconsider(&mut self) -> Result<(), String> {
        for call in 0..self.calls.len() {
            let Place::AtGate { woke, .. } = self.calls[call].place else { continue };
            match self.gate {
                Gate::Go { generation } => self.register(call, generation)?,
                Gate::Hold { .. } => {}
                Gate::Knock => self.knock(call)?,
                Gate::Refuse { wake: Wake::Underway, .. } if woke => {}
                Gate::Refuse { .. } => self.withdraw(call, RecordStep::Expire)?,
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
            Delivery::NotExecuted(_) => self.seen.not_executed += 1,
        }
        self.seen.refused += u64::from(self.calls[call].tries == 0);
        self.calls[call].place = Place::Done;
        self.calls[call].outcome = Some(Outcome { delivery });
        Ok(())
    }

    fn settle(&mut self, settle: Settle) -> Result<(), String> {
        let generation = self.ledger.generation;
        let server = &self.servers[&generation];
        let residue = Evidence::Consumed { bytes: server.consumed };
        if settle == Settle::Residue && server.read {
            return Err("settled by residue with a reader left".into());
        }
        for call in 0..self.calls.len() {
            if self.calls[call].place != Place::In(generation) {
                continue;
            }
            let queued = self.calls[call].record.phase() == Phase::Queued;
            let evidence = match settle {
                Settle::Certain if queued => Evidence::Nothing,
                Settle::Certain => continue,
                Settle::Residue if !self.http => residue,
                Settle::Residue | Settle::Unknown => Evidence::Nothing,
            };
            self.lose(call, evidence, true)?;
        }
        Ok(())
    }

    /// An exchange of its own broke; the generation lives on.
    pub fn exchange_lost(&mut self, call: usize, evidence: Evidence, trouble: bool) -> Result<(), String> {
        self.lose(call, evidence, false)?;
        let generation = self.ledger.generation;
        if trouble {
            self.put(Span::ZERO, Happening::Tell(generation, Event::Trouble));
        }
        Ok(())
    }

    fn lose(&mut self, call: usize, evidence: Evidence, crosses: bool) -> Result<(), String> {
        self.step(call, RecordStep::Lose(evidence))?;
        self.judge(call);
        let record = self.calls[call].record;
        if record.delivery() == Some(Delivery::NotExecuted(linetender_core::Proof::Residue)) {
            self.seen.proofs_by_residue += 1;
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
        let rules = Rules::new(&self.policy, crosses, declared);
        let (calls, now, policy) = (self.seen.calls, self.now, self.policy.retry);
        let unknown = matches!(record.delivery(), Some(Delivery::Unknown(_)));
        let next = record.next(rules, || self.retry.withdraw(policy, calls, now));
        if crosses && self.policy.state == ServerState::Process && !matches!(next, Some(Next::Settle(_))) {
            return Err(format!("call {call} crossed a generation of a stateful server"));
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
                self.send_again(call, record, Span::ZERO);
                Ok(())
            }
            Some(Next::Again { record, after }) => {
                if unknown {
                    self.seen.retried_unknown += 1;
                    self.calls[call].declared_safe |= declared == Declared::Safe;
                } else {
                    self.seen.sent_again_by_proof += 1;
                }
                let repair = if after.is_some() { self.rng.millis(1, 200) } else { Span::ZERO };
                self.send_again(call, record, repair);
                Ok(())
            }
        }
    }

    fn send_again(&mut self, call: usize, record: Record, after: Span) {
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
