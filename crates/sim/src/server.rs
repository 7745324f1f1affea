//! A simulated MCP server on its pipes: it reads, runs and answers, each in its own time, and may die between any two.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use linetender_wire::Exit;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep, sleep_until};

use crate::habits::Habits;
use crate::mcp::{self, Reply};
use crate::pipe::{Reader, Writer};
use crate::process::{Blow, Member, Pipes, Process};
use crate::rng::Rng;
use crate::scene::Scene;

/// The most that is read at once.
const CHUNK: usize = 65_536;

/// A server, or what is left of one.
pub(crate) struct Server {
    scene: Arc<Scene>,
    process: Arc<Process>,
    rng: Rng,
    habits: Habits,
    stdin: Option<Reader>,
    stdout: Option<Writer>,
    stderr: Writer,
    /// What was read and is no whole line yet.
    buffer: Vec<u8>,
    agenda: BTreeMap<(Instant, u64), Act>,
    acts: u64,
    /// It reads nothing before that.
    reads_from: Instant,
    /// The ids that were used: none may be used twice.
    ids: BTreeSet<u64>,
    cancelled: BTreeSet<u64>,
    /// Counted as alive until it is dropped.
    _member: Member,
}

/// Something that it will do.
enum Act {
    Run { nonce: String, id: Value },
    Say { text: String, nonce: Option<String> },
    Die(Exit),
}

impl Server {
    pub(crate) fn new(scene: &Arc<Scene>, process: &Arc<Process>, pipes: Pipes, rng: Rng) -> Self {
        Self {
            scene: Arc::clone(scene),
            process: Arc::clone(process),
            rng,
            habits: scene.habits(),
            stdin: Some(pipes.stdin),
            stdout: Some(pipes.stdout),
            stderr: pipes.stderr,
            buffer: Vec::new(),
            agenda: BTreeMap::new(),
            acts: 0,
            reads_from: Instant::now(),
            ids: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            _member: Member::of(process),
        }
    }

    /// A grandchild: it holds the pipes, and when the server is gone it takes its place for as long as it is let live.
    pub(crate) async fn survive(self) -> Exit {
        self.process.leaderless.notified().await;
        self.live().await
    }

    pub(crate) async fn serve(mut self) -> Exit {
        let (from, to) = self.habits.start;
        sleep(self.rng.millis(from, to)).await;
        if self.rng.percent(self.habits.hang) {
            std::future::pending::<()>().await;
        }
        self.live().await
    }

    async fn live(mut self) -> Exit {
        loop {
            self.process.running().await;
            let due = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let reads = self.stdin.is_some() && !(self.habits.single && due.is_some());
            let ended = tokio::select! {
                biased;
                () = self.process.news.notified() => self.obey(),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.act().await,
                () = readable(self.stdin.as_ref(), self.reads_from), if reads => self.read().await,
            };
            if let Some(exit) = ended {
                return exit;
            }
        }
    }

    fn obey(&mut self) -> Option<Exit> {
        let wishes = std::mem::take(&mut *self.process.wishes.lock().unwrap_or_else(PoisonError::into_inner));
        for wish in wishes {
            match wish {
                Blow::CloseStdin => self.stdin = None,
                Blow::CloseStdout => self.stdout = None,
                Blow::Kill | Blow::KillReaper | Blow::Stop | Blow::Go => {}
            }
        }
        None
    }

    fn plan(&mut self, after: Duration, act: Act) {
        self.acts += 1;
        self.agenda.insert((Instant::now() + after, self.acts), act);
    }

    async fn act(&mut self) -> Option<Exit> {
        let (_, act) = self.agenda.pop_first()?;
        match act {
            Act::Run { nonce, id } => self.run(&nonce, &id),
            Act::Say { text, nonce } => return self.say(text, nonce).await,
            Act::Die(exit) => return Some(exit),
        }
        None
    }

    fn run(&mut self, nonce: &str, id: &Value) {
        if id.as_u64().is_some_and(|id| self.cancelled.contains(&id)) {
            return;
        }
        self.scene.say(|| format!("process {} runs {nonce}", self.process.pid));
        let context = u64::try_from(self.process.pid).ok();
        self.scene.book().run(nonce, self.scene.now(), context);
        let crash = self.habits.crash;
        if self.rng.mille(crash.after) {
            let wait = self.rng.millis(0, 3);
            return self.plan(wait, Act::Die(Exit::Signal(11)));
        }
        if self.rng.mille(self.habits.mute) {
            return;
        }
        let (from, to) = self.habits.work;
        let wait = self.rng.millis(from / 2, to / 2 + 1);
        let text = self.answer(nonce, id);
        self.plan(wait, Act::Say { text, nonce: Some(nonce.to_owned()) });
    }

    /// An answer as it should be, or nearly so.
    fn answer(&mut self, nonce: &str, id: &Value) -> String {
        let good = json!({ "jsonrpc": "2.0", "id": id, "result": mcp::called(nonce) }).to_string();
        if !self.rng.mille(self.habits.odd) {
            return good;
        }
        match self.rng.below(6) {
            0 => format!("{good}\n{good}"),
            1 => format!("{good}{good}"),
            2 => format!("listening on nothing\n{good}"),
            3 => json!({ "jsonrpc": "2.0", "id": id }).to_string(),
            4 => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } }).to_string(),
            _ => format!("{}\n{good}", json!({ "jsonrpc": "2.0", "id": 1_000_000, "result": {} })),
        }
    }

    async fn say(&mut self, text: String, nonce: Option<String>) -> Option<Exit> {
        let crash = self.habits.crash;
        let Some(stdout) = &mut self.stdout else { return None };
        let mut line = text.into_bytes();
        line.push(b'\n');
        if nonce.is_some() && self.rng.mille(crash.saying) {
            let half = self.rng.size(0, line.len());
            let _ = stdout.write_all(&line[..half]).await;
            self.process.tear();
            return Some(Exit::Status(3));
        }
        if stdout.write_all(&line).await.is_err() {
            // Nobody hears it any more; most servers die of that.
            return Some(Exit::Signal(13));
        }
        let nonce = nonce?;
        self.scene.say(|| format!("process {} answered {nonce}", self.process.pid));
        // After half a line of somebody else's, it is no line.
        if !self.process.is_torn() {
            self.scene.book().answered(&nonce, self.scene.now(), self.process.began);
        }
        self.rng.mille(crash.answered).then_some(Exit::Status(0))
    }

    async fn read(&mut self) -> Option<Exit> {
        let Some(stdin) = &self.stdin else { return None };
        let most = self.bite(stdin.peek(std::collections::VecDeque::len));
        let bytes = self.stdin.as_ref().map(|stdin| stdin.take(most)).unwrap_or_default();
        if bytes.is_empty() {
            return self.end_of_input();
        }
        self.buffer.extend_from_slice(&bytes);
        if self.rng.mille(self.habits.crash.reading) {
            let _ = self.stderr.write_all(b"fatal: simulated\n").await;
            return Some(Exit::Status(1));
        }
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            if let Some(exit) = self.hear(&line) {
                return Some(exit);
            }
        }
        if self.habits.eager
            && self.buffer.ends_with(b"}")
            && serde_json::from_slice::<Value>(&self.buffer).is_ok()
        {
            let line = std::mem::take(&mut self.buffer);
            // The break at the end of it can wait.
            self.reads_from = Instant::now() + self.rng.millis(0, 60);
            return self.hear(&line);
        }
        None
    }

    /// How much of what is there it takes: all, some, or all but the break at the end of a line.
    fn bite(&mut self, there: usize) -> usize {
        if !self.rng.percent(self.habits.nibbles) {
            return CHUNK;
        }
        if self.habits.eager && self.rng.percent(50) {
            return there.saturating_sub(1).max(1);
        }
        self.rng.size(1, 200)
    }

    /// Nothing more will come. What was read and is whole is run, with or without a break at its end.
    fn end_of_input(&mut self) -> Option<Exit> {
        self.stdin = None;
        let line = std::mem::take(&mut self.buffer);
        if let Some(exit) = self.hear(&line) {
            return Some(exit);
        }
        if self.habits.stubborn {
            return None;
        }
        let (_, longest) = self.habits.work;
        self.plan(Duration::from_millis(longest), Act::Die(Exit::Status(0)));
        None
    }

    fn hear(&mut self, line: &[u8]) -> Option<Exit> {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return None };
        let (Some(method), id) = (message["method"].as_str(), &message["id"]) else { return None };
        let Some(number) = id.as_u64() else {
            if method == "notifications/cancelled" {
                self.cancelled.extend(message["params"]["requestId"].as_u64());
            }
            return None;
        };
        if !self.ids.insert(number) {
            self.scene.book().wrongs.push(format!("the id {number} was used twice"));
        }
        if method == "tools/call" {
            return self.call(&message["params"], id);
        }
        if self.habits.hides_lists && method == "tools/list" {
            return None;
        }
        let wait = self.rng.millis(0, 3);
        let text = match mcp::reply(self.habits.speaks, method) {
            Reply::Result(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
            Reply::Error(code, message) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
                    .to_string()
            }
            Reply::Silence => return None,
            Reply::Exit => return Some(Exit::Status(2)),
        };
        self.plan(wait, Act::Say { text, nonce: None });
        None
    }

    fn call(&mut self, params: &Value, id: &Value) -> Option<Exit> {
        let nonce = params["arguments"]["nonce"].as_str().unwrap_or_default().to_owned();
        self.scene.say(|| format!("process {} read {nonce}", self.process.pid));
        self.scene.book().read(&nonce, |_| true);
        let crash = self.habits.crash;
        if self.rng.mille(crash.before) {
            let wait = self.rng.millis(0, 3);
            self.plan(wait, Act::Die(Exit::Signal(6)));
        }
        if self.rng.mille(self.habits.chatty) {
            let text = match self.rng.below(3) {
                0 => "plain words on stdout".to_owned(),
                1 => json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }).to_string(),
                _ => json!({ "jsonrpc": "2.0", "id": "q", "method": "ping" }).to_string(),
            };
            self.plan(Duration::ZERO, Act::Say { text, nonce: None });
        }
        let (from, to) = self.habits.work;
        let wait = self.rng.millis(from, to);
        self.plan(wait, Act::Run { nonce, id: id.clone() });
        None
    }
}

async fn readable(stdin: Option<&Reader>, from: Instant) {
    match stdin {
        Some(stdin) => {
            // Even no time at all would be a tick of the timer.
            if from > Instant::now() {
                sleep_until(from).await;
            }
            stdin.ready().await;
        }
        None => std::future::pending().await,
    }
}
