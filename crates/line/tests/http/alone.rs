//! Servers over HTTP that each test opens its own lines to.

use std::net::SocketAddr;

use linetender_badserver::webserver::{Config, Manners, WebServer};

pub use crate::look::in_time;

/// A server without a line.
pub struct Web {
    pub server: WebServer,
}

pub fn web(change: impl FnOnce(&mut Manners)) -> Web {
    let mut config = Config::default();
    change(&mut config.manners);
    Web { server: WebServer::start(config).unwrap() }
}

pub async fn eventually(mut look: impl FnMut() -> bool) {
    crate::look::eventually(|| look().then_some(())).await;
}

impl Web {
    pub fn addr(&self) -> SocketAddr {
        self.server.address()
    }
}
