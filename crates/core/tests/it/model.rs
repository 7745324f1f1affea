//! The machine against a naive reference: the whole history is kept, and everything is worked out from it anew.
//!
//! The driver is quick here (an end is over at once, probes are answered, waits are waited out), so the reference
//! needs no timers: it knows what a line is, what an end costs, and where it leads.

use linetender_core::{Cause, Class, Command, Event, Generation, Heard, Leaf, Plan};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::kit::{Line, millis};

/// What happened, as far as it matters.
#[derive(Clone, Debug)]
enum Fact {
    Up,
    /// Up for so many times sixty milliseconds, each worth a milli-token.
    Lived(u32),
    Answered(u32),
    Ended(Vec<Leaf>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Idle,
    Dialing,
    Up,
    Draining,
    Parked,
    OutOfService,
    NeedsAuth,
    Closed,
}

#[derive(Clone, Debug)]
enum Transition {
    Open,
    /// Somebody says so.
    Redial,
    /// A redial by somebody who saw the newest generation, or one this much older.
    RedialIf(u64),
    Recycle,
    IdleStop,
    Credentials,
    Park,
    Wake,
    Close,
    Dialled(u64),
    Lost(u64, Vec<Leaf>),
    Answer(u32),
    InFlight(u32),
    Live(u32),
    WaitForProbe,
}

#[derive(Clone, Debug)]
struct Reference {
    history: Vec<Fact>,
    phase: Phase,
    generation: u64,
    in_flight: u32,
    /// Why it drains.
    plans: Vec<Plan>,
}

impl Reference {
    fn lives(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Draining)
    }

    /// What the present generation has done since it was dialled.
    fn life(&self) -> (u32, u32) {
        let since =
            self.history.iter().rposition(|fact| matches!(fact, Fact::Up | Fact::Ended(_))).unwrap_or(0);
        let mut done = (0, 0);
        for fact in &self.history[since..] {
            match fact {
                Fact::Lived(ticks) => done.0 += ticks,
                Fact::Answered(calls) => done.1 += calls,
                Fact::Up | Fact::Ended(_) => {}
            }
        }
        done
    }

    /// The tokens, from the beginning of time, and those for the ends of useful generations. Says also whether the last
    /// end found one when it needed one.
    fn tokens(&self) -> (u32, u32, bool) {
        let (mut tokens, mut useful, mut paid, mut era_probed) = (5000_u32, 30_000_u32, true, false);
        let (mut ticks, mut answers, mut unpaid) = (0, 0, 0);
        for fact in &self.history {
            match fact {
                Fact::Up => (ticks, answers, unpaid) = (0, 0, 0),
                Fact::Lived(more) => {
                    ticks += more;
                    unpaid += more;
                }
                Fact::Answered(more) => {
                    answers += more;
                    tokens = 5000.min(tokens + 100 * more);
                }
                Fact::Ended(leaves) => {
                    // Proven: it answered a caller, or lived as long as a keepalive interval (500 ticks).
                    if answers > 0 || ticks >= 500 {
                        era_probed = false;
                    }
                    let mut costs = false;
                    for leaf in leaves {
                        costs |= match leaf {
                            Leaf::Planned(_) => false,
                            Leaf::Failed(Class::Auth | Class::Config | Class::Local) => false,
                            Leaf::Failed(Class::SessionLost) => answers == 0,
                            Leaf::Failed(Class::EraProbe) => era_probed,
                            Leaf::Failed(_) => true,
                        };
                    }
                    era_probed |= leaves.contains(&Leaf::Failed(Class::EraProbe));
                    let bucket = if (3..10).contains(&answers) { &mut useful } else { &mut tokens };
                    paid = !costs || *bucket >= 1000;
                    if costs && paid {
                        *bucket -= 1000;
                    }
                    (ticks, answers, unpaid) = (0, 0, 0);
                }
            }
            // Time up earns from the first answer on, and then all of it.
            if answers > 0 {
                tokens = 5000.min(tokens + unpaid);
                useful = 30_000.min(useful + 3 * unpaid);
                unpaid = 0;
            }
        }
        (tokens, useful, paid)
    }

    fn end(&mut self, leaves: &[Leaf]) {
        self.in_flight = 0;
        self.history.push(Fact::Ended(leaves.to_vec()));
        let failures: Vec<_> = leaves.iter().filter(|leaf| !leaf.planned()).collect();
        let planned = |plan| leaves.contains(&Leaf::Planned(plan));
        let (_, _, paid) = self.tokens();
        self.phase = if planned(Plan::Close) {
            Phase::Closed
        } else if planned(Plan::Park) && !planned(Plan::Redial) {
            Phase::OutOfService
        } else if leaves.contains(&Leaf::Failed(Class::Auth)) {
            Phase::NeedsAuth
        } else if !failures.is_empty() && failures.iter().all(|leaf| **leaf == Leaf::Failed(Class::Config))
            || !paid
        {
            Phase::Parked
        } else if failures.is_empty() && planned(Plan::IdleStop) && !planned(Plan::Redial) {
            Phase::Idle
        } else {
            self.generation += 1;
            Phase::Dialing
        };
    }

    fn end_by(&mut self, plan: Plan) {
        self.plans.push(plan);
        self.end_of_drain(Vec::new());
    }

    fn end_of_drain(&mut self, mut leaves: Vec<Leaf>) {
        leaves.extend(self.plans.drain(..).map(Leaf::Planned));
        self.end(&leaves);
    }

    fn planned(&mut self, plan: Plan) {
        match (self.phase, plan) {
            (Phase::Up | Phase::Draining, Plan::Redial | Plan::Close) => self.end_by(plan),
            // The last word of an operator takes the place of what was planned before.
            (Phase::Draining, Plan::Park) => self.plans = vec![plan],
            (Phase::Draining, Plan::Recycle | Plan::IdleStop) if self.parks() => {}
            (Phase::Up, _) if self.in_flight == 0 => self.end_by(plan),
            (Phase::Up, _) => {
                self.phase = Phase::Draining;
                self.plans.push(plan);
            }
            (Phase::Draining, _) => self.plans.push(plan),
            (Phase::Dialing, Plan::Close | Plan::Park) => self.end_by(plan),
            (Phase::Idle | Phase::Parked | Phase::OutOfService | Phase::NeedsAuth, Plan::Close) => {
                self.phase = Phase::Closed;
            }
            (Phase::Idle | Phase::Parked | Phase::OutOfService | Phase::NeedsAuth, Plan::Redial) => {
                self.dial();
            }
            (Phase::Idle | Phase::Parked | Phase::NeedsAuth, Plan::Park) => self.phase = Phase::OutOfService,
            _ => {}
        }
    }

    /// Whether it is to stay down when it has drained, by an operator's word.
    fn parks(&self) -> bool {
        self.plans.contains(&Plan::Park) && !self.plans.contains(&Plan::Redial)
    }

    fn dial(&mut self) {
        self.generation += 1;
        self.phase = Phase::Dialing;
    }
}

fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
    let class = proptest::sample::select(Class::ALL.to_vec()).prop_map(Leaf::Failed);
    let plan = Just(Leaf::Planned(Plan::Recycle));
    proptest::collection::vec(prop_oneof![5 => class, 1 => plan], 1..3)
}

impl ReferenceStateMachine for Reference {
    type State = Self;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Self> {
        let start =
            Self { history: Vec::new(), phase: Phase::Idle, generation: 0, in_flight: 0, plans: Vec::new() };
        Just(start).boxed()
    }

    fn transitions(_state: &Self) -> BoxedStrategy<Transition> {
        let older = || prop_oneof![4 => Just(0_u64), 1 => 1..3_u64];
        prop_oneof![
            2 => Just(Transition::Open),
            1 => Just(Transition::Redial),
            2 => older().prop_map(Transition::RedialIf),
            2 => Just(Transition::Recycle),
            1 => Just(Transition::IdleStop),
            1 => Just(Transition::Credentials),
            1 => Just(Transition::Park),
            2 => Just(Transition::Wake),
            1 => proptest::bool::weighted(0.05).prop_map(|close| if close { Transition::Close } else { Transition::Open }),
            10 => older().prop_map(Transition::Dialled),
            8 => (older(), leaves()).prop_map(|(older, leaves)| Transition::Lost(older, leaves)),
            4 => (1..15_u32).prop_map(Transition::Answer),
            3 => (0..3_u32).prop_map(Transition::InFlight),
            3 => (1..700_u32).prop_map(Transition::Live),
            2 => Just(Transition::WaitForProbe),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, transition: &Transition) -> bool {
        match transition {
            Transition::Answer(_) => state.lives(),
            Transition::InFlight(_) => state.lives(),
            // A drain is bounded, and the reference has no clock for it.
            Transition::Live(_) => state.phase == Phase::Up,
            Transition::WaitForProbe => matches!(state.phase, Phase::Parked | Phase::NeedsAuth),
            _ => true,
        }
    }

    fn apply(mut state: Self, transition: &Transition) -> Self {
        match transition {
            Transition::Open => match state.phase {
                Phase::Idle | Phase::Parked | Phase::NeedsAuth => state.dial(),
                // It is needed after all.
                Phase::Draining if !state.parks() => state.plans.push(Plan::Redial),
                _ => {}
            },
            Transition::Redial => state.planned(Plan::Redial),
            Transition::RedialIf(0) if state.lives() && !state.parks() => state.planned(Plan::Redial),
            Transition::RedialIf(_) => {}
            Transition::Recycle => state.planned(Plan::Recycle),
            Transition::IdleStop => state.planned(Plan::IdleStop),
            Transition::Credentials if matches!(state.phase, Phase::Parked | Phase::NeedsAuth) => {
                state.dial();
            }
            Transition::Credentials => {}
            Transition::Park => state.planned(Plan::Park),
            Transition::Wake => match state.phase {
                Phase::Idle | Phase::Parked | Phase::OutOfService | Phase::NeedsAuth => state.dial(),
                Phase::Draining => state.plans.push(Plan::Redial),
                _ => {}
            },
            Transition::Close => state.planned(Plan::Close),
            Transition::Dialled(0) if state.phase == Phase::Dialing => {
                state.phase = Phase::Up;
                state.history.push(Fact::Up);
            }
            Transition::Lost(0, leaves) if state.lives() || state.phase == Phase::Dialing => {
                state.end_of_drain(leaves.clone());
            }
            Transition::Dialled(_) | Transition::Lost(..) => {}
            Transition::Answer(calls) => state.history.push(Fact::Answered(*calls)),
            Transition::InFlight(calls) => {
                state.in_flight = *calls;
                if state.phase == Phase::Draining && *calls == 0 {
                    state.end_of_drain(Vec::new());
                }
            }
            Transition::Live(ticks) => state.history.push(Fact::Lived(*ticks)),
            Transition::WaitForProbe => state.dial(),
        }
        state
    }
}

struct Subject;

fn seen(line: &Line, older: u64) -> Generation {
    Generation::new(line.generation().number().saturating_sub(older))
}

impl StateMachineTest for Subject {
    type SystemUnderTest = Line;
    type Reference = Reference;

    fn init_test(_reference: &Reference) -> Line {
        let mut line = Line::new();
        line.lively = true;
        line
    }

    fn apply(mut line: Line, _reference: &Reference, transition: Transition) -> Line {
        match transition {
            Transition::Open => drop_asked(line.command(Command::Open)),
            Transition::Redial => drop_asked(line.redial()),
            Transition::RedialIf(older) => {
                let seen = seen(&line, older);
                drop_asked(line.redial_if(seen));
            }
            Transition::Recycle => drop_asked(line.command(Command::Recycle)),
            Transition::IdleStop => drop_asked(line.command(Command::IdleStop)),
            Transition::Credentials => drop_asked(line.command(Command::Credentials)),
            Transition::Park => drop_asked(line.command(Command::Park)),
            Transition::Wake => drop_asked(line.command(Command::Wake)),
            Transition::Close => drop_asked(line.command(Command::Close)),
            Transition::Dialled(older) => {
                let from = seen(&line, older);
                let heard = line.event_of(from, Event::Dialled);
                assert!(older == 0 || line.generation().number() == 0 || heard == Heard::Stale);
            }
            Transition::Lost(older, leaves) => {
                let from = seen(&line, older);
                let cause = leaves.into_iter().map(cause).reduce(Cause::join).unwrap();
                line.event_of(from, Event::Lost(cause));
            }
            Transition::Answer(calls) => line.answer(u64::from(calls)),
            Transition::InFlight(calls) => line.in_flight(calls),
            Transition::Live(ticks) => line.pass(millis(60 * u64::from(ticks))),
            Transition::WaitForProbe => drop_asked(line.until_dial()),
        }
        while line.name() == "waiting" {
            line.jump();
        }
        line
    }

    fn check_invariants(line: &Line, reference: &Reference) {
        let expected = match reference.phase {
            Phase::Idle => "idle",
            Phase::Dialing => "dialing",
            Phase::Up => "up",
            Phase::Draining => "draining",
            Phase::Parked | Phase::OutOfService => "parked",
            Phase::NeedsAuth => "needs-auth",
            Phase::Closed => "closed",
        };
        assert_eq!(line.name(), expected);
        let out = matches!(line.machine.state(), linetender_core::State::OutOfService { .. });
        assert_eq!(out, reference.phase == Phase::OutOfService);
        assert_eq!(line.generation().number(), reference.generation);
        let (tokens, useful, _) = reference.tokens();
        assert_eq!((line.tokens(), line.machine.budget().useful_millis()), (tokens, useful));
        if reference.lives() {
            let (ticks, answers) = reference.life();
            let linetender_core::State::Up(live) = line.machine.state() else { return };
            assert_eq!(live.vitals().answered, u64::from(answers));
            assert_eq!(live.proven(&line.machine.policy().probe), answers > 0 || ticks >= 500);
        }
    }
}

fn cause(leaf: Leaf) -> Cause<&'static str> {
    match leaf {
        Leaf::Planned(plan) => Cause::planned(plan),
        Leaf::Failed(class) => Cause::failed(class, "seen"),
    }
}

fn drop_asked<T>(_asked: T) {}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_agrees_with_a_naive_reference(sequential 1..80 => Subject);
}
