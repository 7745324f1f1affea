//! What happens next by itself, and what somebody can do.

use serde::Serialize;

use super::{Death, Now};
use crate::journal::Reason;
use linetender::visible;

/// Something that somebody can do.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Advice {
    /// What, and why.
    pub text: String,
    /// What to type for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What happens if nobody does anything.
pub(super) fn next(now: &Now, failed: Option<&Death>) -> Vec<String> {
    if !now.live {
        return vec![
            "Nothing, until an agent uses it again (`linetender run`) or the gateway is started (`linetender serve`): then it is \
             started anew."
                .to_owned(),
        ];
    }
    let when = now.next_try.as_deref().unwrap_or("soon");
    vec![match now.state.as_str() {
        "up" | "suspect" if failed.is_some() => {
            "Nothing has to happen: it is in service. If it fails again, linetender restarts it by itself.".to_owned()
        }
        "up" | "suspect" => "Nothing has to happen: it is in service.".to_owned(),
        "idle" => "The next call starts it.".to_owned(),
        "dialing" => "linetender is starting it, or connecting to it, right now. If that fails, it tries again by itself.".to_owned(),
        _ if now.parked_by_operator => {
            "Nothing, until somebody wakes it: neither calls nor time bring it back. (A restart of linetender does.)".to_owned()
        }
        "parked" if now.misconfigured => format!(
            "The next start would most likely fail in the same way, so linetender tries only seldom: next {when}. A call may make it \
             try earlier."
        ),
        "parked" => format!(
            "linetender tries it again by itself {when}, and then at growing intervals of up to a few minutes, or up to an hour if it \
             has never answered. A call may make it try earlier, unless its login was refused. As soon as it works, it is in service \
             again."
        ),
        "needs-auth" => {
            format!("linetender connects by itself as soon as there are credentials. It also looks by itself {when}.")
        }
        "closed" => "Nothing: it was shut down on purpose.".to_owned(),
        _ if when.starts_with("in ") => format!("linetender tries it again by itself {when}."),
        _ => format!("linetender tries it again by itself ({when})."),
    }]
}

/// What somebody can do. `door`: how agents connect, which says where the configuration is.
pub(super) fn advice(server: &str, now: &Now, failed: Option<&Death>, door: &str) -> Vec<Advice> {
    let name = typed(server);
    let mut list = List(Vec::new());
    if now.parked_by_operator {
        list.with("Bring it back into service:", format!("linetender wake {name}"));
        return list.0;
    }
    if let Some(death) = failed {
        for_cause(&mut list, death, &Place { name: &name, door });
        if now.live && !now.serves() && !asked_to_wait(death) {
            list.with(
                "Once the cause is gone, try it at once instead of waiting:",
                format!("linetender redial {name}"),
            );
        }
    } else if now.live && now.state == "parked" {
        list.with("Try it at once:", format!("linetender redial {name}"));
    }
    if let (true, Some(pid)) = (now.health.is_some(), now.pid) {
        list.with(
            "See what the server is doing. T in the column STAT means that it is suspended; `kill -CONT PID` lets it go on:",
            format!("ps -o pid,stat,etime,args -p {pid}"),
        );
    }
    if failed.is_some() {
        list.with("See every change of its state:", format!("linetender journal --server {name}"));
    }
    list.0
}

/// Whether the server itself asked for time: a try before that would only make it worse.
fn asked_to_wait(death: &Death) -> bool {
    death.cause.as_ref().and_then(|cause| cause.seen.as_deref()) == Some("throttled")
}

/// Where the server's configuration is.
struct Place<'a> {
    name: &'a str,
    door: &'a str,
}

impl Place<'_> {
    /// Corrects something in it.
    fn correct(&self, what: &str) -> String {
        match self.door {
            "serve" => format!(
                "Correct {what} in the section [servers.{}] of linetender.toml; a running gateway reads the file again by itself.",
                self.name
            ),
            _ => format!(
                "Correct {what} behind `linetender run` in the agent's configuration, and restart the agent or its MCP connection."
            ),
        }
    }

    /// A flag of `run`, and what it is called in the file.
    fn raise(&self, flag: &str) -> String {
        match self.door {
            "serve" => format!("`{} = …` in [servers.{}]", flag.replace('-', "_"), self.name),
            _ => format!("`--{flag}` of `linetender run`"),
        }
    }
}

struct List(Vec<Advice>);

impl List {
    fn say(&mut self, text: impl Into<String>) {
        self.0.push(Advice { text: text.into(), command: None });
    }

    fn with(&mut self, text: impl Into<String>, command: impl Into<String>) {
        self.0.push(Advice { text: text.into(), command: Some(command.into()) });
    }
}

fn for_cause(list: &mut List, death: &Death, place: &Place<'_>) {
    let Some(cause) = &death.cause else { return };
    let up = death.served_millis.is_some();
    let http = cause.http.unwrap_or_default();
    match cause.seen.as_deref().unwrap_or_default() {
        "exited" | "ended-on-probe" => for_exit(list, death, place),
        "not-runnable" => {
            list.with(
                "See where the program is, with its name for PROGRAM. If nothing is printed, install it:",
                "command -v PROGRAM",
            );
            list.say(place.correct("the command (its full path always works)"));
        }
        "no-dir" => list.say(place.correct("the working directory")),
        "not-a-server" => list.say(place.correct("the command and its arguments")),
        "no-reaper" => list.with("See what is wrong with the installation:", "linetender doctor"),
        "no-process" | "no-socket" => {
            list.with(
                "See how much is in use, and stop what is not needed, or raise the limits:",
                "ulimit -a; free -m",
            );
        }
        "name-taken" | "container-stays" => for_container(list, cause, place),
        "closed-pipe" => list.say(
            "Update the server, or report it to its authors: a server must keep both open while it runs.",
        ),
        "handshake-rejected" => {
            list.say(place.correct("what the server complains of (arguments, variables)"));
        }
        "start-timeout" | "handshake-timeout" => {
            let flag = if cause.seen.as_deref() == Some("start-timeout") {
                "start-timeout"
            } else {
                "handshake-timeout"
            };
            list.say(by_hand(place));
            list.say(format!("If it only needs longer to start, raise {}.", place.raise(flag)));
        }
        "probes-unanswered" | "hung" | "abandoned" => {
            list.say(
                "See what the server does while it hangs: its own log, and what it waits for (network, disk, locks). If it was \
                 suspended, somebody sent it SIGSTOP or pressed Ctrl-Z.",
            );
            if cause.seen.as_deref() == Some("hung") {
                list.say(format!(
                    "If its tools are silent for long while they work, raise {}.",
                    place.raise("hang-after")
                ));
            }
        }
        "connection-refused" => {
            list.say("Start the server, or see why it does not run.");
            list.say(format!("If it listens at another address or port: {}", place.correct("the URL")));
        }
        "no-such-host" => {
            list.say("See whether this machine is online, and the VPN is up if the name needs one.");
            list.say(format!("If it is misspelt: {}", place.correct("the host name in the URL")));
        }
        "unreachable" if cause.leaves.iter().any(|leaf| leaf == "config") => {
            list.say(
                "See whether the server's certificate has expired or is for another name, and renew it.",
            );
            list.say(place.correct("the URL (https:// or http://, host name)"));
        }
        "unreachable" | "connection-broken" => {
            list.say("See whether the server was restarted, and look into its own log and into that of a proxy before it.");
        }
        "not-mcp" | "unusable-response" => {
            list.say(place.correct("the URL (the server's documentation says which path it uses)"));
        }
        "http-status" if matches!(http, 404 | 405) => list.say(place.correct("the path of the URL")),
        "http-status" if http == 403 => {
            list.say("Ask whoever runs the server to allow it, or use other credentials.");
        }
        "http-status" => list.say("Look into the log of the server, or ask whoever runs it."),
        "throttled" => list.say(format!(
            "Wait. If it happens often, ask for a higher limit, or send fewer calls at once ({}).",
            place.raise("in-flight")
        )),
        "stream-ended" => list.say(
            "If it happens often, see why the server restarts, or raise the read timeout of the proxy before it.",
        ),
        "bad-endpoint" => {
            list.say("Set the public URL in the settings of the server or of the proxy before it.");
            list.say(format!("If the server is at the other origin: {}", place.correct("the URL")));
        }
        "bad-session" => {
            list.say("Have the server changed: a session id is a short text of visible ASCII characters.");
        }
        "session-lost" | "not-initialized" => list.say("If it happens often, see why the server restarts."),
        "session-never-known" => {
            list.say("Configure the load balancer for session affinity (sticky sessions).");
        }
        "wants-auth" | "needs-login" => for_auth(list, &cause.text, place),
        "no-key" => list.say("See why the program, file or server that gives the credentials does not."),
        "internal" => list.say("Report it, with the output of the next command."),
        _ if !up => list.say(by_hand(place)),
        _ => {}
    }
}

fn for_container(list: &mut List, cause: &Reason, place: &Place<'_>) {
    if cause.seen.as_deref() == Some("name-taken") {
        list.with("See which container has the name, with `podman` for podman:", "docker ps --all");
        list.say(place.correct("the arguments (remove --name, and add --rm)"));
    } else {
        list.with("See whether the daemon answers, and what runs, with `podman` for podman:", "docker ps");
    }
}

fn for_exit(list: &mut List, death: &Death, place: &Place<'_>) {
    let Some(cause) = &death.cause else { return };
    let from_shell = cause.status.filter(|status| *status > 128).map(|status| status - 128);
    match (cause.signal.or(from_shell), cause.status) {
        (Some(9), _) => {
            list.with(
                "See whether the kernel killed it for want of memory:",
                "journalctl -k | grep -i 'killed process'",
            );
            list.say("If so, give the machine or the container more memory, or the server less to do.");
        }
        (Some(4 | 6 | 7 | 8 | 11), _) => {
            list.say("Update the server, or report the crash to its authors, with what it was asked to do.");
        }
        (Some(_), _) => {
            list.say("Find out who stops it: a person, a service manager, a container, a script.");
        }
        (None, Some(126 | 127)) => {
            list.say(by_hand(place));
            list.say(place.correct("the command"));
        }
        (None, Some(0 | 2)) if death.served_millis.is_none() => {
            list.say(place.correct("the command and its arguments"));
        }
        _ => {
            list.say(by_hand(place));
            if death.served_millis.is_none() {
                list.say(place.correct("what is missing (arguments, variables, credentials)"));
            }
        }
    }
}

fn for_auth(list: &mut List, text: &str, place: &Place<'_>) {
    // linetender said what to type; but a server's own words may stand there too, and are not to reach a shell.
    let harmless = |part: &&str| part.bytes().all(|byte| byte == b' ' || is_plain(byte));
    let said = text.split('`').filter(harmless).find(|part| part.starts_with("linetender login "));
    match (said, place.door) {
        (Some(command), _) => {
            list.with("If the server signs people in, log in once:", visible::cut(command, 300));
        }
        (None, "serve") => {
            list.with(
                "If the server signs people in, log in once:",
                format!("linetender login {}", place.name),
            );
        }
        (None, _) => list.with(
            "If the server signs people in, log in once, with its URL for URL:",
            "linetender login URL",
        ),
    }
    let header = match place.door {
        "serve" => format!("`headers` in [servers.{}]", place.name),
        _ => "`--header 'Authorization: Bearer $NAME'`".to_owned(),
    };
    list.say(format!("If it wants a fixed token, set that ({header})."));
}

fn by_hand(place: &Place<'_>) -> String {
    let command = match place.door {
        "serve" => format!("the command of [servers.{}] in linetender.toml", place.name),
        _ => "the command that stands behind `linetender run --` in the agent's configuration".to_owned(),
    };
    format!("Run the server by hand in a terminal, and see what it says: {command}.")
}

/// The name as it can be typed into a shell.
fn typed(name: &str) -> String {
    let shown = visible::line(name);
    if !shown.is_empty() && shown.bytes().all(is_plain) && !shown.starts_with('-') {
        return shown.into_owned();
    }
    format!("'{}'", shown.replace('\'', r"'\''"))
}

/// Whether a shell takes it as it is.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b':' | b'@')
}
