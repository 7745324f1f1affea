//! Settings of a server under the names of `linetender run`'s flags: `wait = "5s"` in the file is `--wait 5s` on the command line.
//! The same numbers have longer names in `policy`, which has all of them.

use std::time::Duration;

use linetender::Deadline;
use linetender_core::{Invalid, LONGEST, ServerState, Settings};

use super::file::{Scope, ServerTable};
use super::problem::{Problem, Text};
use super::tree::Node;

/// Each short name, and where `policy` keeps the same number.
const NAMED: [(&str, &str); 15] = [
    ("quiet_limit", "call.limit"),
    ("hang_after", "call.hang_after"),
    ("abandoned_after", "call.abandoned_after"),
    ("wait", "call.wait_for_line"),
    ("start_timeout", "dial.start"),
    ("handshake_timeout", "dial.handshake"),
    ("keepalive", "probe.keepalive"),
    ("tree", "close.tree"),
    ("crash_grace", "close.crash"),
    ("close_timeout", "close.term"),
    ("retry_on", "retry_on"),
    ("trust_annotations", "trust_annotations"),
    ("state", "state"),
    ("max_message", "limits.message"),
    ("in_flight", "limits.in_flight"),
];

/// The short names that no policy has.
const CALL_TIMEOUT: &str = "call_timeout";
const IDLE_STOP: &str = "idle_stop";
const DURABLE_KEPT: &str = "durable_kept";

/// How long outcomes of durable calls are kept, if nobody says.
const KEPT: Duration = Duration::from_secs(60 * 60);
const SHORTEST_KEPT: Duration = Duration::from_secs(10);
const LONGEST_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Takes the short names out of an agent's file, where they may be another program's: there `policy` has these settings.
pub(super) fn leave_to_others(tree: &mut Node, source: &Text<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for server in tree.servers_mut() {
        // Agents have one of their own, which is none of our business.
        server.retain(|member| member.name != "auth");
        server.retain(|member| {
            let ours = [CALL_TIMEOUT, IDLE_STOP].contains(&&*member.name)
                || NAMED.iter().any(|(short, _)| *short == member.name);
            if ours {
                let what = format!("key `{}` ignored: it is read in linetender's own file only", member.name);
                found.push(*source.problem(member.at.clone(), what, Some("use `policy`".to_owned())));
            }
            !ours
        });
    }
    found
}

/// Refuses a number that was given twice.
pub(super) fn once(server: &Node, source: &Text<'_>) -> Result<(), Box<Problem>> {
    for (short, long) in NAMED {
        if let Some(node) = server.get(short)
            && in_policy(server, long).is_some()
        {
            let what = format!("`{short}` and `policy.{long}` are the same setting");
            return Err(source.problem(node.at.clone(), what, Some("remove one of them".to_owned())));
        }
    }
    Ok(())
}

/// What is wrong, in the names that the file uses, and where: the number itself, or the one that it does not go with.
pub(super) fn wrong<'a>(server: &'a Node, invalid: &Invalid) -> (String, Option<&'a Node>) {
    let mut place = in_policy(server, invalid.setting);
    let mut what = invalid.to_string();
    for (short, long) in NAMED {
        // Who wrote the long name reads the long name.
        if what.contains(long) && in_policy(server, long).is_none() {
            what = what.replace(long, short);
            place = place.or_else(|| server.get(short));
        }
    }
    (what, place.or_else(|| server.get("policy")))
}

fn in_policy<'a>(server: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(server.get("policy")?, |node, name| node.get(name))
}

/// How long a call may take in all, if the file says so.
pub(super) fn deadline(
    table: &ServerTable,
    server: &Node,
    source: &Text<'_>,
) -> Result<Deadline, Box<Problem>> {
    let (Some(millis), Some(node)) = (table.call_timeout, server.get(CALL_TIMEOUT)) else {
        // Many agents share a server here, and the one that gave up long ago may never say so: the deadline is ours.
        return Ok(Deadline::Policy);
    };
    let must = match Duration::from_millis(millis) {
        Duration::ZERO => "longer than zero",
        total if total > LONGEST => "at most a year",
        total => {
            // Limits of the policy hold beside it if they were asked for.
            let call = &settings(table, server).call;
            let total = if in_policy(server, "call.cap").is_some() { total.min(call.cap) } else { total };
            let is_quiet = table.quiet_limit.is_some() || in_policy(server, "call.limit").is_some();
            let quiet = if is_quiet { total.min(call.limit) } else { total };
            return Ok(Deadline::Within { quiet, total });
        }
    };
    Err(source.problem(node.at.clone(), format!("call_timeout must be {must}"), None))
}

/// How long outcomes of calls with a key are kept, if the file says that they are.
pub(super) fn durable(
    table: &ServerTable,
    server: &Node,
    source: &Text<'_>,
) -> Result<Option<Duration>, Box<Problem>> {
    let wrong = |name: &str, what: &str, help: Option<&str>| {
        let node = server.get(name).unwrap_or(server);
        Err(source.problem(node.at.clone(), what, help.map(str::to_owned)))
    };
    if table.durable != Some(true) {
        return match table.durable_kept {
            Some(_) => wrong(DURABLE_KEPT, "durable_kept is for servers with durable = true", None),
            None => Ok(None),
        };
    }
    if table.scope == Some(Scope::Session) {
        let what = "durable calls outlive the session, and so its connection (scope = \"session\")";
        return wrong("durable", what, Some("use scope = \"identity\", or remove one of them"));
    }
    let kept = table.durable_kept.map_or(KEPT, Duration::from_millis);
    if !(SHORTEST_KEPT..=LONGEST_KEPT).contains(&kept) {
        return wrong(DURABLE_KEPT, "durable_kept must be between 10 seconds and 30 days", None);
    }
    Ok(Some(kept))
}

/// How long it may run although nobody uses it, if the file says so.
pub(super) fn idle_stop(
    table: &ServerTable,
    server: &Node,
    source: &Text<'_>,
) -> Result<Option<Duration>, Box<Problem>> {
    let (Some(millis), Some(node)) = (table.idle_stop, server.get(IDLE_STOP)) else { return Ok(None) };
    let wrong = |what: &str, help: Option<&str>| {
        Err(source.problem(node.at.clone(), what.to_owned(), help.map(str::to_owned)))
    };
    match Duration::from_millis(millis) {
        Duration::ZERO => wrong("idle_stop must be longer than zero", None),
        time if time > LONGEST => wrong("idle_stop must be at most a year", None),
        _ if settings(table, server).state == ServerState::Process => wrong(
            "idle_stop would discard the state of a stateful server",
            Some("remove one of the two settings"),
        ),
        time => Ok(Some(time)),
    }
}

/// The server's policy with what has a short name.
pub(super) fn settings(table: &ServerTable, server: &Node) -> Settings {
    let mut settings = table.policy;
    let time = |millis: Option<u64>, place: &mut Duration| {
        if let Some(millis) = millis {
            *place = Duration::from_millis(millis);
        }
    };
    time(table.quiet_limit, &mut settings.call.limit);
    if table.quiet_limit.is_some() && in_policy(server, "call.cap").is_none() {
        // With a limit that was asked for, a cap that was not must not stand in the way.
        settings.call.cap = settings.call.cap.max(settings.call.limit);
    }
    time(table.hang_after, &mut settings.call.hang_after);
    time(table.abandoned_after, &mut settings.call.abandoned_after);
    time(table.wait, &mut settings.call.wait_for_line);
    time(table.start_timeout, &mut settings.dial.start);
    time(table.handshake_timeout, &mut settings.dial.handshake);
    time(table.keepalive, &mut settings.probe.keepalive);
    // A configuration that says how often a server is asked wants it asked, also one at a URL.
    settings.probe.over_http |= table.keepalive.is_some();
    time(table.crash_grace, &mut settings.close.crash);
    time(table.close_timeout, &mut settings.close.term);
    if let Some(tree) = table.tree {
        settings.close.tree = tree;
    }
    if let Some(reasons) = table.retry_on {
        settings.retry_on = reasons;
    }
    if let Some(trust) = table.trust_annotations {
        settings.trust_annotations = trust;
    }
    if let Some(state) = table.state {
        settings.state = state;
    }
    if let Some(bytes) = table.max_message {
        settings.limits.message = bytes;
    }
    if let Some(calls) = table.in_flight {
        settings.limits.in_flight = calls;
    }
    settings
}

#[cfg(test)]
mod tests {
    use crate::config::{Problem, load};
    use std::time::Duration;

    fn durable(settings: &str) -> Result<Option<Duration>, Box<Problem>> {
        let text = format!("[servers.a]\ncommand='x'\n{settings}");
        let config = load("test", &text, &|_| None)?;
        let entry = &config.servers[0];
        assert_eq!(config.durable_kept(), entry.durable);
        assert_eq!(entry.is_open(), entry.durable.is_none(), "whoever asks is looked at");
        Ok(entry.durable)
    }

    #[test]
    fn outcomes_are_kept_where_that_is_said_and_for_how_long() {
        assert_eq!(durable("").unwrap(), None);
        assert_eq!(durable("durable=false").unwrap(), None);
        assert_eq!(durable("durable=true").unwrap(), Some(Duration::from_secs(3600)));
        let day = durable("durable=true\ndurable_kept='1d'\nscope='identity'").unwrap();
        assert_eq!(day, Some(Duration::from_secs(86_400)));
        for (wrong, line) in [
            ("durable_kept='1h'", 3),
            ("durable=true\ndurable_kept='9s'", 4),
            ("durable=true\ndurable_kept='31d'", 4),
            ("scope='session'\ndurable=true", 4),
        ] {
            assert_eq!(durable(wrong).unwrap_err().line(), line, "{wrong}");
        }
    }
}
