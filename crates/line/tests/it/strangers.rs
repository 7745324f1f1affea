//! A server that is restarted behind a process that lives on (S38), or behind its address (H27): whoever comes next is a
//! stranger to it.

use std::time::Duration;

use linetender::{Answer, CallError, CallErrorKind, Eras, Line, Raw, Server, StdioServer};
use linetender_badserver::Book;
use linetender_core::{Delivery, RetryOn, ServerRefusal, ServerState};

use crate::kit::Dir;
use crate::look::{badserver, eventually, in_time, kill, lives, policy};

/// A server behind a shell that starts it again and again on the same pipes.
struct Wrapped {
    line: Line,
    book: Book,
    _dir: Dir,
}

fn wrapped(flags: &str, change: impl FnOnce(StdioServer) -> StdioServer) -> Wrapped {
    let dir = Dir::new();
    let book = Book::at(dir.file("book"));
    let server = format!("{} --careful --era legacy --book {} {flags}", badserver(), book.path().display());
    let script = format!("while true; do {server}; done");
    let server = Server::stdio("bad", ["sh", "-c", &script]).reaper(badserver()).eras(Eras::Auto);
    let server = server.policy(policy(|settings| settings.state = ServerState::None));
    Wrapped { line: Line::open(change(server)), book, _dir: dir }
}

impl Wrapped {
    async fn call(&self, tool: &str, nonce: &str) -> Result<Answer, CallError> {
        let arguments = format!(r#"{{"nonce":"{nonce}"}}"#);
        in_time(self.line.call_tool(tool, Raw(&arguments))).await
    }

    /// The server itself, below the shell.
    async fn server(&self) -> i32 {
        self.call("pid", "-").await.unwrap().text().parse().unwrap()
    }

    /// Kills the server below the shell, and waits until there is another.
    async fn is_restarted(&self) {
        let (server, starts) = (self.server().await, self.book.writers().len());
        kill("-9", server);
        eventually(|| (!lives(server) && self.book.writers().len() > starts).then_some(())).await;
    }

    /// How often a call ran.
    fn runs(&self, nonce: &str) -> u32 {
        self.book.runs().get(nonce).copied().unwrap_or_default()
    }

    /// Waits until the present connection has given its lists.
    async fn lists_are_read(&self) {
        in_time(async {
            while self.line.catalogue().await.unwrap().generation != self.line.status().generation {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn s38_a_server_restarted_behind_a_shell_is_initialized_again_on_the_same_pipe() {
    for code in [-32602, -32002, -32600] {
        let wrapped = wrapped(&format!("--strangers {code}"), |server| {
            server.policy(policy(|settings| {
                settings.state = ServerState::None;
                // What follows sooner is a new start of the shell too.
                settings.dial.gap = Duration::from_millis(1);
            }))
        });
        wrapped.lists_are_read().await;
        let shell = eventually(|| wrapped.line.pid()).await;
        for round in 1..=3 {
            wrapped.is_restarted().await;
            let nonce = format!("after-{round}");
            let answer = wrapped.call("write", &nonce).await.unwrap();
            assert!(answer.text().contains(&nonce), "{code}: {}", answer.raw());
            assert_eq!(wrapped.runs(&nonce), 1, "{code}: executed once");
            wrapped.lists_are_read().await;
        }
        assert_eq!(wrapped.line.pid(), Some(shell), "{code}: the process that lived on was left alone");
        assert_eq!(wrapped.line.status().generation, 4);
        in_time(wrapped.line.close()).await;
        assert!(!lives(shell));
    }
}

#[tokio::test]
async fn s38_calls_in_flight_when_the_server_died_end_when_that_is_found_out() {
    let wrapped = wrapped("--strangers -32602", |server| server);
    wrapped.lists_are_read().await;
    let server = wrapped.server().await;
    let (line, starts) = (wrapped.line.clone(), wrapped.book.writers().len());
    let hangs = tokio::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"in-flight"}"#)).await });
    eventually(|| wrapped.book.arrivals().contains(&"in-flight".to_owned()).then_some(())).await;
    kill("-9", server);
    eventually(|| (wrapped.book.writers().len() > starts).then_some(())).await;
    wrapped.call("write", "next").await.unwrap();
    let error = in_time(hangs).await.unwrap().unwrap_err();
    assert!(matches!(error.delivery, Delivery::Unknown(_)), "{error}");
    assert!(error.cause.contains("restarted without the MCP handshake"), "{error}");
}

#[tokio::test]
async fn s38_without_permission_the_call_is_refused_and_not_sent_again() {
    let wrapped = wrapped("--strangers -32602", |server| {
        server.policy(policy(|settings| {
            settings.state = ServerState::None;
            settings.retry_on = RetryOn::NOT_EXECUTED;
        }))
    });
    wrapped.lists_are_read().await;
    wrapped.is_restarted().await;
    let error = wrapped.call("write", "once").await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::ServerRefused);
    assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::SessionLost));
    assert!(!error.to_string().contains("retrying it is safe"), "{error}");
    wrapped.call("write", "twice").await.unwrap();
    assert_eq!((wrapped.runs("once"), wrapped.runs("twice")), (0, 1));
}

#[tokio::test]
async fn s38_an_agent_that_used_the_servers_memory_is_told_that_it_is_gone() {
    let wrapped = wrapped("--strangers -32602", |server| {
        server.policy(policy(|settings| settings.state = ServerState::Unknown))
    });
    wrapped.lists_are_read().await;
    wrapped.call("write", "uses").await.unwrap();
    wrapped.is_restarted().await;
    let error = wrapped.call("write", "lost").await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::ContextReplaced, "{error}");
    assert_eq!(wrapped.runs("lost"), 0);
}

/// A server may answer with such an error for reasons of its own.
#[tokio::test]
async fn s38_an_error_of_a_server_that_gives_its_lists_is_its_own() {
    let wrapped = wrapped("--strangers -32602", |server| server);
    wrapped.lists_are_read().await;
    for n in 0..3 {
        let error = wrapped.call("invalid", "own").await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::ErrorAnswer, "{n}: {error}");
        assert_eq!(error.delivery, Delivery::Answered);
    }
    assert_eq!(wrapped.line.status().generation, 1);
}
