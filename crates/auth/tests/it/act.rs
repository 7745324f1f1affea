//! This test binary as another process that holds a line to the server: it asks for keys as the line does.
//!
//! It is told what to do by lines on its standard input, and answers each with a line that begins with `ACT `.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use linetender::{Key, Keys as _, Line, NoKey, Refused, Server};
use linetender_auth::{Client, LoginKeys, Store};
use serde_json::{Value, json};

use crate::provider::{Provider, asker, call};

const SERVER: &str = "LINETENDER_AUTH_ACT_SERVER";
const FOLDER: &str = "LINETENDER_AUTH_ACT_FOLDER";

/// Another process.
pub(crate) struct Actor {
    pub(crate) child: Child,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    pub(crate) fn start(provider: &Provider, faults: Option<&Path>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "act::as_another_process", "--nocapture", "--test-threads=1"]);
        command.env(SERVER, &provider.at.mcp).env(FOLDER, &provider.folder);
        if let Some(faults) = faults {
            command.env("LINETENDER_TEST_FAULTS", faults);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut actor = Self { child, answers };
        assert_eq!(actor.answer(), Some(json!("ready")));
        actor
    }

    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
    }

    /// What it answers; `None` if it is dead.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some((_, answer)) = line.split_once("ACT ") {
                return Some(serde_json::from_str(answer).unwrap());
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test: what [`Actor`] runs.
#[test]
fn as_another_process() {
    let (Ok(server), Ok(folder)) = (std::env::var(SERVER), std::env::var(FOLDER)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Store::open(folder).unwrap();
    let keys = LoginKeys::new(&store, &server, Client::default(), "linetender login test").unwrap();
    let keys = Arc::new(keys.through(asker()));
    let mut held = None;
    say(&json!("ready"));
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (what, number) = line.split_once(' ').unwrap_or((&line, "1"));
        let number = number.parse().unwrap();
        let answer = match what {
            // Some calls at once, each with the key of before: refused once, they get another key.
            "calls" => runtime.block_on(calls(&keys, &server, number)),
            "key" => runtime.block_on(async {
                let key = keys.clone().key(None).await;
                json!(key.map(|key| key.is_some()).map_err(|no| words(&no)))
            }),
            // The same through a line, as programs have them.
            "line" => runtime.block_on(async {
                let open = || Line::open(Server::http("protected", &server).keys(keys.clone()));
                through(held.get_or_insert_with(open), number).await
            }),
            "state" => json!(held.as_ref().map(|line: &Line| format!("{:?}", line.status().state))),
            other => panic!("{other}?"),
        };
        say(&answer);
    }
}

async fn through(line: &Line, number: usize) -> Value {
    let mut calling = tokio::task::JoinSet::new();
    for number in 0..number {
        let line = line.clone();
        calling.spawn(async move {
            let called = line.call_tool("echo", json!({ "number": number })).await;
            called.map_or_else(|error| error.to_string(), |_| "done".to_owned())
        });
    }
    json!(calling.join_all().await)
}

fn say(answer: &Value) {
    println!("ACT {answer}");
    std::io::stdout().flush().unwrap();
}

fn words(no: &NoKey) -> Value {
    match no {
        NoKey::Login { words } => json!({ "login": words.as_str() }),
        NoKey::Later { words, .. } => json!({ "later": words.as_str() }),
    }
}

async fn calls(keys: &Arc<LoginKeys>, server: &str, number: usize) -> Value {
    let key = match keys.clone().key(None).await {
        Ok(key) => key,
        Err(no) => return json!([words(&no)]),
    };
    let mut calling = tokio::task::JoinSet::new();
    for _ in 0..number {
        let (keys, server, key) = (keys.clone(), server.to_owned(), key.clone());
        calling.spawn(async move { one(keys, &server, key).await });
    }
    json!(calling.join_all().await)
}

async fn one(keys: Arc<LoginKeys>, server: &str, key: Option<Key>) -> Value {
    let send = async |key: Option<&Key>| {
        let headers = key.map(|key| (*key.headers).clone()).unwrap_or_default();
        call(server, &headers).await
    };
    let reply = send(key.as_ref()).await;
    if reply.status != 401 {
        return json!(reply.status.as_u16());
    }
    let challenge = reply.headers["www-authenticate"].to_str().unwrap().into();
    match keys.key(Some(Refused { key, status: 401, challenge })).await {
        Ok(key) => json!(send(key.as_ref()).await.status.as_u16()),
        Err(no) => words(&no),
    }
}
