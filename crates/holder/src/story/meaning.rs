//! What was seen of an end, in words for somebody who has never seen it, and what it usually means.

mod exits;

use crate::journal::Reason;
use linetender::visible;

/// What was seen, and what that usually means.
pub(super) struct Told {
    pub(super) what: String,
    pub(super) meaning: Vec<String>,
}

/// `served`: whether the server had come up before.
pub(super) fn of(cause: Option<&Reason>, served: bool) -> Told {
    let Some(reason) = cause else {
        return Told { what: "The journal does not say why it ended.".to_owned(), meaning: Vec::new() };
    };
    let what = sentence(&planned(reason).unwrap_or_else(|| reason.text.clone()));
    let mut meaning: Vec<String> = words(reason, served).into_iter().map(str::to_owned).collect();
    meaning.extend(reason.far_side.as_deref().map(far_side));
    Told { what, meaning }
}

/// Begins large, and ends with a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// What somebody wanted, if nothing else happened.
fn planned(reason: &Reason) -> Option<String> {
    let has = |leaf: &str| reason.leaves.iter().any(|other| other == leaf);
    if !reason.planned() {
        return None;
    }
    let words = if has("park") {
        "an operator parked the server: linetender stopped it on purpose"
    } else if has("redial") {
        "somebody asked for a fresh connection: linetender stopped the server to start it again"
    } else if has("recycle") {
        "linetender replaced the server by a fresh one, as it was asked or configured to"
    } else if has("idle-stop") {
        "nobody used the server for a while, or its configuration was changed, so linetender stopped it"
    } else if has("finished") {
        "the server ended by itself after its work, while nobody used it: linetender starts it with the next call"
    } else {
        return None;
    };
    Some(words.to_owned())
}

fn words(reason: &Reason, served: bool) -> Vec<&'static str> {
    if reason.planned() {
        return Vec::new();
    }
    match reason.seen.as_deref().unwrap_or_default() {
        "exited" | "ended-on-probe" => exits::words(reason, served),
        "not-runnable" => vec![
            "linetender could not even start the program that the configuration names. Usually its name is misspelt, it is not \
             installed, or it is installed in a folder that is not in the PATH of the program that started linetender.",
        ],
        "no-dir" => vec!["The configured working directory is missing or may not be entered."],
        "no-reaper" => {
            vec!["linetender runs each server under a small helper process, and could not start that."]
        }
        "not-a-server" => vec![
            "A program was started, but what it writes cannot be MCP, the protocol that agents and servers speak. Usually the \
             command or one of its arguments is wrong.",
        ],
        "no-process" | "no-socket" => vec![
            "This machine ran out of something (processes, open files, memory). That is not the server's fault.",
        ],
        "name-taken" => vec![
            "The command gives the container a fixed name (--name), and only one container can have it. Another window of the agent \
             has the same server, or a container of this name was stopped and not removed: without --rm it keeps its name.",
        ],
        "container-stays" => vec![
            "An earlier start left a container behind. linetender does not start a second one beside it, and could not end it: \
             usually the daemon does not run, or may not be used by this user.",
        ],
        "closed-pipe" => vec![
            "linetender talks to the server through its standard input and output. The server closed one of them although its \
             process still ran, so nothing could be said to it any more, and linetender killed what was left of it.",
        ],
        "reaper-died" => vec!["Somebody killed the helper process that linetender runs each server under."],
        "keeper-gone" => vec![
            "The server is shared (`run --share`): one linetender process, the keeper, runs it for all windows. That process was \
             killed or failed, and its servers went with it. Every window starts a new one together.",
        ],
        "keeper-left" => {
            vec!["The keeper, which runs shared servers for all windows, was replaced by a newer one."]
        }
        "keeper-hangs" => vec![
            "The keeper, which runs shared servers for all windows, did not answer any more, so it was killed and replaced.",
        ],
        "lease-over" => vec![
            "Several gateways share this server (`[fleet]`), and one of them runs it at a time, for as long as it can write that down \
             in NATS. This gateway could not any more, so it stopped the server in time for another gateway to start it.",
        ],
        "node-gone" => vec![
            "Several gateways share this server (`[fleet]`), and one of them runs it at a time. That gateway ended or cannot be \
             reached. Another one starts the server when it is certain that the first one has stopped it.",
        ],
        "node-left" => vec![
            "Several gateways share this server (`[fleet]`), and one of them runs it at a time. It was moved from one to another, \
             because a gateway joined or left.",
        ],
        "node-refused" => vec![
            "Several gateways share this server (`[fleet]`), and one of them runs it at a time. That gateway could not take the call; \
             its words above say why.",
        ],
        "handshake-rejected" => vec![
            "The server is there and answers, but refused to begin a session. Its words above say why; usually it is configured \
             wrongly or cannot reach something that it needs.",
        ],
        "start-timeout" => vec![
            "The server was started or connected to, and then said nothing at all. Usually it waits for something: a lock, a \
             download, another service, or input from a person.",
        ],
        "handshake-timeout" => vec![
            "The server said something, but did not finish the greeting with which every MCP session begins. Usually it waits \
             for something that it needs at its start, or what was started is no MCP server.",
        ],
        "probes-unanswered" => vec![
            "Nobody was using it, and it answered no health check (MCP ping), twice in a row. It hangs, was \
             suspended (SIGSTOP, Ctrl-Z), cannot be reached, or its machine is overloaded.",
        ],
        "hung" => vec![
            "Calls were waiting for it, and it sent nothing for a long time: no answer, no progress, no reply to health checks. \
             It hangs, or was suspended.",
        ],
        "abandoned" => vec![
            "Agents gave up waiting for their calls, and since then it answered nothing, not even health checks. It hangs, or was \
             suspended (SIGSTOP, Ctrl-Z).",
        ],
        other => over_http(other, reason),
    }
}

/// What linetender can end is the client.
fn far_side(client: &str) -> String {
    let client = visible::cut(client, 20);
    format!(
        "The command is `{client}`, which runs the server somewhere else. linetender ends `{client}`, and starts it again only when \
         that has ended; what it started on the other side may live on, unless it ends when its input is closed."
    )
}

fn over_http(seen: &str, reason: &Reason) -> Vec<&'static str> {
    match seen {
        "connection-refused" => vec![
            "The host is there, but no program listens at that address and port: the server is not running, or listens on \
             another port.",
        ],
        "no-such-host" => vec![
            "The name in the URL leads to no address. Usually it is misspelt, or this machine has no working DNS (network down, VPN \
             off).",
        ],
        "unreachable" if has(reason, &["certificate", "tls"]) => vec![
            "The encrypted connection (TLS) could not be made, so nothing was sent. Usually the server's certificate is expired, made \
             for another name, or signed by an authority that this machine does not trust; or the server speaks plain http://.",
        ],
        "unreachable" => vec!["No connection to the server could be made."],
        "connection-broken" => vec![
            "The connection was cut in the middle of an exchange. Usually the server crashed or was restarted, or a proxy between here \
             and there gave up.",
        ],
        "http-status" | "throttled" => status(reason.http.unwrap_or_default()),
        "unusable-response" => vec![
            "Something answered, but not with what MCP prescribes. Usually the URL leads to another program (a web page, a login \
             page, a proxy), or the server is broken.",
        ],
        "session-lost" => vec![
            "The server has forgotten the session that linetender had with it. Usually it was restarted. linetender opens a new \
             session by itself.",
        ],
        "session-never-known" => vec![
            "The server forgot the session at once. Usually several copies of it stand behind a load balancer, and requests of one \
             session reach different ones.",
        ],
        "not-initialized" => vec![
            "The server runs, but no longer knows that linetender is connected to it. Usually something restarted it behind its own \
             process (a watcher such as nodemon, a shell loop, a proxy). linetender repeats the handshake by itself.",
        ],
        "stream-ended" => vec![
            "The event stream ended on which the server sends all its answers (the HTTP+SSE transport). Usually the server was \
             restarted, or a proxy closed a stream that was quiet for too long. linetender opens a new one by itself.",
        ],
        "bad-endpoint" => vec![
            "The server speaks the HTTP+SSE transport, and tells its clients to send messages to a URL that linetender must not use. \
             Usually it stands behind a proxy and does not know its public URL.",
        ],
        "bad-session" => vec![
            "The server begins a session and gives an id for it that no client can send back: MCP allows visible ASCII characters only, \
             and linetender takes at most 4096 of them.",
        ],
        "not-mcp" => vec![
            "Something answers at this URL, but it is no MCP endpoint. Usually the path is wrong (many servers use /mcp), or the URL \
             leads to a web page.",
        ],
        "wants-auth" => {
            vec!["The server wants credentials, and none are configured or the configured ones were refused."]
        }
        "needs-login" => {
            vec!["Somebody has to log in once; linetender keeps and renews the login from then on."]
        }
        "no-key" => vec!["The credentials come from another program or server, and that did not give any."],
        "other-era" => {
            vec!["The server was updated or rolled back: it speaks another version of MCP than before."]
        }
        "internal" => {
            vec!["This is a bug in linetender. Please report it with the output of `linetender journal`."]
        }
        _ => Vec::new(),
    }
}

fn status(status: u16) -> Vec<&'static str> {
    match status {
        429 => vec!["The server gets more requests than it takes from you (a rate limit)."],
        403 => vec!["The server, or a proxy in front of it, forbids the request."],
        404 | 405 => vec![
            "The server does not know this path. Usually the path in the URL is wrong (many servers use /mcp).",
        ],
        502 | 504 => {
            vec!["A proxy answered instead of the server: the server behind it is down or too slow."]
        }
        503 => vec![
            "The server, or a proxy in front of it, says that it is not available at the moment: overloaded, or being updated.",
        ],
        500..=599 => vec!["The server was reached and failed on its side. Its own log says more."],
        400..=499 => vec!["The server refuses the request as it is sent."],
        _ => Vec::new(),
    }
}

fn has(reason: &Reason, words: &[&str]) -> bool {
    let text = reason.text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}
