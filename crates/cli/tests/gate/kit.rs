//! `linetender serve` as a process, with a home of its own.

use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use linetender_badserver::Book;
use linetender_badserver::agent::Caller;
use serde_json::Value;

use crate::agent::{LINETENDER, PATIENCE};
use crate::look::{Dir, marked, unique};

/// The variable that everything has which a gateway has started.
const MARK: &str = "LINETENDER_GATE";

/// How long to wait before one looks again.
const GLANCE: Duration = Duration::from_millis(2);

/// A gateway's home: its config, its servers' book, and an address that stays the same.
pub struct Gate {
    pub dir: Dir,
    pub book: Book,
    pub web: Caller,
    mark: String,
}

/// It runs. Dropped, it is killed.
pub struct Serving(Child);

impl Gate {
    /// `{bad}` in a config stands for a server that writes into the book; what comes behind it on its line are its flags.
    pub fn new(config: &str) -> Self {
        let (dir, mark) = (Dir::new(), unique());
        let book = Book::at(dir.file("book"));
        let address = free();
        let bad = |flags: &str| {
            let flags: Vec<_> = flags.split_ascii_whitespace().map(|flag| format!(", '{flag}'")).collect();
            let flags = flags.concat();
            let book = book.path().display();
            format!(
                "command = '{LINETENDER}'\nargs = ['__badserver', '--book', '{book}'{flags}]\nenv = {{ {MARK} = '{mark}' }}"
            )
        };
        let line = |line: &str| line.strip_prefix("{bad}").map_or_else(|| line.to_owned(), bad) + "\n";
        let text: String = config.lines().map(line).collect();
        std::fs::write(dir.file("linetender.toml"), text).unwrap();
        Self { dir, book, web: Caller::at(address), mark: format!("{MARK}={mark}") }
    }

    fn linetender(&self) -> Command {
        let mut command = Command::new(LINETENDER);
        let (name, value) = self.mark.split_once('=').unwrap();
        command
            .env("XDG_STATE_HOME", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env(name, value);
        command
    }

    /// Starts it, and waits until every server is up.
    pub async fn serves(&self) -> Serving {
        let serving = Serving(
            self.linetender()
                .args(["serve", "--listen", &self.web.address.to_string(), "--config"])
                .arg(self.dir.file("linetender.toml"))
                .arg("--log")
                .arg(self.dir.file("log"))
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        );
        self.is_up().await;
        serving
    }

    pub async fn is_up(&self) {
        eventually("a gateway whose servers are up", async || {
            let ready = self.web.try_send(Method::GET, "/readyz", &[], String::new()).await.ok()?;
            let servers = ready.json().await["servers"].clone();
            servers.as_object()?.values().all(|state| state == "up").then_some(())
        })
        .await;
    }

    /// What `linetender status` says of a server. Others on this machine may hold lines too.
    pub fn status(&self, serving: &Serving, server: &str) -> Value {
        let output = self.linetender().args(["status", "--json"]).output().unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |list: &Value, is: &dyn Fn(&Value) -> bool| {
            list.as_array()
                .and_then(|list| list.iter().find(|one| is(one)).cloned())
                .unwrap_or_else(|| panic!("{all}"))
        };
        let holder = of(&all["holders"], &|holder| holder["pid"] == serving.pid());
        of(&holder["report"]["lines"], &|line| line["server"] == server)
    }

    /// Everything that it has started and that still runs, itself included.
    pub fn processes(&self) -> Vec<i32> {
        marked(&self.mark).into_iter().map(|(pid, _)| pid).collect()
    }

    /// Waits until nothing of it runs any more; for how long.
    pub async fn is_gone(&self) -> Duration {
        let begun = Instant::now();
        eventually("an end of all processes", async || self.processes().is_empty().then_some(())).await;
        begun.elapsed()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.file("log")).unwrap_or_default()
    }
}

impl Serving {
    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub async fn ended(&mut self) -> ExitStatus {
        eventually("an end", async || self.0.try_wait().unwrap()).await
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this finds, as soon as it finds it.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "in {PATIENCE:?} there was never {what}");
        tokio::time::sleep(GLANCE).await;
    }
}

/// An address where nobody listens now.
fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
