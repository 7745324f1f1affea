//! A gateway on a socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linetender::{Kind, Rig};
use linetender_badserver::Book;
use linetender_badserver::agent::Caller;
use linetender_badserver::program;
use linetender_gateway::config::{self, Config};
use linetender_gateway::front::{self, Doors, Served};
use linetender_gateway::kin::Kin;
use linetender_gateway::{Bearers, Gateway};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use linetender_badserver::agent::{Agent, Answer, in_time, is_answered, names, text};

/// A book of the test's own.
pub fn book() -> Book {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let name = format!("linetender-gateway-{}-{number}", std::process::id());
    Book::at(std::env::temp_dir().join(name))
}

/// A config with badservers in it: `{bad}` stands for the command.
pub fn config(text: &str) -> Config {
    let program = program();
    let text = text.replace("{bad}", &format!("command = '{}'", program.display()));
    let mut config = config::load("test", &text, &|_| None).unwrap();
    for entry in &mut config.servers {
        if let Some(server) = entry.server.to_stdio() {
            entry.server = server.reaper(program).into();
        }
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
        Self::up_at("127.0.0.1:0", text).await
    }

    /// The same at this address.
    pub async fn up_at(at: &str, text: &str) -> Self {
        let house = Self::open_at(at, text).await;
        for line in house.gateway.lines() {
            let catalogue = in_time(line.catalogue()).await.unwrap();
            // The board is made after the line has read its lists, and is what agents see.
            if catalogue.list(Kind::Tools).next().is_some() {
                in_time(house.lists_some_of(line.name())).await;
            }
        }
        house
    }

    async fn lists_some_of(&self, server: &str) {
        loop {
            let listed = self.modern("/mcp", "tools/list", json!({})).await.json().await;
            if names(&listed, "tools").iter().any(|name| name.starts_with(server)) {
                return;
            }
        }
    }

    /// Serves these servers, which have read their lists; whether we may see them or not.
    pub async fn up_but_unseen(text: &str) -> Self {
        let house = Self::open(text).await;
        for line in house.gateway.lines() {
            in_time(line.catalogue()).await.unwrap();
        }
        house
    }

    pub async fn open(text: &str) -> Self {
        Self::open_at("127.0.0.1:0", text).await
    }

    async fn open_at(at: &str, text: &str) -> Self {
        Self::open_on(Rig::new(), at, text).await
    }

    /// Serves these servers, as one of several gateways.
    pub async fn up_among(text: &str, kin: Arc<dyn Kin>) -> Self {
        let start = |_| {
            let gateway = Gateway::start_on(Rig::new(), config(text));
            gateway.among(kin);
            (gateway, None)
        };
        let house = Self::open_with("127.0.0.1:0", start).await;
        for line in house.gateway.lines() {
            in_time(line.catalogue()).await.unwrap();
            in_time(house.lists_some_of(line.name())).await;
        }
        house
    }

    /// Serves these servers on this rig.
    pub async fn open_on(rig: Rig, at: &str, text: &str) -> Self {
        Self::open_with(at, |_| (Gateway::start_on(rig, config(text)), None)).await
    }

    /// Serves this gateway, to agents whose tokens this verifies.
    pub async fn open_with(
        at: &str,
        start: impl FnOnce(SocketAddr) -> (Gateway, Option<Arc<dyn Bearers>>),
    ) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (gateway, bearers) = start(address);
        let (stop, stopped) = oneshot::channel::<()>();
        let of = gateway.clone();
        let mut doors = Doors::over(gateway.settings(), listener).unwrap();
        if let Some(bearers) = bearers {
            doors = doors.verified_by(bearers);
        }
        let served = tokio::spawn(async move {
            front::serve(&of, doors, async {
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

/// A server whose input is written down, with this in its table.
pub struct Overheard {
    heard: PathBuf,
    /// Its table in a config.
    pub text: String,
}

impl Overheard {
    pub fn new(settings: &str) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let heard = std::env::temp_dir().join(format!("linetender-heard-{}-{number}", std::process::id()));
        let script = format!("tee -a {} | {} --era legacy --full", heard.display(), program().display());
        let text = format!("[servers.a]\ncommand = 'sh'\nargs = ['-c', '{script}']\n{settings}\n");
        Self { heard, text }
    }

    /// Everything that the server was sent.
    pub fn heard(&self) -> String {
        std::fs::read_to_string(&self.heard).unwrap_or_default()
    }
}

impl Drop for Overheard {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.heard);
    }
}
