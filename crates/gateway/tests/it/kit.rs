//! A gateway on a socket.

use std::path::PathBuf;

use linetender_gateway::Gateway;
use linetender_gateway::config::{self, Config};
use linetender_gateway::front::{self, Served};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use crate::caller::{Answer, in_time, names, text};

use crate::caller::Caller;

/// The example that is a badserver too, and its reaper: it is built with the tests and lies beside them.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join("embed");
    assert!(path.exists(), "{} is missing: build the examples", path.display());
    path
}

/// A config with badservers in it: `{bad}` stands for the command.
pub fn config(text: &str) -> Config {
    let program = program();
    let text = text.replace("{bad}", &format!("command = '{}'", program.display()));
    let mut config = config::load("test", &text, &|_| None).unwrap();
    for entry in &mut config.servers {
        entry.server = entry.server.clone().reaper(&program);
    }
    config
}

pub struct House {
    pub gateway: Gateway,
    web: Caller,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<Served>>,
}

impl House {
    /// Serves these servers; each is waited for if it has lists to be read.
    pub async fn up(text: &str) -> Self {
        let house = Self::open(text).await;
        for line in house.gateway.lines() {
            in_time(line.catalogue()).await.unwrap();
        }
        house
    }

    pub async fn open(text: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = Gateway::start(config(text));
        let (stop, stopped) = oneshot::channel::<()>();
        let of = gateway.clone();
        let served = tokio::spawn(async move {
            front::serve(&of, listener, async {
                let _ = stopped.await;
            })
            .await
        });
        Self { gateway, web: Caller::at(address), stop: Some(stop), served }
    }

    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub async fn ended(self) -> Served {
        in_time(self.served).await.unwrap().unwrap()
    }
}

impl std::ops::Deref for House {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.web
    }
}
