//! Servers that run a call and then say that they did not: what agents are told, and how often it ran.

use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};
use serde_json::{Value, json};

use crate::kit::{House, book, text};

const GENERATIONS: [Speaks; 2] = [Speaks::Legacy, Speaks::Modern];

/// Where agents call, and under which name.
const WAYS: [(&str, &str); 2] = [("/mcp", "it__"), ("/mcp/it", "")];

/// A gateway before a server over HTTP, and the server's own book.
struct Web {
    house: House,
    _server: WebServer,
    book: Book,
}

impl Web {
    async fn up(speaks: Speaks, more: &str) -> Self {
        let (book, manners) = (book(), Manners { speaks, ..Manners::default() });
        let config = Config { manners, book: Some(book.path().to_owned()), ..Config::default() };
        let server = WebServer::start(config).unwrap();
        let house = House::up(&format!("[servers.it]\nurl = '{}'\n{more}", server.url())).await;
        Self { house, _server: server, book }
    }

    /// Calls a tool as an agent of this generation.
    async fn call(&self, modern: bool, (path, prefix): (&str, &str), tool: &str, more: Value) -> Value {
        let mut params = json!({ "name": format!("{prefix}{tool}"), "arguments": more["arguments"] });
        if let Some(key) = more["key"].as_str() {
            params["_meta"] = json!({ "linetender/call": key });
        }
        if modern {
            return self.house.modern(path, "tools/call", params).await.last().await;
        }
        self.house.agent(path).await.request(1, "tools/call", params).await.last().await
    }

    fn ran(&self, nonce: &str) -> u32 {
        self.book.runs().get(nonce).copied().unwrap_or_default()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.book.path());
    }
}

/// A tool that runs and answers with a status, under no id.
fn runs_and_says(code: u16, nonce: &str) -> Value {
    json!({ "arguments": { "nonce": nonce, "code": code, "run": true } })
}

/// The verdict that an agent is told, and its reason.
fn told(answer: &Value) -> (&str, &str) {
    let fields = &answer["result"]["_meta"]["linetender"];
    (fields["delivery"].as_str().unwrap_or_default(), fields["reason"].as_str().unwrap_or_default())
}

/// Checks that a model is not invited to call again what may have run.
fn invites_nobody(answer: &Value) {
    let text = text(answer);
    for wrong in ["safe", "was not executed", "proof", "proven"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    assert!(text.contains("check for side effects before retrying it"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ran_and_was_refused_is_neither_sent_again_nor_called_not_executed() {
    for speaks in GENERATIONS {
        let web = Web::up(speaks, "").await;
        for modern in [false, true] {
            for way in WAYS {
                for (code, verdict) in [
                    (429, ("refused", "rate-limited")),
                    (413, ("refused", "too-large")),
                    (405, ("refused", "method-not-allowed")),
                    (403, ("unknown", "connection-lost")),
                    (503, ("unknown", "connection-lost")),
                ] {
                    let nonce = format!("{code}-{modern}-{}", way.1);
                    let answer = web.call(modern, way, "status", runs_and_says(code, &nonce)).await;
                    assert_eq!(told(&answer), verdict, "{speaks:?} {code}: {answer}");
                    assert_eq!(web.ran(&nonce), 1, "{speaks:?} {code}");
                    invites_nobody(&answer);
                    if verdict.0 == "refused" {
                        assert!(text(&answer).contains("linetender cannot check that"), "{answer}");
                    }
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_sent_again_after_429_where_the_file_permits_it() {
    for speaks in GENERATIONS {
        let web = Web::up(speaks, "retry_on = ['not-executed', 'rate-limited']").await;
        let answer = web.call(true, WAYS[0], "status", runs_and_says(429, "twice")).await;
        assert_eq!(told(&answer), ("refused", "rate-limited"), "{answer}");
        assert_eq!(web.ran("twice"), 2, "{speaks:?}: once more, and not for ever");
        invites_nobody(&answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_runs_a_call_and_then_has_lost_its_session_runs_it_once_where_only_counted_calls_are_sent_again()
 {
    for (retry_on, runs) in [("", 2), ("retry_on = ['not-executed']", 1), ("retry_on = []", 1)] {
        for (modern, way) in [(false, WAYS[0]), (true, WAYS[1])] {
            let web = Web::up(Speaks::Legacy, retry_on).await;
            let answer = web.call(modern, way, "deny", json!({ "arguments": { "nonce": "denied" } })).await;
            assert_eq!(told(&answer), ("refused", "session-lost"), "{retry_on}: {answer}");
            assert_eq!(web.ran("denied"), runs, "{retry_on}");
            invites_nobody(&answer);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_durable_call_that_was_refused_is_told_again_and_not_run_again() {
    for speaks in GENERATIONS {
        let web = Web::up(speaks, "durable = true").await;
        let mut call = runs_and_says(429, "kept");
        call["key"] = "k".into();
        let first = web.call(true, WAYS[0], "status", call.clone()).await;
        assert_eq!(told(&first), ("refused", "rate-limited"), "{first}");
        for (modern, way) in [(true, WAYS[1]), (false, WAYS[0])] {
            let again = web.call(modern, way, "status", call.clone()).await;
            assert_eq!(told(&again), told(&first), "{again}");
            invites_nobody(&again);
        }
        assert_eq!(web.ran("kept"), 1, "{speaks:?}");
    }
}
