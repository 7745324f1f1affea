//! A world: its clock, its agenda, and what happens in it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use linetender_core::{
    Cause, Class, Command, Event, Gate, Generation, Held, Instant, LossReport, Machine, Method, Plan, Policy,
    RecordStep, RetryBudget, RetryOn, RetryReason, Safety, ServerRefusal, ServerState, Settings, State, Walk,
};

use crate::call::{Call, Place, Truths};
use crate::laws::{self, Seen};
use crate::rng::Rng;
use crate::server::{Fate, Mood, Server, Try};

/// Something on the agenda.
#[derive(Clone, Debug)]
pub enum Happening {
    Arrive(usize),
    Deadline(usize),
    Cancel(usize),
    HoldEnds(usize),
    /// Our writer's turn.
    Write(Generation),
    /// The server's turn to read.
    Read(Generation),
    /// The server has finished a call.
    Emit(Generation, Try),
    /// Our reader's turn.
    Deliver(Generation),
    Crash(Generation),
    Hang(Generation, bool),
    /// The tree is dead.
    Felled(Generation),
    /// The wire tells the driver.
    Tell(Generation, Event<&'static str>),
    Order(Command),
    Sleep,
    Timer(Instant),
}

/// The calls of one generation.
pub struct Ledger {
    pub generation: Generation,
    pub sealed: bool,
    pub queued: VecDeque<usize>,
    /// What the writer has in hand, and how many bytes of it are left.
    pub writing: Option<(Try, u64)>,
    pub answered: u64,
    pub heard_at: Instant,
    pub up_at: Option<Instant>,
    pub sealed_at: Option<Instant>,
    /// How many callers it had answered when its end began.
    pub answered_at_end: u64,
    /// Whether the server was told to die.
    pub fell: bool,
    /// Every try that was registered, the oldest first.
    pub registered: Vec<Try>,
    /// Every try that was given up after the writer had touched it.
    pub give_ups: Vec<GiveUp>,
}

/// A call that its caller or its deadline gave up.
#[derive(Clone, Copy, Debug)]
pub struct GiveUp {
    pub at: Instant,
    /// Whether its caller cancelled it; its deadline did, if not.
    pub cancelled: bool,
    /// Whether an older call was still waited for.
    pub behind: bool,
}

pub struct World {
    pub rng: Rng,
    pub now: Instant,
    pub trace: bool,
    agenda: BTreeMap<(Instant, u64), Happening>,
    entries: u64,
    pub policy: Settings,
    pub machine: Machine<&'static str>,
    pub walk: Walk,
    /// As published, which is what a call reads.
    pub gate: Gate,
    pub ledger: Ledger,
    pub servers: BTreeMap<Generation, Server>,
    pub calls: Vec<Call>,
    pub truths: Truths,
    pub retry: RetryBudget,
    pub mood: Mood,
    /// Whether the server does one thing at a time, and answers no probe while it does.
    pub single_threaded: bool,
    /// Whether each call has an exchange of its own, as over HTTP, or all share a pipe.
    pub http: bool,
    pub capacity: u64,
    /// Whether the faults have stopped.
    healed: bool,
    /// Whether an operator's last word was that it is not to run.
    pub out_of_service: bool,
    pub era_probed: bool,
    /// What the present end has cost.
    pub paid: u32,
    pub dialled_at: Option<Instant>,
    pub slept_at: Instant,
    /// Whether the last end was free, and no single free respawn either.
    pub free_end: bool,
    pub seen: Seen,
    pub timer: Option<Instant>,
}

const START: Instant = Instant::from_nanos(1_000_000_000_000);

impl World {
    pub fn new(seed: u64, trace: bool) -> Self {
        let mut rng = Rng::new(seed);
        let mut settings = Settings::default();
        if rng.percent(15) {
            settings.state = ServerState::Process;
        }
        settings.trust_annotations = rng.percent(50);
        settings.retry_on = rng.pick(&[
            RetryOn::default(),
            RetryOn::default(),
            RetryOn::NOT_EXECUTED,
            RetryOn::NOTHING,
            RetryReason::SETTABLE.into_iter().collect(),
        ]);
        let policy = settings;
        let machine = Machine::new(Policy::new(settings).unwrap(), seed, START);
        Self {
            mood: rng.pick(&Mood::ALL),
            http: rng.percent(30),
            single_threaded: rng.percent(30),
            capacity: rng.pick(&[80, 300, 65_536]),
            rng,
            now: START,
            trace,
            agenda: BTreeMap::new(),
            entries: 0,
            policy,
            gate: machine.gate(),
            machine,
            walk: Walk::new(),
            ledger: Ledger::new(Generation::NONE, START),
            servers: BTreeMap::new(),
            calls: Vec::new(),
            truths: Truths::new(),
            retry: RetryBudget::new(policy.retry, START),
            healed: false,
            out_of_service: false,
            era_probed: false,
            paid: 0,
            dialled_at: None,
            slept_at: START,
            free_end: false,
            seen: Seen::default(),
            timer: None,
        }
    }

    /// Plays the world to its end, and judges it.
    pub fn play(mut self, calls: u32) -> Result<Seen, String> {
        self.plan(calls);
        self.run_until(START + Duration::from_secs(600))?;
        self.heal()?;
        let last = self.calls.len() - 1;
        let told = self.calls[last].outcome;
        if !told.is_some_and(|told| told.delivery == linetender_core::Delivery::Answered) {
            return Err(format!(
                "the world healed, and its last call was told {told:?} in {:?}",
                self.machine.state()
            ));
        }
        self.put(Duration::ZERO, Happening::Order(Command::Close));
        self.run_until(self.now + Duration::from_secs(700))?;
        if !matches!(self.machine.state(), State::Closed) {
            return Err(format!("closing ended in {:?}", self.machine.state()));
        }
        self.seen.elapsed = self.now.since(START);
        laws::calls(&self.calls, &self.truths, self.policy.retry_on, &mut self.seen)?;
        laws::totals(&self.policy, &self.seen)?;
        Ok(self.seen)
    }

    /// Who calls, when; who orders what; when the machine sleeps.
    fn plan(&mut self, calls: u32) {
        for _ in 0..calls {
            let at = self.rng.millis(0, 300_000);
            let limit = if self.rng.percent(50) {
                self.rng.millis(20, 3_000)
            } else {
                self.rng.millis(3_000, 120_000)
            };
            self.add_call(at, limit);
        }
        // Bursts make queues, and queues make calls that are withdrawn in mid-write.
        for _ in 0..self.rng.below(8) {
            let burst = self.rng.millis(0, 300_000);
            for _ in 0..15 {
                let at = burst + self.rng.millis(0, 20);
                let limit = self.rng.millis(1, 400);
                self.add_call(at, limit);
            }
        }
        for _ in 0..self.rng.below(6) {
            let at = self.rng.millis(0, 300_000);
            let seen = Generation::new(1 + self.rng.below(5));
            let orders = [
                Command::RedialIf { seen },
                Command::Redial,
                Command::Recycle,
                Command::Credentials,
                Command::IdleStop,
                Command::Open,
                Command::Park,
                Command::Wake,
            ];
            let order = self.rng.pick(&orders);
            self.put(at, Happening::Order(order));
        }
        for _ in 0..self.rng.below(3) {
            let at = self.rng.millis(0, 300_000);
            self.put(at, Happening::Sleep);
        }
    }

    fn add_call(&mut self, at: Duration, limit: Duration) {
        let method = if self.rng.percent(20) { Method::ReadResource } else { Method::CallTool };
        let listed = self.rng.percent(10);
        let safety = Safety::of(method, self.policy.trust_annotations, listed);
        let call = self.calls.len();
        self.calls.push(Call::new(safety, self.now + at + limit));
        self.put(at, Happening::Arrive(call));
        self.put(at + limit, Happening::Deadline(call));
        if self.rng.percent(10) {
            let left = self.rng.millis(0, crate::laws::millis(limit).max(1));
            self.put(at + left, Happening::Cancel(call));
        }
    }

    /// The faults stop: now everything has to come back by itself.
    fn heal(&mut self) -> Result<(), String> {
        self.mood = Mood::Kind;
        self.healed = true;
        if self.out_of_service {
            self.put(Duration::ZERO, Happening::Order(Command::Wake));
        }
        let servers: Vec<_> =
            self.servers.iter().filter(|(_, server)| server.alive).map(|(at, _)| *at).collect();
        for generation in servers {
            if matches!(self.servers[&generation].fate, Fate::Hangs { .. }) {
                self.put(Duration::ZERO, Happening::Hang(generation, false));
            }
        }
        for call in 0..40 {
            self.add_call_unhurried(Duration::from_secs(call * 20));
        }
        self.run_until(self.now + Duration::from_secs(1000))
    }

    fn add_call_unhurried(&mut self, at: Duration) {
        let call = self.calls.len();
        let limit = Duration::from_secs(60);
        self.calls.push(Call::new(Safety::Unsafe, self.now + at + limit));
        self.put(at, Happening::Arrive(call));
        self.put(at + limit, Happening::Deadline(call));
    }

    pub fn put(&mut self, after: Duration, happening: Happening) {
        self.entries += 1;
        self.agenda.insert((self.now + after, self.entries), happening);
    }

    fn run_until(&mut self, end: Instant) -> Result<(), String> {
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= end
        {
            let ((at, _), happening) = entry.remove_entry();
            self.now = at;
            if self.trace {
                println!("{:>12} {happening:?}", self.now.since(START).as_micros());
            }
            self.happen(happening)?;
            laws::way_out(&self.machine)?;
            self.no_hang_outlives_its_bound()?;
            self.arm();
        }
        self.now = end;
        Ok(())
    }

    /// The driver's one timer.
    fn arm(&mut self) {
        let next = self.machine.poll_timeout();
        if next != self.timer {
            self.timer = next;
            if let Some(at) = next {
                self.put(at.since(self.now), Happening::Timer(at));
            }
        }
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Arrive(call) => return self.admit(call),
            Happening::Deadline(call) => return self.withdraw(call, RecordStep::Expire),
            Happening::Cancel(call) => return self.withdraw(call, RecordStep::Cancel),
            Happening::HoldEnds(call) => match self.calls[call].place {
                Place::AtGate(Held { until, .. }) | Place::Asking { until } if until <= self.now => {
                    return self.withdraw(call, RecordStep::Expire);
                }
                _ => {}
            },
            Happening::Write(generation) => return self.write(generation),
            Happening::Read(generation) => self.server_reads(generation),
            Happening::Emit(generation, a_try) => self.emit(generation, a_try),
            Happening::Deliver(generation) => self.deliver(generation),
            Happening::Crash(generation) => return self.crash(generation),
            Happening::Hang(generation, hung) => {
                if let Some(server) = self.servers.get_mut(&generation) {
                    server.hung = hung;
                    self.put(Duration::ZERO, Happening::Read(generation));
                }
            }
            Happening::Felled(generation) => self.felled(generation),
            Happening::Tell(generation, event) => return self.tell(generation, event),
            Happening::Order(command) => {
                match command {
                    Command::Park => self.out_of_service = true,
                    Command::Wake | Command::Redial => self.out_of_service = false,
                    _ => {}
                }
                return self.drive(|machine, now| {
                    let _ = machine.handle_command(now, command);
                });
            }
            Happening::Sleep => {
                self.seen.slept += 1;
                self.slept_at = self.now;
                return self.drive(Machine::handle_sleep);
            }
            Happening::Timer(at) => {
                if self.timer == Some(at) {
                    self.timer = None;
                    return self.drive(Machine::handle_timeout);
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, generation: Generation) -> Result<(), String> {
        if self.ledger.generation != generation || self.ledger.sealed {
            return Ok(());
        }
        if self.http { self.write_exchange(generation) } else { self.write_pipe(generation) }
    }

    fn next_queued(&mut self) -> Option<usize> {
        let generation = self.ledger.generation;
        while let Some(call) = self.ledger.queued.pop_front() {
            if self.calls[call].place == Place::In(generation) {
                return Some(call);
            }
        }
        None
    }

    fn write_pipe(&mut self, generation: Generation) -> Result<(), String> {
        if self.ledger.writing.is_none()
            && let Some(call) = self.next_queued()
        {
            let len = 20 + u32::try_from(self.rng.below(200)).unwrap();
            let a_try = Try { call, number: self.calls[call].tries };
            let extent = self.servers.get_mut(&generation).unwrap().append(a_try, len);
            self.step(call, RecordStep::Write(extent))?;
            self.ledger.writing = Some((a_try, u64::from(len) + 1));
        }
        let Some((a_try, left)) = self.ledger.writing else { return Ok(()) };
        let server = self.servers.get_mut(&generation).unwrap();
        // Nobody reads any more: the write fails, and the exit is told soon.
        let room = if server.read { server.room(self.capacity) } else { 0 };
        let chunk = (1 + self.rng.below(300)).min(left).min(room);
        server.accepted += chunk;
        let soon = self.rng.millis(0, 2);
        self.put(soon, Happening::Read(generation));
        if chunk == left {
            self.ledger.writing = None;
            if self.calls[a_try.call].place == Place::In(generation)
                && self.calls[a_try.call].tries == a_try.number
            {
                self.step(a_try.call, RecordStep::Flush)?;
            }
        } else {
            self.ledger.writing = Some((a_try, left - chunk));
        }
        let again = if chunk > 0 { self.rng.millis(0, 2) } else { self.rng.millis(5, 50) };
        self.put(again, Happening::Write(generation));
        Ok(())
    }

    /// Over HTTP each call has its own fate.
    fn write_exchange(&mut self, generation: Generation) -> Result<(), String> {
        let Some(call) = self.next_queued() else { return Ok(()) };
        let a_try = Try { call, number: self.calls[call].tries };
        self.step(call, RecordStep::Write(linetender_core::Extent::default()))?;
        self.put(self.policy.close.settle, Happening::Write(generation));
        let nobody_listens = !self.servers[&generation].alive;
        let dice = if self.healed { 99 } else { self.rng.below(100) };
        if nobody_listens || dice < 4 {
            return self.exchange_lost(call, LossReport::NoByteWritten, true);
        }
        self.step(call, RecordStep::Flush)?;
        // What the server says instead of an answer is no news of whether it ran the call.
        let truth = self.truths.entry(a_try).or_default();
        truth.runs += u32::from(dice >= 16 || self.rng.percent(50));
        match dice {
            4..12 => {
                let refusal = self.rng.pick(&ServerRefusal::ALL);
                truth.refused = Some(refusal);
                self.exchange_lost(call, LossReport::Refused(refusal), false)
            }
            12..16 => self.exchange_lost(call, LossReport::Nothing, true),
            _ => {
                let takes = self.rng.millis(0, 500);
                self.put(takes, Happening::Emit(generation, a_try));
                Ok(())
            }
        }
    }

    fn server_reads(&mut self, generation: Generation) {
        let bytes = 1 + self.rng.below(200);
        let Some(server) = self.servers.get_mut(&generation) else { return };
        if !server.read || server.hung {
            return;
        }
        let ran = server.consume(bytes);
        let (alive, unread) = (server.alive, server.consumed < server.accepted);
        let last_call =
            matches!(server.fate, Fate::Serves { ends_on_call, .. } if server.ran >= ends_on_call);
        if last_call && alive && !ran.is_empty() {
            let soon = self.rng.millis(0, 5);
            self.put(soon, Happening::Crash(generation));
        }
        for a_try in ran {
            self.truths.entry(a_try).or_default().runs += 1;
            if alive {
                let takes = if self.healed || self.rng.percent(90) {
                    self.rng.millis(0, 20)
                } else {
                    self.rng.millis(0, 60_000)
                };
                self.put(takes, Happening::Emit(generation, a_try));
            } else {
                self.seen.survivors_read_on += 1;
            }
        }
        if unread {
            let later = self.rng.millis(0, 8);
            self.put(later + Duration::from_micros(1), Happening::Read(generation));
        }
    }

    fn emit(&mut self, generation: Generation, a_try: Try) {
        let Some(server) = self.servers.get_mut(&generation) else { return };
        if server.hung {
            self.put(Duration::from_secs(1), Happening::Emit(generation, a_try));
        } else if server.alive {
            server.answers.push_back(a_try);
            let later = self.rng.millis(0, 3);
            self.put(later, Happening::Deliver(generation));
        }
    }

    fn deliver(&mut self, generation: Generation) {
        if self.ledger.generation == generation && !self.ledger.sealed {
            while let Some(a_try) =
                self.servers.get_mut(&generation).and_then(|server| server.answers.pop_front())
            {
                self.answer(a_try);
            }
        }
    }

    fn crash(&mut self, generation: Generation) -> Result<(), String> {
        let survivor = self.rng.percent(30);
        let Some(server) = self.servers.get_mut(&generation) else { return Ok(()) };
        if !server.alive {
            return Ok(());
        }
        let Fate::Serves { class, .. } = server.fate else { return Ok(()) };
        server.alive = false;
        server.read = survivor;
        if survivor {
            self.put(Duration::ZERO, Happening::Read(generation));
        }
        let noticed = self.rng.millis(0, 8);
        if self.rng.percent(25) {
            // Somebody wants it replaced in the moment in which it dies.
            let order = self.rng.pick(&[Command::Recycle, Command::RedialIf { seen: generation }]);
            self.drive(|machine, now| {
                let _ = machine.handle_command(now, order);
            })?;
        }
        if self.http && self.rng.percent(50) {
            self.put(noticed, Happening::Tell(generation, Event::Trouble));
            return Ok(());
        }
        let mut cause = Cause::failed(class, "died");
        if self.rng.percent(15) {
            cause = cause.join(Cause::planned(Plan::Recycle));
        }
        self.put(noticed, Happening::Tell(generation, Event::Lost(cause)));
        Ok(())
    }

    fn felled(&mut self, generation: Generation) {
        let Some(server) = self.servers.get_mut(&generation) else { return };
        (server.alive, server.read) = (false, false);
        if self.rng.percent(70) {
            self.put(Duration::ZERO, Happening::Tell(generation, Event::NoReader));
        }
        let note = self.rng.percent(20).then_some("close: lock not held");
        let later = self.rng.millis(0, 20);
        self.put(later, Happening::Tell(generation, Event::Gone(note)));
    }

    /// The life of a new generation, as it will be.
    pub fn born(&mut self, generation: Generation) {
        let fate = self.mood.fate(&mut self.rng);
        let declares_safe = self.rng.percent(60);
        self.servers.insert(generation, Server::new(fate, declares_safe));
        self.ledger = Ledger::new(generation, self.now);
        let turn = self.rng.millis(0, 20);
        let quick = self.rng.percent(20);
        let start = turn + self.rng.millis(1, if quick { 20 } else { 900 });
        self.put(turn, Happening::Tell(generation, Event::Started));
        if quick && self.rng.percent(30) {
            // Somebody wants another one as soon as it is up: a free end, and right behind its dial.
            let order =
                self.rng.pick(&[Command::Recycle, Command::Redial, Command::RedialIf { seen: generation }]);
            self.put(start + Duration::from_millis(6), Happening::Order(order));
        }
        let tell = |event| Happening::Tell(generation, event);
        match fate {
            Fate::Mute => {}
            Fate::StillBorn(class) => {
                let mut cause = Cause::failed(class, "still-born");
                if class == Class::Overload {
                    cause = cause.with_retry_after(self.rng.millis(0, 60_000));
                }
                self.put(start, tell(Event::Lost(cause)));
            }
            Fate::Serves { ends_after, .. } => {
                self.put(start, tell(Event::FirstByte));
                self.put(start + Duration::from_millis(5), tell(Event::Dialled));
                if let Some(life) = ends_after {
                    self.put(start + Duration::from_millis(5) + life, Happening::Crash(generation));
                }
            }
            Fate::Hangs { after, for_ } => {
                self.put(start, tell(Event::FirstByte));
                self.put(start + Duration::from_millis(5), tell(Event::Dialled));
                self.put(start + after, Happening::Hang(generation, true));
                self.put(start + after + for_, Happening::Hang(generation, false));
            }
        }
    }
}

impl Ledger {
    pub fn new(generation: Generation, now: Instant) -> Self {
        Self {
            generation,
            sealed: false,
            queued: VecDeque::new(),
            writing: None,
            answered: 0,
            heard_at: now,
            up_at: None,
            sealed_at: None,
            answered_at_end: 0,
            fell: false,
            registered: Vec::new(),
            give_ups: Vec::new(),
        }
    }
}
