//! One connection to a simulated host.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use super::http1::{self, Request};
use super::manners::{Manners, Own, Unknown};
use super::refusals::MOVED;
use super::{House, Web, lock};
use crate::habits::{OnDiscover, Speaks};
use crate::mcp::{self, Reply};
use crate::net::End;
use crate::rng::Rng;

pub(super) const JSON: (&str, &str) = ("content-type", "application/json");
pub(super) const SESSION: &str = "mcp-session-id";

/// How long a stream of a modern host lasts.
const LISTENS: Duration = Duration::from_secs(90);

/// A connection, while it lasts.
pub(super) struct Served {
    pub(super) web: Arc<Web>,
    end: End,
    pub(super) rng: Rng,
    /// What was read beyond the last request.
    buffer: Vec<u8>,
    pub(super) manners: Manners,
}

/// What comes back for a call.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Says {
    Result,
    Refusal,
    Nothing,
    Cut,
}

pub(super) async fn serve(web: Arc<Web>, end: End, rng: Rng) {
    let manners = web.manners();
    let mut served = Served { web, end, rng, buffer: Vec::new(), manners };
    while let Some(request) = http1::request(&mut served.end, &mut served.buffer).await {
        served.web.running().await;
        served.manners = served.web.manners();
        if served.answer(&request).await.is_none() {
            return;
        }
    }
}

impl Served {
    /// `None`: the connection is over.
    async fn answer(&mut self, request: &Request) -> Option<()> {
        let message: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or(&request.method).to_owned();
        lock(&self.web.house).requests.push(method);
        match request.method.as_str() {
            "POST" => self.post(&message, request).await,
            "GET" => self.own_stream(request).await,
            _ => self.whole(200, &[], "").await,
        }
    }

    pub(super) async fn whole(&mut self, status: u16, headers: &[(&str, &str)], body: &str) -> Option<()> {
        http1::respond(&mut self.end, status, headers, body).await.then_some(())
    }

    async fn post(&mut self, message: &Value, request: &Request) -> Option<()> {
        let method = message["method"].as_str().unwrap_or_default();
        let (id, number) = (&message["id"], message["id"].as_u64());
        let session = request.headers.get(SESSION);
        let nonce = message["params"]["arguments"]["nonce"].as_str();
        if let Some(nonce) = nonce {
            self.web.scene.say(|| format!("the host read {nonce}"));
            self.web.scene.book().read(nonce, |session| self.web.knows(session, None));
        }
        if !self.manners.modern && method != "initialize" && method != "server/discover" {
            // The second hop of a redirect has the id of the first.
            let id = number.filter(|_| request.path != MOVED);
            let known = session.is_some_and(|session| self.web.knows(session, id));
            if !known {
                if let Some(nonce) = nonce {
                    self.refuse_unknown(nonce, session);
                }
                return self.refuse_session().await;
            }
        }
        if number.is_none() {
            return self.whole(202, &[], "").await;
        }
        if method == "tools/call" {
            return self.call(nonce.unwrap_or_default(), id, request).await;
        }
        if method == "subscriptions/listen" && self.manners.modern {
            self.web.open();
            return self.stream(LISTENS).await;
        }
        let speaks = if self.manners.modern { Speaks::Modern } else { Speaks::Legacy(OnDiscover::Refuses) };
        sleep(self.rng.millis(0, 3)).await;
        match mcp::reply(speaks, method) {
            Reply::Result(result) => {
                let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                let new = (method == "initialize").then(|| self.web.new_session());
                match &new {
                    Some(session) => self.whole(200, &[JSON, (SESSION, session)], &body).await,
                    None => self.whole(200, &[JSON], &body).await,
                }
            }
            Reply::Error(code, words) => {
                let error =
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": words } });
                self.whole(200, &[JSON], &error.to_string()).await
            }
            Reply::Silence | Reply::Exit => None,
        }
    }

    pub(super) async fn refuse_session(&mut self) -> Option<()> {
        let error =
            json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": "no session" } });
        let error = error.to_string();
        match self.manners.unknown {
            Unknown::NotFound => self.whole(404, &[JSON], &error).await,
            Unknown::BadRequest => self.whole(400, &[JSON], &error).await,
            Unknown::Unavailable => self.whole(503, &[], "no session").await,
        }
    }

    /// A call on a session that is gone. Hosts that break MCP's rule run it all the same.
    fn refuse_unknown(&mut self, nonce: &str, session: Option<&String>) {
        let runs = self.manners.refuses > 0 && self.rng.percent(50);
        let (now, mut book) = (self.web.scene.now(), self.web.scene.book());
        if runs {
            book.run(nonce, now, context(session));
        }
        book.session_gone(nonce, now);
        if self.manners.unknown != Unknown::Unavailable {
            book.refused(nonce, "session-lost");
        }
    }

    /// Whether the host runs a call, what it says and how long it takes are drawn apart from each other. It runs what it answers.
    async fn call(&mut self, nonce: &str, id: &Value, request: &Request) -> Option<()> {
        if self.rng.mille(self.manners.forgets) {
            self.web.forget_sessions();
        }
        let says = self.says();
        let runs = says == Says::Result || self.rng.percent(50);
        let takes_time = says == Says::Result || self.rng.percent(50);
        let (from, to) = if takes_time { self.manners.work } else { (0, 0) };
        let work = self.rng.millis(from, to);
        if self.hung_up_within(work).await && self.manners.modern {
            // MCP 2026-07-28, Streamable HTTP: closing the response stream is the cancellation.
            return None;
        }
        self.web.running().await;
        if self.rng.mille(self.manners.falls) {
            self.web.fall();
            std::future::pending::<()>().await;
        }
        if runs {
            self.web.scene.say(|| format!("the host runs {nonce}"));
            let context = context(request.headers.get(SESSION).filter(|_| !self.manners.modern));
            self.web.scene.book().run(nonce, self.web.scene.now(), context);
        }
        sleep(self.rng.millis(from / 2, to / 2 + u64::from(takes_time))).await;
        self.web.running().await;
        match says {
            Says::Result => {
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": mcp::called(nonce) }).to_string();
                if self.rng.percent(self.manners.events) {
                    self.answer_by_events(&answer).await
                } else {
                    self.answer_whole(&answer).await
                }
            }
            Says::Refusal => self.refuse(nonce, id, request).await,
            Says::Nothing => {
                self.hung_up_within(Duration::from_secs(100_000)).await;
                None
            }
            Says::Cut => None,
        }
    }

    fn says(&mut self) -> Says {
        let (before, _) = self.manners.cuts;
        let rates =
            [(self.manners.refuses, Says::Refusal), (self.manners.mute, Says::Nothing), (before, Says::Cut)];
        rates.into_iter().find(|(rate, _)| self.rng.mille(*rate)).map_or(Says::Result, |(_, says)| says)
    }

    async fn answer_whole(&mut self, answer: &str) -> Option<()> {
        let (_, middle) = self.manners.cuts;
        if !self.rng.mille(middle) {
            return self.whole(200, &[JSON], answer).await;
        }
        // The head promises more than ever comes.
        let half = self.rng.size(0, answer.len());
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let text = format!("{head}{}", &answer[..half]);
        let _ = tokio::io::AsyncWriteExt::write_all(&mut self.end, text.as_bytes()).await;
        None
    }

    async fn answer_by_events(&mut self, answer: &str) -> Option<()> {
        let (_, middle) = self.manners.cuts;
        let resumes = !self.manners.modern && self.rng.percent(50);
        let place = format!("{}", lock(&self.web.house).next_place());
        http1::events(&mut self.end).await.then_some(())?;
        if resumes {
            self.web.keep(&place, answer);
            http1::event(&mut self.end, Some(&place), "").await.then_some(())?;
        }
        if self.rng.mille(middle) {
            return None;
        }
        http1::event(&mut self.end, None, answer).await.then_some(())?;
        http1::over(&mut self.end).await.then_some(())
    }

    /// GET: what somebody missed, or a stream of the host's own.
    async fn own_stream(&mut self, request: &Request) -> Option<()> {
        if let Some(answer) = request.headers.get("last-event-id").and_then(|after| self.web.kept(after)) {
            http1::events(&mut self.end).await.then_some(())?;
            http1::event(&mut self.end, None, &answer).await.then_some(())?;
            return http1::over(&mut self.end).await.then_some(());
        }
        if self.manners.modern {
            return self.whole(405, &[], "").await;
        }
        if !request.headers.get(SESSION).is_some_and(|session| self.web.knows(session, None)) {
            return self.refuse_session().await;
        }
        self.web.open();
        match self.manners.own {
            Own::No => self.whole(405, &[], "").await,
            Own::Lasts(millis) => self.stream(Duration::from_millis(millis)).await,
        }
    }

    /// Says nothing on a stream for as long as it lasts, and ends it politely.
    async fn stream(&mut self, lasts: Duration) -> Option<()> {
        http1::events(&mut self.end).await.then_some(())?;
        if self.hung_up_within(lasts).await {
            return None;
        }
        http1::over(&mut self.end).await.then_some(())
    }

    /// Whether the other side goes away meanwhile.
    async fn hung_up_within(&mut self, time: Duration) -> bool {
        let reading = self.end.read_buf(&mut self.buffer);
        match tokio::time::timeout(time, reading).await {
            Ok(read) => !matches!(read, Ok(1..)),
            Err(_) => false,
        }
    }
}

/// The number of a session.
fn context(session: Option<&String>) -> Option<u64> {
    session?.rsplit_once('-')?.1.parse().ok()
}

impl House {
    fn next_place(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}
