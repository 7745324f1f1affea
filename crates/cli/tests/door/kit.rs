//! The door: `linetender run` as a process, an agent in front of it, and the server's own book behind.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use linetender::Era;
use linetender_badserver::{Asked, Book, Failure, History};
use serde_json::{Value, json};

use crate::agent::{Agent, LINETENDER};
use crate::look::{Dir, eventually, unique};
use crate::told::{assert_full, told};

mod end;

/// The variable that everything has which a door has started.
const MARK: &str = "LINETENDER_DOOR";

const META: &str = "io.modelcontextprotocol/";
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A shim under test. Each call's id is its nonce, so that what the agent was told can be held against the book.
pub struct Door {
    agent: Agent,
    pub era: Era,
    pub dir: Dir,
    pub book: Book,
    mark: String,
    start: Instant,
    history: History,
    /// What was asked and has no answer yet.
    open: BTreeSet<String>,
    /// Answers that nobody has looked at yet, as they were spelt.
    answers: BTreeMap<String, String>,
    /// What was said by itself, notifications and questions.
    heard: Vec<Value>,
    /// How often the list of tools really changed.
    pub changes: u32,
    number: u32,
}

/// Does this in both eras, at the same time: much of it is waiting.
pub fn in_both_eras(test: impl Fn(Era) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for era in [Era::Legacy, Era::Modern] {
            scope.spawn(move || test(era));
        }
    });
}

/// The word for an era on a badserver's command line.
pub fn word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

impl Door {
    /// In front of a badserver of the agent's own era, and greeted.
    pub fn bad(era: Era, flags: &[&str]) -> Self {
        let mut door = Self::script(era, "exec \"$@\"", flags);
        door.greets();
        door
    }

    /// The same, started by a shell that does this first; `$@` is the badserver. Not greeted yet.
    pub fn script(era: Era, script: &str, flags: &[&str]) -> Self {
        Self::set(era, &[], script, flags)
    }

    /// In front of a badserver, with these flags of its own, and greeted.
    pub fn timed(era: Era, run: &[&str]) -> Self {
        let mut door = Self::set(era, run, "exec \"$@\"", &[]);
        door.greets();
        door
    }

    pub fn set(era: Era, run: &[&str], script: &str, flags: &[&str]) -> Self {
        let dir = Dir::new();
        let book = dir.file("book").display().to_string();
        let server =
            ["--", "sh", "-c", script, "sh", LINETENDER, "__badserver", "--era", word(era), "--book", &book];
        Self::open(era, &[run, &server, flags].concat(), &[], dir)
    }

    /// In front of whatever these words name, with these variables. Not greeted yet.
    pub fn open(era: Era, words: &[&str], variables: &[(&str, &str)], dir: Dir) -> Self {
        let mark = unique();
        let mut shim = Command::new(LINETENDER);
        let shim = shim.env("XDG_STATE_HOME", dir.path()).env("XDG_RUNTIME_DIR", dir.path());
        let shim = shim.args(["run", "--no-memory", "--name", "bad", "--log"]).arg(dir.file("log"));
        let shim = shim.args(words).current_dir(dir.path()).env(MARK, &mark).envs(variables.iter().copied());
        let agent = Agent::of_command(shim);
        Self {
            agent,
            era,
            book: Book::at(dir.file("book")),
            dir,
            mark: format!("{MARK}={mark}"),
            start: Instant::now(),
            history: History::default(),
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            heard: Vec::new(),
            changes: 0,
            number: 0,
        }
    }

    /// Says hello in its own era, and what came of that.
    pub fn greet(&mut self) -> Value {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = match self.era {
            Era::Legacy => self.ask("initialize", hello),
            Era::Modern => self.ask("server/discover", json!({})),
        };
        serde_json::from_str(&answer).unwrap()
    }

    /// Says hello, and is greeted.
    pub fn greets(&mut self) {
        let answer = self.greet();
        assert!(answer["result"].is_object(), "{answer}");
        if self.era == Era::Legacy {
            self.agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
    }

    /// Params as the agent's era wants them.
    fn params(&self, mut params: Value) -> Value {
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({});
            params["_meta"][format!("{META}clientInfo")] = json!({ "name": "t", "version": "1" });
        }
        params
    }

    pub fn send(&mut self, id: &str, method: &str, params: Value) {
        let params = self.params(params);
        self.open.insert(id.to_owned());
        self.agent.send(&json!(id), method, &params);
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.agent.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Anything but a call of a tool, and its answer as it was spelt.
    pub fn ask(&mut self, method: &str, params: Value) -> String {
        self.number += 1;
        let id = format!("{method} {}", self.number);
        self.send(&id, method, params);
        self.answer_text(&id)
    }

    /// A call of a tool, whose answer comes later. Its nonce goes into the arguments.
    pub fn begin(&mut self, nonce: &str, tool: &str, mut arguments: Value) {
        arguments["nonce"] = nonce.into();
        let asked = Asked { at: self.start.elapsed(), safe: false, told: None };
        assert!(self.history.calls.insert(nonce.to_owned(), asked).is_none(), "{nonce} is used twice");
        self.send(nonce, "tools/call", json!({ "name": tool, "arguments": arguments }));
    }

    /// So many calls at once: their nonces.
    pub fn begin_all(&mut self, count: u32, tool: &str, arguments: Value) -> Vec<String> {
        let nonces: Vec<_> = (0..count).map(|number| format!("n{number}")).collect();
        for nonce in &nonces {
            self.begin(nonce, tool, arguments.clone());
        }
        nonces
    }

    /// The one outcome of what was asked under this id.
    pub fn answer(&mut self, id: &str) -> Value {
        serde_json::from_str(&self.answer_text(id)).unwrap()
    }

    fn answer_text(&mut self, id: &str) -> String {
        loop {
            if let Some(answer) = self.answers.remove(id) {
                return answer;
            }
            let text = self.agent.hear_text();
            self.take_in(text);
        }
    }

    /// Whatever comes from the shim is one of three: an answer that is waited for, a notification, a question.
    fn take_in(&mut self, text: String) {
        let message: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("not a message: {text}"));
        if message.get("method").is_some() {
            self.history.changes += u32::from(message["method"] == LIST_CHANGED);
            return self.heard.push(message);
        }
        let id = message["id"].as_str().unwrap_or_else(|| panic!("whose is this? {text}")).to_owned();
        assert!(self.open.remove(&id), "a second outcome, or one that nobody asked for: {text}");
        let told = told(&message);
        if message.get("error").is_some() && told.is_ok() {
            // The server's own error says nothing of whether the call ran: there is nothing to hold against the book.
            self.history.calls.remove(&id);
        } else if let Some(asked) = self.history.calls.get_mut(&id) {
            asked.told = Some((self.start.elapsed(), told));
        }
        self.answers.insert(id, text);
    }

    pub fn call(&mut self, nonce: &str, tool: &str, arguments: Value) -> Value {
        self.begin(nonce, tool, arguments);
        self.answer(nonce)
    }

    /// A call that the server answers itself.
    pub fn answers(&mut self, nonce: &str, tool: &str, arguments: Value) -> Value {
        let answer = self.call(nonce, tool, arguments);
        assert!(told(&answer).is_ok(), "{answer}");
        answer
    }

    /// A call that fails, in full.
    pub fn fails(&mut self, nonce: &str, tool: &str, arguments: Value) -> Failure {
        assert_full(&self.call(nonce, tool, arguments))
    }

    /// The call that is under way fails, in full.
    pub fn failed(&mut self, nonce: &str) -> Failure {
        assert_full(&self.answer(nonce))
    }

    /// The next call works: twice, for the first may be what finds out.
    pub fn works(&mut self) {
        for _ in 0..2 {
            self.number += 1;
            let nonce = format!("works-{}", self.number);
            let answer = self.answers(&nonce, "echo", json!({}));
            let text = answer["result"]["content"][0]["text"].as_str();
            assert!(text.is_some_and(|text| text.contains(&nonce)), "{answer}");
        }
    }

    /// Calls until one works: a call that a line refuses meanwhile is refused in full.
    pub fn works_again(&mut self) {
        eventually("a call that works", || {
            self.number += 1;
            let answer = self.call(&format!("again-{}", self.number), "echo", json!({}));
            if told(&answer).is_err() {
                assert_full(&answer);
            }
            answer["result"]["isError"].is_null().then_some(answer.get("result")?).map(drop)
        });
        self.works();
    }

    /// Takes a call back. It gets no outcome, not even a late one.
    pub fn cancel(&mut self, nonce: &str) {
        self.notify("notifications/cancelled", &json!({ "requestId": nonce }));
        self.open.remove(nonce);
        self.history.calls.remove(nonce);
    }

    /// The agent will go without this answer; should it come all the same, that is no harm.
    pub fn abandons(&mut self, nonce: &str) {
        self.history.calls.remove(nonce);
    }

    /// Asks to hear of changes of the list of tools, as a modern agent has to.
    pub fn listens(&mut self) {
        let params = self.params(json!({ "notifications": { "toolsListChanged": true } }));
        self.agent.send(&json!("listen"), "subscriptions/listen", &params);
        self.hears("notifications/subscriptions/acknowledged");
    }

    /// Waits until the server has written down that it runs this.
    pub fn running(&self, nonce: &str) {
        eventually("a call that runs", || self.book.runs().contains_key(nonce).then_some(()));
    }

    pub fn running_all(&self, nonces: &[String]) {
        for nonce in nonces {
            self.running(nonce);
        }
    }

    /// Waits until the agent hears this, and what it says.
    pub fn hears(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
                return self.heard.remove(at);
            }
            let text = self.agent.hear_text();
            self.take_in(text);
        }
    }

    /// True if this has been heard already.
    pub fn has_heard(&self, method: &str) -> bool {
        self.heard.iter().any(|message| message["method"] == method)
    }

    /// How long a call took to be told anything.
    pub fn took(&self, nonce: &str) -> Duration {
        let asked = &self.history.calls[nonce];
        asked.told.as_ref().unwrap().0.saturating_sub(asked.at)
    }
}
