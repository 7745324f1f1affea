use super::{Exit, Pipe, Seen};
use crate::redact::Redacted;
use linetender_core::{Class, Leaf};
use std::time::Duration;

fn text(text: &str) -> Redacted {
    Redacted::head(text, 100)
}

/// The table: what was seen, its class, and the words for it.
#[test]
fn each_sight_has_its_class_and_its_words() {
    let stderr = || text("boom");
    for (seen, class, words) in [
        (
            Seen::NotRunnable { program: text("npy"), searched: text("/bin"), reason: "no such file".into() },
            Class::Config,
            "cannot run npy: no such file (PATH searched: /bin)",
        ),
        (
            Seen::NotRunnable { program: text("./x"), searched: text(""), reason: "not executable".into() },
            Class::Config,
            "cannot run ./x: not executable",
        ),
        (
            Seen::NoDir { dir: text("/nowhere"), reason: "no such file".into() },
            Class::Config,
            "cannot enter the working directory /nowhere: no such file",
        ),
        (
            Seen::NoReaper { reason: "none on PATH".into() },
            Class::Config,
            "cannot start the reaper of the server process: none on PATH",
        ),
        (
            Seen::NotAServer { words: text("it repeats its input") },
            Class::Config,
            "the program is not an MCP server: it repeats its input",
        ),
        (
            Seen::Exited { exit: Exit::Status(137), stderr: stderr() },
            Class::Exit,
            "the server process exited with status 137 (SIGKILL, as a shell reports it)",
        ),
        (
            Seen::Exited { exit: Exit::Status(0xc000_0005_u32.cast_signed()), stderr: stderr() },
            Class::Exit,
            "the server process exited with status 0xc0000005 (access violation)",
        ),
        (
            Seen::NoSocket { reason: "too many files".into() },
            Class::Local,
            "this machine cannot open a connection: too many files",
        ),
        (
            Seen::NoProcess { reason: "too many files".into() },
            Class::Local,
            "this machine cannot start a process: too many files",
        ),
        (
            Seen::Exited { exit: Exit::Status(3), stderr: stderr() },
            Class::Exit,
            "the server process exited with status 3",
        ),
        (
            Seen::Exited { exit: Exit::Signal(9), stderr: stderr() },
            Class::Exit,
            "the server process was killed by signal 9 (SIGKILL)",
        ),
        (
            Seen::Exited { exit: Exit::Signal(40), stderr: stderr() },
            Class::Exit,
            "the server process was killed by signal 40",
        ),
        (
            Seen::Closed { what: Pipe::Stdin, stderr: stderr() },
            Class::Transport,
            "the server closed its stdin",
        ),
        (
            Seen::Closed { what: Pipe::Stdout, stderr: stderr() },
            Class::Transport,
            "the server closed its stdout",
        ),
        (Seen::ReaperDied, Class::Exit, "linetender's reaper process for this server was killed"),
        (Seen::Handshake { said: text("no") }, Class::Handshake, "the server rejected the MCP handshake: no"),
        (
            Seen::EndedOnProbe { exit: None },
            Class::EraProbe,
            "the server closed the connection during protocol version detection (server/discover)",
        ),
        (
            Seen::EndedOnProbe { exit: Some(Exit::Status(1)) },
            Class::EraProbe,
            "the server process exited with status 1 during protocol version detection (server/discover)",
        ),
        (Seen::Teardown { what: "kill: no".into() }, Class::Transport, "kill: no"),
    ] {
        assert_eq!(seen.to_string(), words);
        assert_eq!(seen.stderr().is_some(), matches!(seen, Seen::Exited { .. } | Seen::Closed { .. }));
        assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
    }
}

#[test]
fn each_sight_of_a_keeper_has_its_class_and_its_words() {
    for (seen, class, words) in [
        (
            Seen::LeaseOver,
            Class::Local,
            "this gateway's lease on the server ended, and the server was stopped",
        ),
        (Seen::OwnerGone, Class::Exit, "the linetender process that shares this server ended"),
        (Seen::OwnerLeft, Class::Local, "the linetender process that shares this server was replaced"),
        (Seen::NodeGone, Class::Local, "the gateway that runs this server ended or cannot be reached"),
        (Seen::NodeLeft, Class::Local, "the server moved to another gateway"),
        (
            Seen::NodeRefused { reason: "it is not here".to_owned() },
            Class::Local,
            "the gateway that runs this server refused: it is not here",
        ),
        (Seen::OwnerHangs, Class::Silent, "the linetender process that shares this server does not answer"),
    ] {
        assert_eq!(seen.to_string(), words);
        assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
    }
}

#[test]
fn each_sight_of_a_container_has_its_class_and_its_words() {
    for (seen, class, words) in [
        (
            Seen::NameTaken { name: text("mcp"), exit: Exit::Status(125), stderr: text("") },
            Class::Exit,
            "the container name mcp is in use by another container (the server process exited with status 125): stop and remove \
             that container, or let each start have a name of its own (no --name)",
        ),
        (
            Seen::CidfileRefused { stderr: text("") },
            Class::Local,
            "the container client could not write the file that linetender names with --cidfile; it is started without",
        ),
        (
            Seen::ContainerStays { id: "3f2a".into(), reason: text("permission denied") },
            Class::Transport,
            "container 3f2a of an earlier start may still run and cannot be ended: permission denied",
        ),
    ] {
        assert_eq!(seen.to_string(), words);
        assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
    }
}

#[test]
fn each_sight_over_http_has_its_class_and_its_words() {
    for (seen, class, words) in [
        (
            Seen::Unreachable { words: text("connect: refused"), config: false },
            Class::Transport,
            "the server is unreachable: connect: refused",
        ),
        (
            Seen::Unreachable { words: text("TLS: bad"), config: true },
            Class::Config,
            "the server is unreachable: TLS: bad",
        ),
        (
            Seen::Broken { words: text("response: connection reset") },
            Class::Transport,
            "HTTP transport error: response: connection reset",
        ),
        (
            Seen::Refused { words: text("connect: refused") },
            Class::Transport,
            "the server is unreachable: connect: refused",
        ),
        (
            Seen::NoSuchHost { words: text("name lookup: no") },
            Class::Transport,
            "the server is unreachable: name lookup: no",
        ),
        (Seen::Http { status: 502, words: text("") }, Class::Transport, "the server returned HTTP 502"),
        (
            Seen::Http { status: 500, words: text("oops") },
            Class::Transport,
            "the server returned HTTP 500: oops",
        ),
        (
            Seen::Unusable { words: text("no JSON") },
            Class::Protocol,
            "unexpected response from the server: no JSON",
        ),
        (Seen::SessionLost, Class::SessionLost, "the server no longer recognizes the MCP session"),
        (
            Seen::SessionNeverKnown,
            Class::SessionLost,
            "the server does not recognize the MCP session it has just created: behind a load balancer, check session \
             affinity (sticky sessions)",
        ),
        (
            Seen::NotInitialized { said: text("not initialized") },
            Class::SessionLost,
            "the server was restarted without the MCP handshake; it answered: not initialized",
        ),
        (Seen::NotMcp { head: text("<html>") }, Class::Config, "not an MCP endpoint; it returned: <html>"),
        (Seen::WantsAuth { challenge: text("") }, Class::Auth, "the server requires authentication"),
        (
            Seen::NeedsLogin { words: text("run `linetender login web`") },
            Class::Auth,
            "the server requires a login: run `linetender login web`",
        ),
        (
            Seen::NoKey { words: text("https://as.example does not answer"), after: None },
            Class::Transport,
            "no credentials for the server at the moment: https://as.example does not answer",
        ),
        (
            Seen::WantsAuth { challenge: text("Negotiate") },
            Class::Auth,
            "the server requires authentication: Negotiate",
        ),
        (
            Seen::Throttled { status: 503, after: None },
            Class::Overload,
            "the server asked to retry later (HTTP 503)",
        ),
        (
            Seen::Throttled { status: 429, after: Some(Duration::from_millis(1500)) },
            Class::Overload,
            "the server asked to retry in 2 s (HTTP 429)",
        ),
        (
            Seen::Internal { task: "reader" },
            Class::Transport,
            "internal error in linetender (reader panicked)",
        ),
        (
            Seen::OtherEra,
            Class::EraProbe,
            "the server does not support the protocol version that it was detected with",
        ),
    ] {
        assert_eq!(seen.to_string(), words);
        assert!(seen.stderr().is_none());
        assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
    }
}

#[test]
fn each_sight_of_an_event_stream_or_a_session_has_its_class_and_its_words() {
    for (seen, class, words) in [
        (Seen::StreamEnded { words: text("") }, Class::SessionLost, "the server closed its event stream"),
        (
            Seen::StreamEnded { words: text("connection reset") },
            Class::SessionLost,
            "the event stream of the server broke: connection reset",
        ),
        (
            Seen::BadEndpoint { words: text("another origin") },
            Class::Config,
            "the endpoint that the server names on its event stream cannot be used: another origin",
        ),
        (
            Seen::BadSession { words: text("9000 bytes") },
            Class::Config,
            "the session id that the server gave cannot be used: 9000 bytes",
        ),
    ] {
        assert_eq!(seen.to_string(), words);
        assert!(seen.cause().leaves().has(Leaf::Failed(class)), "{words}");
    }
}
