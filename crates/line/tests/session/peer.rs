//! Servers of one era, on a pipe or over HTTP, that behave until they are killed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender::{Era, Server};
use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Ending, Manners, Speaks, WebServer};

use crate::look::{badserver, eventually, kill};

/// How a server is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    Pipe,
    Http,
}

pub const WAYS: [Way; 2] = [Way::Pipe, Way::Http];
pub const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server, and its own book.
pub struct Peer {
    pub book: Book,
    pub dir: Dir,
    pub way: Way,
    era: Era,
    pub web: Option<WebServer>,
}

/// A folder of the test's own.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-session-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Peer {
    pub fn start(way: Way, era: Era) -> Self {
        let dir = Dir::new();
        let book = Book::at(dir.file("book"));
        let web = (way == Way::Http).then(|| {
            let speaks = if era == Era::Legacy { Speaks::Legacy } else { Speaks::Modern };
            let manners = Manners { speaks, full: true, ..Manners::default() };
            let config = Config { book: Some(book.path().to_owned()), manners, ..Config::default() };
            WebServer::start(config).unwrap()
        });
        Self { book, dir, way, era, web }
    }

    /// How to reach it. Nobody says which era it speaks: that has to be found out.
    pub fn server(&self) -> Server {
        if let Some(web) = &self.web {
            return Server::http("bad", &web.url()).into();
        }
        let era = if self.era == Era::Legacy { "legacy" } else { "modern" };
        let (book, changing) = (self.dir.text("book"), self.dir.text("changing"));
        let argv = [badserver(), "--full", "--era", era, "--book", &book, "--changing", &changing];
        Server::stdio("bad", argv).reaper(badserver()).into()
    }

    /// From now on there is one more tool; the tool `list_change` says so.
    pub fn will_change(&self) {
        if self.way == Way::Pipe {
            std::fs::write(self.dir.file("changing"), "fresh").unwrap();
        }
    }

    /// Waits until it runs this.
    pub async fn runs(&self, nonce: &str) -> i32 {
        eventually(|| self.book.runs_by().get(nonce).and_then(|by| by.last().copied())).await
    }

    /// Kills it while it runs this.
    pub async fn kill(&mut self, nonce: &str) {
        let pid = self.runs(nonce).await;
        match &mut self.web {
            Some(web) => web.restart(Ending::Reset).await.unwrap(),
            None => kill("-9", pid),
        }
    }
}
