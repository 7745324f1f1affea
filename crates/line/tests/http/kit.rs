//! Lines to badservers over HTTP.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender::{Answer, CallError, Era, Eras, HttpServer, Line, Raw, Server, State, Status};
use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Ending, Manners, Speaks, WebServer};

use crate::look::in_time;

/// A server, a line to it, and the server's own book.
pub struct Web {
    pub server: WebServer,
    pub line: Line,
    pub book: Book,
}

pub const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A book of the test's own.
pub fn book() -> Book {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("linetender-http-{}-{number}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    Book::at(path)
}

pub fn manners(era: Era) -> Manners {
    let speaks = match era {
        Era::Legacy => Speaks::Legacy,
        Era::Modern => Speaks::Modern,
    };
    Manners { speaks, ..Manners::default() }
}

/// A server that speaks one era, and a line to it that is up.
pub async fn web(era: Era) -> Web {
    web_with(manners(era), |server| server.eras(Eras::Only(era))).await
}

pub async fn web_with(manners: Manners, change: impl FnOnce(HttpServer) -> HttpServer) -> Web {
    let book = book();
    let config = Config { book: Some(book.path().to_owned()), manners, ..Config::default() };
    let server = WebServer::start(config).unwrap();
    let line = Line::open(change(Server::http("bad", &server.url())));
    let web = Web { server, line, book };
    in_time(web.line.ready()).await.unwrap();
    in_time(web.line.list_tools()).await.unwrap();
    web
}

impl Web {
    pub async fn call(&self, tool: &str, arguments: &str) -> Result<Answer, CallError> {
        in_time(self.line.call_tool(tool, Raw(arguments))).await
    }

    /// A call that must work.
    pub async fn works(&self) {
        let answer = self.call("echo", r#"{"nonce":"works"}"#).await.unwrap();
        assert!(answer.raw().contains("works"), "{}", answer.raw());
    }

    pub async fn until(&self, state: State) -> Status {
        in_time(self.line.wait_for(|status| status.state == state)).await
    }

    pub async fn back(&self, generation: u64) -> Status {
        in_time(self.line.wait_for(|status| status.state == State::Up && status.generation > generation))
            .await
    }

    pub fn generation(&self) -> u64 {
        self.line.status().generation
    }

    /// How often the server ran this.
    pub fn runs(&self, nonce: &str) -> u32 {
        self.book.runs().get(nonce).copied().unwrap_or(0)
    }

    /// Closes the line, and looks whether the server still has a connection of it.
    pub async fn leaves_nothing(self) {
        in_time(self.line.close()).await;
        crate::look::eventually(|| (self.server.counters().open == 0).then_some(())).await;
        let _ = std::fs::remove_file(self.book.path());
    }

    pub async fn restart(&mut self) {
        self.server.restart(Ending::Reset).await.unwrap();
    }
}
