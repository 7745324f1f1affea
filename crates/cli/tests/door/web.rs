//! A server at an address, in the test's own process, and doors in front of it.

use linetender::Era;
use linetender_badserver::Book;
use linetender_badserver::proxy::{Fault as Network, Proxy};
use linetender_badserver::webserver::{Config, Ending, Fault, Manners, Speaks, WebServer};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::kit::Door;
use crate::look::{Dir, eventually};

/// The server, and what it runs on.
pub struct Web {
    pub server: WebServer,
    pub runtime: Runtime,
    book: Book,
    era: Era,
    _dir: Dir,
}

pub fn manners(era: Era) -> Manners {
    let speaks = match era {
        Era::Legacy => Speaks::Legacy,
        Era::Modern => Speaks::Modern,
    };
    Manners { speaks, ..Manners::default() }
}

impl Web {
    pub fn start(era: Era) -> Self {
        Self::with(era, |config| config)
    }

    pub fn with(era: Era, change: impl FnOnce(Config) -> Config) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let dir = Dir::new();
        let book = Book::at(dir.file("book"));
        let config =
            Config { book: Some(book.path().to_owned()), manners: manners(era), ..Config::default() };
        let server = {
            let _entered = runtime.enter();
            WebServer::start(change(config)).unwrap()
        };
        Self { server, runtime, book, era, _dir: dir }
    }

    /// A door in front of it, and greeted.
    pub fn door(&self) -> Door {
        let mut door = self.shut(&[&self.server.url()], &[]);
        door.greets();
        door
    }

    /// A door in front of this address, which may have flags before it, with the server's book. Not greeted yet.
    pub fn shut(&self, words: &[&str], variables: &[(&str, &str)]) -> Door {
        let mut door = Door::open(self.era, words, variables, Dir::new());
        door.book = self.book.clone();
        door
    }

    /// A network between the server and a door, and where that is.
    pub fn network(&self) -> (Proxy, String) {
        let _entered = self.runtime.enter();
        let proxy = Proxy::start(self.server.address()).unwrap();
        let url = format!("http://{}/mcp", proxy.addr());
        (proxy, url)
    }

    pub fn set(&self, proxy: &Proxy, fault: Network) {
        self.runtime.block_on(proxy.set(fault));
    }

    pub fn restart(&mut self) {
        self.runtime.block_on(self.server.restart(Ending::Reset)).unwrap();
    }

    pub fn stop(&mut self) {
        self.runtime.block_on(self.server.stop(Ending::Reset));
    }

    /// Every call of a tool meets this; `times` of them, or all.
    pub fn fault(&self, tool: &str, arguments: Value, times: Option<u32>) {
        let fault = Fault { times, ..Fault::new(tool, arguments) };
        self.server.set(|manners| manners.fault_on("tools/call", fault));
    }

    /// The door closes, and the server has no connection of it left.
    pub fn closes(&self, door: Door) {
        door.closes();
        eventually("an end of its connections", || (self.server.counters().open == 0).then_some(()));
    }
}
