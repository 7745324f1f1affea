//! Servers of one era, on a pipe or over HTTP, that behave.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender::Era;
use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};

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
    book: Book,
    dir: PathBuf,
    pub way: Way,
    pub era: Era,
    web: Option<WebServer>,
}

impl Peer {
    pub fn start(way: Way, era: Era) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("linetender-corner-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let book = Book::at(dir.join("book"));
        let web = (way == Way::Http).then(|| {
            let speaks = if era == Era::Legacy { Speaks::Legacy } else { Speaks::Modern };
            let manners = Manners { speaks, full: true, ..Manners::default() };
            WebServer::start(Config { book: Some(book.path().to_owned()), manners, ..Config::default() })
                .unwrap()
        });
        Self { book, dir, way, era, web }
    }

    /// How to reach it, as a piece of a config file. Nobody says which era it speaks: that has to be found out.
    pub fn config(&self, name: &str, more: &str) -> String {
        let reach = if let Some(web) = &self.web {
            format!("url = '{}'", web.url())
        } else {
            let era = if self.era == Era::Legacy { "legacy" } else { "modern" };
            let (book, changing) = (self.dir.join("book"), self.dir.join("changing"));
            let (book, changing) = (book.display(), changing.display());
            format!(
                "{{bad}}\nargs = ['--full', '--era', '{era}', '--book', '{book}', '--changing', '{changing}']"
            )
        };
        format!("[servers.{name}]\n{reach}\n{more}\n")
    }

    /// From now on there is one more tool; the tool `list_change` says so.
    pub fn will_change(&self) {
        if self.way == Way::Pipe {
            std::fs::write(self.dir.join("changing"), "fresh").unwrap();
        }
    }

    /// How often it ran this.
    pub fn runs(&self, nonce: &str) -> u32 {
        self.book.runs().get(nonce).copied().unwrap_or_default()
    }

    /// How often it was told that somebody gave up.
    pub fn cancellations(&self) -> usize {
        self.book.runs().keys().filter(|nonce| nonce.starts_with("cancelled:")).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
