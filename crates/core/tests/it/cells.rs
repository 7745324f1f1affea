//! Every (state × input) cell, snapshotted; and the page in docs/ that is made from the same table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Effect, Event, Gate, Generation, Heard, Machine, Plan,
    Settle, State, Vitals,
};

use crate::kit::{Detail, Line, secs};

type Variant = (&'static str, fn() -> Line);
type Input = (&'static str, fn(&mut Line) -> String);

/// A line in each state, and in each variant of a state that decides differently.
const STATES: [Variant; 47] = [
    ("idle", Line::new),
    ("idle, stopped a moment ago", || after(Line::up(), |line| line.command(Command::IdleStop))),
    ("dialing, at the gate", || after(Line::new(), Line::open)),
    ("dialing, starting", || after(dialing(), |line| line.event(Event::Started))),
    ("dialing, shaking hands", shaking),
    ("dialing, a process that wrote to stderr", wrote),
    ("dialing, past the start limit", || after(wrote(), |line| line.pass(secs(60)))),
    ("dialing, again", || after(Line::up(), |line| line.lose(Class::Exit))),
    ("dialing, from park", || after(parked(), Line::until_dial)),
    ("dialing, from needs-auth", || after(needs_auth(), Line::until_dial)),
    ("up, unproven", Line::up),
    ("up, proven, idle", || after(Line::up(), |line| line.answer(1))),
    ("up, useful", || after(Line::up(), |line| line.answer(3))),
    ("up, busy", busy),
    ("up, probing", || after(Line::up(), |line| line.pass(secs(30)))),
    ("up, slept", slept),
    ("suspect, idle", || after(Line::up(), |line| line.event(Event::Trouble))),
    ("suspect, idle, one probe missed", || after(Line::up(), |line| line.pass(secs(35)))),
    ("suspect, nobody listens", || after(Line::up(), |line| line.event(Event::Refused))),
    ("suspect, busy", || after(busy(), |line| line.event(Event::Trouble))),
    ("up, given up", given_up),
    ("suspect, given up, the last probe out", || given_up().later(secs(59))),
    ("suspect, given up, over HTTP, the last probe out", || {
        after(busy(), |line| {
            line.vitals.exchanges = true;
            line.give_up(true);
        })
        .later(secs(9))
    }),
    ("draining", || after(busy(), |line| line.command(Command::Recycle))),
    ("draining, to be parked", || after(busy(), |line| line.command(Command::Park))),
    ("ending, draining", || after(Line::up(), |line| held_up(line, Class::Exit))),
    ("ending, draining, planned", || after(Line::up(), |line| (line.obedient = false, line.redial()))),
    ("ending, draining, idle stop", || {
        after(Line::up(), |line| (line.obedient = false, line.command(Command::IdleStop)))
    }),
    ("ending, draining, to park", || after(Line::up(), |line| held_up(line, Class::Config))),
    ("ending, draining, to needs-auth", || after(Line::up(), |line| held_up(line, Class::Auth))),
    ("ending, draining, to out of service", || {
        after(Line::up(), |line| (line.obedient = false, line.command(Command::Park)))
    }),
    ("ending, draining, to close", || {
        after(Line::up(), |line| (line.obedient = false, line.command(Command::Close)))
    }),
    ("ending, falling", || after(Line::up(), |line| falling(line, Class::Exit))),
    ("ending, fallen", || after(Line::up(), fallen)),
    ("ending, stuck", || after(Line::up(), |line| (fallen(line), line.pass(secs(5))))),
    ("waiting", || after(dialing(), |line| line.lose(Class::Local))),
    ("waiting, the last dial long ago", || {
        after(dialing(), |line| {
            line.event(Event::Lost(Cause::failed(Class::Overload, "x").with_retry_after(secs(9))))
        })
        .later(secs(1))
    }),
    ("waiting, never answered", || after(wrote(), |line| line.lose(Class::Exit))),
    ("parked", parked),
    ("parked, never answered, may be woken", || after(wrote(), |line| never(line, false)).later(secs(60))),
    ("parked, its login was refused", || after(wrote(), |line| never(line, true)).later(secs(60))),
    ("parked, may be woken", || parked().later(secs(6))),
    ("parked by an operator", || after(Line::up(), |line| line.command(Command::Park))),
    ("parked by an operator, for a while", || {
        after(Line::up(), |line| line.command(Command::Park)).later(secs(6))
    }),
    ("needs-auth", needs_auth),
    ("needs-auth, for a while", || needs_auth().later(secs(6))),
    ("closed", || after(Line::new(), |line| line.command(Command::Close))),
];

const INPUTS: [Input; 49] = [
    ("open", |line| asked(line, Command::Open)),
    ("redial", |line| asked(line, Command::Redial)),
    ("redial if this one", |line| asked(line, Command::RedialIf { seen: line.generation() })),
    ("redial if an older one", |line| asked(line, Command::RedialIf { seen: older(line) })),
    ("recycle", |line| asked(line, Command::Recycle)),
    ("credentials", |line| asked(line, Command::Credentials)),
    ("idle stop", |line| asked(line, Command::IdleStop)),
    ("park", |line| asked(line, Command::Park)),
    ("wake", |line| asked(line, Command::Wake)),
    ("close", |line| asked(line, Command::Close)),
    ("knock", knock),
    ("sleep", |line| quiet(line, Machine::handle_sleep)),
    ("timer", |line| {
        line.now = line.machine.poll_timeout().unwrap_or(line.now);
        quiet(line, Machine::handle_timeout)
    }),
    ("started", |line| heard(line, Event::Started)),
    ("spawned", |line| heard(line, Event::Spawned)),
    ("wrote", |line| heard(line, Event::Wrote)),
    ("first byte", |line| heard(line, Event::FirstByte)),
    ("dialled", |line| heard(line, Event::Dialled)),
    ("trouble", |line| heard(line, Event::Trouble)),
    ("refused", |line| heard(line, Event::Refused)),
    ("probe refused", |line| heard(line, Event::ProbeRefused)),
    ("overdue", |line| heard(line, Event::Overdue)),
    ("probe answered", |line| heard(line, Event::ProbeAnswered)),
    ("probe failed", |line| heard(line, Event::ProbeFailed)),
    ("probe unsent", |line| heard(line, Event::ProbeUnsent)),
    ("drained", |line| heard(line, Event::Drained)),
    ("no reader", |line| heard(line, Event::NoReader)),
    ("gone", |line| heard(line, Event::Gone(None))),
    ("vitals: nothing in flight", |line| vitals(line, |vitals, _| vitals.in_flight = 0)),
    ("vitals: a call was given up", |line| vitals(line, |vitals, now| vitals.abandoned_at = Some(now))),
    ("vitals: heard something", |line| vitals(line, |vitals, now| vitals.heard_at = now)),
    ("vitals: answered a caller", |line| vitals(line, |vitals, _| vitals.answered += 1)),
    ("lost: transport", |line| lost(line, Class::Transport)),
    ("lost: exit", |line| lost(line, Class::Exit)),
    ("lost: handshake", |line| lost(line, Class::Handshake)),
    ("lost: protocol", |line| lost(line, Class::Protocol)),
    ("lost: silent", |line| lost(line, Class::Silent)),
    ("lost: session-lost", |line| lost(line, Class::SessionLost)),
    ("lost: auth", |line| lost(line, Class::Auth)),
    ("lost: config", |line| lost(line, Class::Config)),
    ("lost: overload", |line| lost(line, Class::Overload)),
    ("lost: era-probe", |line| lost(line, Class::EraProbe)),
    ("lost: local", |line| lost(line, Class::Local)),
    ("lost: exit, login refused", |line| {
        heard(line, Event::Lost(Cause::failed(Class::Exit, "seen").with_login_refused()))
    }),
    ("lost: planned", |line| heard(line, Event::Lost(Cause::planned(Plan::Recycle)))),
    ("lost: mixed", |line| {
        let cause = Cause::planned(Plan::Recycle).join(Cause::failed(Class::Exit, "seen"));
        heard(line, Event::Lost(cause))
    }),
    ("older generation: lost", |line| stale(line, Event::Lost(Cause::failed(Class::Exit, "late")))),
    ("older generation: dialled", |line| stale(line, Event::Dialled)),
    ("older generation: gone", |line| stale(line, Event::Gone(Some("late")))),
];

fn after<R>(mut line: Line, then: impl FnOnce(&mut Line) -> R) -> Line {
    then(&mut line);
    line
}

fn dialing() -> Line {
    after(Line::new(), Line::open)
}

/// A server's first start, whose process has written to stderr.
fn wrote() -> Line {
    after(dialing(), |line| {
        (line.event(Event::Started), line.event(Event::Spawned), line.event(Event::Wrote))
    })
}

/// Its start fails: three times, or for its login.
fn never(line: &mut Line, refused: bool) {
    for _ in 0..if refused { 0 } else { 2 } {
        line.lose(Class::Exit);
        line.until_dial();
        line.event(Event::Started);
        line.event(Event::Spawned);
    }
    let cause = Cause::failed(Class::Exit, "seen");
    line.event(Event::Lost(if refused { cause.with_login_refused() } else { cause }));
}

fn shaking() -> Line {
    after(dialing(), |line| (line.event(Event::Started), line.event(Event::FirstByte)))
}

fn busy() -> Line {
    after(Line::up(), |line| line.in_flight(2))
}

fn given_up() -> Line {
    after(busy(), |line| line.give_up(true))
}

fn slept() -> Line {
    after(Line::up(), |line| (line.machine.handle_sleep(line.now), line.run()))
}

fn parked() -> Line {
    let mut line = Line::with(|settings| settings.budget.tokens = 1);
    line.open();
    line.lose(Class::Exit);
    line.lose(Class::Exit);
    line
}

fn needs_auth() -> Line {
    after(Line::up(), |line| line.lose(Class::Auth))
}

fn held_up(line: &mut Line, class: Class) {
    line.obedient = false;
    line.lose(class);
}

fn falling(line: &mut Line, class: Class) {
    held_up(line, class);
    line.event(Event::Drained);
}

fn fallen(line: &mut Line) {
    falling(line, Class::Exit);
    line.event(Event::NoReader);
}

fn older(line: &Line) -> Generation {
    // A line that never dialled has no older generation; a made-up one must be as harmless.
    Generation::new(line.generation().number().wrapping_sub(1))
}

fn asked(line: &mut Line, command: Command) -> String {
    match line.command(command) {
        CommandOutcome::Started => "started".into(),
        CommandOutcome::Joined => "joined".into(),
        CommandOutcome::Declined => "declined".into(),
        CommandOutcome::Closed => "closed".into(),
    }
}

fn said(heard: Heard) -> String {
    match heard {
        Heard::Taken => "taken".into(),
        Heard::Stale => "stale".into(),
        Heard::OutOfPlace => "out of place".into(),
    }
}

fn heard(line: &mut Line, event: Event<Detail>) -> String {
    said(line.event(event))
}

fn lost(line: &mut Line, class: Class) -> String {
    heard(line, Event::Lost(Cause::failed(class, "seen")))
}

fn stale(line: &mut Line, event: Event<Detail>) -> String {
    said(line.event_of(older(line), event))
}

fn knock(line: &mut Line) -> String {
    match line.knock() {
        Admission::Go { .. } => "go".into(),
        Admission::Hold(held) => format!("hold {} ms", held.until.since(line.now).as_millis()),
        Admission::Knock => "knock again".into(),
        Admission::Refuse { why, .. } => format!("refuse: {}", why.name()),
    }
}

fn quiet(line: &mut Line, handle: impl FnOnce(&mut Machine<Detail>, linetender_core::Instant)) -> String {
    handle(&mut line.machine, line.now);
    line.run();
    "-".into()
}

fn vitals(line: &mut Line, change: impl FnOnce(&mut Vitals, linetender_core::Instant)) -> String {
    change(&mut line.vitals, line.now);
    let heard = line.machine.handle_vitals(line.now, line.generation(), line.vitals);
    line.run();
    said(heard)
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Notice(Gate::Go { .. }) => "notice(go)".into(),
        Effect::Notice(Gate::Hold { .. }) => "notice(hold)".into(),
        Effect::Notice(Gate::Knock) => "notice(knock)".into(),
        Effect::Notice(Gate::Refuse { why, .. }) => format!("notice(refuse: {})", why.name()),
        Effect::Dial { .. } => "dial".into(),
        Effect::Probe { .. } => "probe".into(),
        Effect::Seal { .. } => "seal".into(),
        Effect::Drain { .. } => "drain".into(),
        Effect::Settle { settle: Settle::Certain, .. } => "settle(certain)".into(),
        Effect::Settle { settle: Settle::Residue, .. } => "settle(residue)".into(),
        Effect::Settle { settle: Settle::Unknown, .. } => "settle(unknown)".into(),
        Effect::Settle { settle: Settle::Own, .. } => "settle(own)".into(),
        Effect::Kill { .. } => "kill".into(),
        Effect::LetGo { .. } => "let go".into(),
        Effect::Close { .. } => "close".into(),
        Effect::Forget { .. } => "forget".into(),
    }
}

/// What one input does in one state.
struct Cell {
    from: &'static str,
    to: &'static str,
    said: String,
    effects: Vec<String>,
    tokens: i64,
    useful: i64,
}

fn cell(state: fn() -> Line, input: fn(&mut Line) -> String) -> Cell {
    let mut line = state();
    line.obedient = false;
    line.effects.clear();
    let useful = |line: &Line| i64::from(line.machine.budget().useful_millis());
    let (from, tokens, before) = (line.name(), i64::from(line.tokens()), useful(&line));
    let said = input(&mut line);
    let effects = line.effects.iter().map(|(_, done)| effect(done)).collect();
    assert!(way_out(&line.machine), "{} has no way out", line.name());
    let tokens = i64::from(line.tokens()) - tokens;
    Cell { from, to: line.name(), said, effects, tokens, useful: useful(&line) - before }
}

/// Closed is on purpose; an idle line waits for a knock; one that an operator parked for a command; a line at the dial limit for
/// its turn.
fn way_out(machine: &Machine<Detail>) -> bool {
    matches!(machine.state(), State::Closed | State::Idle(_) | State::OutOfService { .. })
        || matches!(machine.state(), State::Dialing(dialing) if dialing.phase == linetender_core::DialPhase::AtGate)
        || machine.poll_timeout().is_some()
}

#[test]
fn every_cell_is_as_it_was() {
    let mut table = String::new();
    for (name, state) in STATES {
        writeln!(table, "[{name}]").unwrap();
        for (input, run) in INPUTS {
            let cell = cell(state, run);
            let moved = if cell.from == cell.to { String::new() } else { format!(" → {}", cell.to) };
            let tokens =
                if cell.tokens == 0 { String::new() } else { format!(" {:+} milli-tokens", cell.tokens) };
            let useful = if cell.useful == 0 {
                String::new()
            } else {
                format!(" {:+} useful milli-tokens", cell.useful)
            };
            let effects = cell.effects.join(", ");
            let line = format!("{input:<30} {:<14}{moved} {effects}{tokens}{useful}", cell.said);
            writeln!(table, "  {}", line.trim_end()).unwrap();
        }
    }
    insta::assert_snapshot!("cells", table);
}

#[test]
fn a_cell_that_is_stale_or_out_of_place_does_nothing() {
    for (name, state) in STATES {
        for (input, run) in INPUTS {
            let cell = cell(state, run);
            if ["stale", "out of place"].contains(&cell.said.as_str()) {
                assert!(
                    cell.from == cell.to && cell.effects.is_empty() && (cell.tokens, cell.useful) == (0, 0),
                    "{name}: {input}"
                );
            }
        }
    }
}

/// Where an input leads when the driver is quick: through the end, if there is one.
fn settled(state: fn() -> Line, input: fn(&mut Line) -> String) -> &'static str {
    let mut line = state();
    line.obedient = true;
    input(&mut line);
    line.name()
}

/// The page in docs/: the diagram, and what each input does in each state.
fn page() -> String {
    let mut edges: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut edge = |from, to, label| {
        let labels = edges.entry((from, to)).or_default();
        if !labels.contains(&label) {
            labels.push(label);
        }
    };
    let losses = INPUTS.iter().filter(|(input, _)| input.starts_with("lost: ")).count();
    let mut rows = String::new();
    for (name, state) in STATES {
        let mut leads: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (input, run) in INPUTS {
            let cell = cell(state, run);
            if cell.from == cell.to {
                continue;
            }
            leads.entry(cell.to).or_default().push(input);
            edge(cell.from, cell.to, input.split(':').next().unwrap());
            if cell.to == "ending" {
                edge("ending", settled(state, run), "gone");
            }
        }
        for (to, mut inputs) in leads {
            if inputs.iter().filter(|input| input.starts_with("lost: ")).count() == losses {
                inputs.retain(|input| !input.starts_with("lost: "));
                inputs.push("lost, for any cause");
            }
            writeln!(rows, "| {name} | {to} | {} |", inputs.join(" · ")).unwrap();
        }
    }
    let mut page = String::from(include_str!("cells.md"));
    page.push_str("```mermaid\nstateDiagram-v2\n    [*] --> idle\n");
    for ((from, to), labels) in edges {
        // Mermaid takes a hyphen for an arrow.
        let [from, to] = [from, to].map(|state| state.replace('-', "_"));
        writeln!(page, "    {from} --> {to}: {}", labels.join(", ")).unwrap();
    }
    page.push_str("    closed --> [*]\n```\n\n## Every cell that changes the state\n\n");
    page.push_str("| in | goes to | on |\n|---|---|---|\n");
    page.push_str(&rows);
    page
}

#[test]
fn the_page_in_docs_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/state-machine.md");
    #[expect(clippy::disallowed_methods, reason = "how a person asks for the page to be written")]
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page(), "run: UPDATE_DOCS=1 cargo nextest run -p linetender-core docs");
}
