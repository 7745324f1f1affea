//! Lines to badservers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender::{Answer, CallError, Era, Eras, Line, Raw, Server, State, Status, StdioServer};
use linetender_badserver::Book;

use crate::look::{badserver, children, eventually, in_time, lives};

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
pub fn server(flags: &[&str]) -> StdioServer {
    let argv = [badserver()].into_iter().chain(flags.iter().copied());
    Server::stdio("bad", argv).reaper(badserver()).eras(Eras::Only(Era::Legacy))
}

pub fn bad(flags: &[&str]) -> Bad {
    bad_with(flags, |server| server)
}

pub fn bad_with(flags: &[&str], change: impl FnOnce(StdioServer) -> StdioServer) -> Bad {
    let dir = Dir::new();
    let book = Book::at(dir.file("book"));
    let mut flags = flags.to_vec();
    let path = book.path().to_str().unwrap().to_owned();
    flags.extend(["--book", &path]);
    Bad { line: Line::open(change(server(&flags))), book, _dir: dir }
}

impl Bad {
    pub async fn call(&self, tool: &str, arguments: &str) -> Result<Answer, CallError> {
        in_time(self.line.call_tool(tool, Raw(arguments))).await
    }

    /// A call that must work, and what it said.
    pub async fn works(&self) -> String {
        let answer = self.call("echo", r#"{"nonce":"works"}"#).await.unwrap();
        assert!(answer.raw().contains("works"), "{}", answer.raw());
        answer.raw().to_owned()
    }

    pub async fn until(&self, state: State) -> Status {
        in_time(self.line.wait_for(|status| status.state == state)).await
    }

    pub async fn up(&self) -> i32 {
        self.until(State::Up).await;
        self.pid().await
    }

    pub async fn pid(&self) -> i32 {
        eventually(|| self.line.pid()).await
    }

    /// Waits for a generation after this one to be up.
    pub async fn back(&self, generation: u64) -> Status {
        in_time(self.line.wait_for(|status| status.state == State::Up && status.generation > generation))
            .await
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
