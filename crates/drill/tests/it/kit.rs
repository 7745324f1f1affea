//! Lines to badservers, and ways to look at what is left of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use linetender::{Answer, CallError, Era, Eras, Line, Policy, Server, Settings, Status};
use linetender_drill::Book;

/// Longer than anything here may take, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const BADSERVER: &str = env!("CARGO_BIN_EXE_badserver");

/// A line to a badserver, and the server's own book.
pub struct Bad {
    pub line: Line,
    pub book: Book,
    _dir: Dir,
}

/// A folder of the test's own.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-drill-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server with these flags; legacy, unless the flags say otherwise.
pub fn server(flags: &[&str]) -> Server {
    let argv = [BADSERVER].into_iter().chain(flags.iter().copied());
    Server::stdio("bad", argv).reaper(BADSERVER).eras(Eras::Only(Era::Legacy))
}

pub fn policy(change: impl FnOnce(&mut Settings)) -> Policy {
    let mut settings = Settings::default();
    change(&mut settings);
    Policy::new(settings).unwrap()
}

pub fn bad(flags: &[&str]) -> Bad {
    bad_with(flags, |server| server)
}

pub fn bad_with(flags: &[&str], change: impl FnOnce(Server) -> Server) -> Bad {
    let dir = Dir::new();
    let book = Book::at(dir.file("book"));
    let mut flags = flags.to_vec();
    let path = book.path().to_str().unwrap().to_owned();
    flags.extend(["--book", &path]);
    Bad { line: Line::open(change(server(&flags))), book, _dir: dir }
}

impl Bad {
    pub async fn call(&self, tool: &str, arguments: &str) -> Result<Answer, CallError> {
        in_time(self.line.call_tool(tool, arguments)).await
    }

    /// A call that must work, and what it said.
    pub async fn works(&self) -> String {
        let answer = self.call("echo", r#"{"nonce":"works"}"#).await.unwrap();
        assert!(answer.result().contains("works"), "{}", answer.result());
        answer.result().to_owned()
    }

    pub async fn until(&self, state: &str) -> Status {
        in_time(self.line.wait_for(|status| status.state == state)).await
    }

    pub async fn up(&self) -> i32 {
        self.until("up").await;
        self.pid().await
    }

    pub async fn pid(&self) -> i32 {
        eventually(|| self.line.pid()).await
    }

    /// Waits for a generation after this one to be up.
    pub async fn back(&self, generation: u64) -> Status {
        in_time(self.line.wait_for(|status| status.state == "up" && status.generation > generation)).await
    }

    /// Closes the line and looks for what is left.
    pub async fn leaves_nothing(self) {
        let before = in_time(async { self.line.pid() }).await;
        in_time(self.line.close()).await;
        if let Some(pid) = before {
            assert!(!lives(pid), "the server outlived its line");
        }
        eventually(|| children().is_empty().then_some(())).await;
    }
}

pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

pub async fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    in_time(async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    })
    .await
}

pub fn kill(signal: &str, pid: i32) {
    let done = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "kill {signal} {pid}");
}

pub fn lives(pid: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap().starts_with('Z'),
        Err(_) => false,
    }
}

/// The processes below this one, zombies included.
pub fn children() -> Vec<i32> {
    descendants(i32::try_from(std::process::id()).unwrap())
}

pub fn descendants(of: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

pub fn stopwatch() -> Instant {
    Instant::now()
}

/// Every error names server, phase, cause, delivery and next try.
pub fn speaks(error: &CallError) {
    assert_eq!(&*error.server, "bad");
    for text in [error.phase, &error.cause, error.delivery.name(), &error.next_try] {
        assert!(!text.trim().is_empty(), "{error:?}");
    }
    let fields = error.fields();
    for field in ["source", "server", "phase", "cause", "delivery", "nextTry"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {fields}");
    }
    assert!(error.for_model().contains(&error.cause));
    assert!(!(-32768..=-32000).contains(&error.code()));
}
