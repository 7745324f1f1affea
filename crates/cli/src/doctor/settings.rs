//! Findings about a server that works: its time, its state, and who shares it.

use std::time::Duration;

use linetender::{Deadline, ServerState};
use linetender_gateway::config::{Entry, Scope};
use linetender_gateway::units::spell;

use super::finding::Finding;
use super::program::Program;

/// A start that takes longer than this is worth a word if it fetches packages.
const SLOW: Duration = Duration::from_secs(3);

/// A call that is cut off earlier than this is cut off by surprise.
const SHORT: Duration = Duration::from_secs(10);

/// A call that may hang for longer than this hangs for ever, to whoever waits for it.
const LONG: Duration = Duration::from_secs(2 * 60 * 60);

/// What a start that took so long means.
pub(super) fn of_start(took: Duration, entry: &Entry, program: &Program) -> Vec<Finding> {
    let settings = entry.server.settings();
    let (start, wait) = (settings.dial.start, settings.call.wait_for_line);
    let mut found = Vec::new();
    if took > start / 2 {
        let what =
            format!("the start took {}, more than half of start_timeout ({})", seconds(took), spell(start));
        let more = spell(Duration::from_secs((took * 4).as_secs().max(60)));
        let fix = match program.preinstall() {
            Some(command) => format!(
                "install it once (`{command}`) and name its program as `command`, or set start_timeout = \"{more}\""
            ),
            None => format!("set start_timeout = \"{more}\""),
        };
        found.push(Finding::warning("slow-start", what, fix));
    } else if let Some(command) = program.preinstall().filter(|_| took > SLOW) {
        let what =
            format!("the start took {}: {} looks for the package each time", seconds(took), program.name());
        let fix = format!("install it once (`{command}`) and name its program as `command`");
        found.push(Finding::note("package-runner", what, fix));
    }
    if took > wait {
        let what = format!(
            "a call made while it restarts fails: it waits {} (`wait`), and the start took {}",
            spell(wait),
            seconds(took)
        );
        let fix = format!("set wait = \"{}s\"", (took * 2).as_secs().max(1));
        found.push(Finding::warning("wait-too-short", what, fix));
    }
    found
}

/// What its timeouts mean for calls.
pub(super) fn of_calls(entry: &Entry) -> Vec<Finding> {
    let call = &entry.server.settings().call;
    let (quiet, total) = match entry.server.calls_end() {
        Deadline::Within { quiet, total } => (quiet.min(total), total),
        _ => (call.limit, call.cap.max(call.limit)),
    };
    let mut found = Vec::new();
    if total < SHORT {
        let what = format!("every call ends after {}, also one that makes progress", spell(total));
        found.push(Finding::warning("cuts-off", what, "raise `call_timeout`"));
    } else if quiet < SHORT {
        let what = format!("a call ends when the server sends nothing for {}", spell(quiet));
        found.push(Finding::warning("cuts-off", what, "raise `quiet_limit`"));
    }
    if quiet > LONG {
        let what = format!("a call that hangs is given up only after {}", spell(quiet));
        found.push(Finding::warning("never-ends", what, "lower `quiet_limit`, or set `call_timeout`"));
    } else if call.hang_after > LONG * 6 {
        let what = format!("a server that hangs is restarted only after {}", spell(call.hang_after));
        found.push(Finding::note("never-ends", what, "lower `hang_after`"));
    }
    found
}

/// What sharing does to a server that keeps state.
pub(super) fn of_state(entry: &Entry) -> Option<Finding> {
    let is_shared = entry.server.settings().state == ServerState::Process && entry.scope == Scope::Shared;
    is_shared.then(|| {
        Finding::warning(
            "shared-state",
            "it keeps state in memory, and all agents share one process: what one agent does, the others see and change",
            "set scope = \"session\": a process for each agent; or scope = \"identity\": one for each user",
        )
    })
}

/// A time with one digit behind the point.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender_gateway::config::{Entry, load};

    use super::{Program, of_calls, of_start, of_state};

    fn entry(text: &str) -> Entry {
        load("t", &format!("[servers.a]\n{text}"), &|_| None).unwrap().servers.remove(0)
    }

    fn codes(found: impl IntoIterator<Item = super::Finding>) -> Vec<&'static str> {
        found.into_iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_slow_start_is_told_by_what_it_will_break() {
        let of = |seconds, text| {
            let entry = entry(text);
            let program = Program::of(entry.server.argv());
            codes(of_start(Duration::from_secs(seconds), &entry, &program))
        };
        let npx = "command='npx'\nargs=['-y','a']";
        assert_eq!(of(1, npx), Vec::<&str>::new());
        assert_eq!(of(4, npx), ["package-runner"]);
        assert_eq!(of(6, "command='a'"), ["wait-too-short"]);
        assert_eq!(of(31, "command='a'\nwait='1m'"), ["slow-start"]);
        assert_eq!(of(31, npx), ["slow-start", "wait-too-short"]);
    }

    #[test]
    fn limits_that_cut_off_or_never_end_are_told() {
        for (text, expected) in [
            ("command='a'", vec![]),
            ("command='a'\ncall_timeout='2s'", vec!["cuts-off"]),
            ("command='a'\nquiet_limit='2s'", vec!["cuts-off"]),
            ("command='a'\nquiet_limit='3h'\nhang_after='4h'", vec!["never-ends"]),
            ("command='a'\nhang_after='2d'", vec!["never-ends"]),
        ] {
            assert_eq!(codes(of_calls(&entry(text))), expected, "{text}");
        }
    }

    #[test]
    fn state_that_is_shared_is_told() {
        let of = |text| codes(of_state(&entry(text)));
        assert_eq!(of("command='a'"), Vec::<&str>::new());
        assert_eq!(of("command='a'\nstate='process'"), ["shared-state"]);
        assert_eq!(of("command='a'\nstate='process'\nscope='session'"), Vec::<&str>::new());
        assert_eq!(of("command='npx'\nargs=['-y','@playwright/mcp']"), Vec::<&str>::new());
        assert_eq!(of("command='npx'\nargs=['-y','@playwright/mcp']\nscope='shared'"), ["shared-state"]);
    }
}
