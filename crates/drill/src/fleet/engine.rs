//! Three servers of NATS, a cluster with `JetStream`: what the fleet stands on.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use http::Method;
use linetender_badserver::agent;
use linetender_badserver::process;
use rustix::process::Signal;
use serde_json::Value;

use super::net::{LOOKS_PORT, NATS_PORT, NODES, Place, ROUTES_PORT};

/// How long it may take to be a cluster.
const BEGINS: Duration = Duration::from_secs(60);

/// How long a look may take.
const LOOKS: Duration = Duration::from_secs(2);

/// How often is looked.
const EVERY: Duration = Duration::from_millis(100);

/// The cluster. Dropped, it is killed.
pub(super) struct Engine {
    program: PathBuf,
    folder: PathBuf,
    servers: Vec<Child>,
}

impl Engine {
    /// Starts all, and waits until they are one.
    ///
    /// # Errors
    /// If they do not become one.
    pub(super) async fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let mut engine = Self { program: program.to_owned(), folder: folder.to_owned(), servers: Vec::new() };
        for node in 0..NODES {
            let server = engine.spawn(node)?;
            engine.servers.push(server);
        }
        engine.whole().await?;
        Ok(engine)
    }

    /// Where gateways find it.
    pub(super) fn addresses() -> Vec<String> {
        (0..NODES).map(|node| format!("nats://{}:{NATS_PORT}", Place::Nats(node).ip())).collect()
    }

    fn spawn(&self, node: usize) -> Result<Child, String> {
        let home = self.folder.join(format!("nats-{node}"));
        let text = |error: std::io::Error| format!("{}: {error}", home.display());
        std::fs::create_dir_all(&home).map_err(text)?;
        let ip = Place::Nats(node).ip();
        let routes: Vec<_> =
            (0..NODES).map(|node| format!("\"nats://{}:{ROUTES_PORT}\"", Place::Nats(node).ip())).collect();
        let config = home.join("nats.conf");
        let lines = format!(
            "listen: \"{ip}:{NATS_PORT}\"\nhttp: \"{ip}:{LOOKS_PORT}\"\nserver_name: n{node}\n\
             jetstream {{ store_dir: \"{}\" }}\n\
             cluster {{ name: drill, listen: \"{ip}:{ROUTES_PORT}\", routes: [{}] }}\n",
            home.join("store").display(),
            routes.join(", "),
        );
        std::fs::write(&config, lines).map_err(text)?;
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(home.join("log")).map_err(text)?;
        let mut server = Place::Nats(node).command(&self.program);
        server.arg("-c").arg(&config).stdout(Stdio::null()).stderr(log);
        server.spawn().map_err(|error| format!("{}: {error}", self.program.display()))
    }

    /// Waits until every server has its place in the cluster.
    ///
    /// # Errors
    /// If that takes too long.
    pub(super) async fn whole(&self) -> Result<(), String> {
        let all = async {
            for node in 0..NODES {
                while !self.is_well(node).await {
                    tokio::time::sleep(EVERY).await;
                }
            }
        };
        tokio::time::timeout(BEGINS, all).await.map_err(|_| "NATS does not become a cluster".to_owned())
    }

    async fn is_well(&self, node: usize) -> bool {
        let well = look(node, "/healthz").await.is_some_and(|health| health["status"] == "ok");
        let meta = look(node, "/jsz").await.unwrap_or_default();
        let meta = &meta["meta_cluster"];
        well && meta["leader"].is_string() && meta["cluster_size"] == NODES
    }

    /// Which server leads the stream of the fleet's lines; if there is none, the cluster.
    pub(super) async fn leader(&self) -> usize {
        for node in 0..NODES {
            let Some(said) = look(node, "/jsz?streams=true").await else { continue };
            let none = Vec::new();
            let streams = said["account_details"].as_array().unwrap_or(&none).iter();
            let mut streams =
                streams.flat_map(|account| account["stream_detail"].as_array().unwrap_or(&none));
            let of_lines =
                |stream: &&Value| stream["name"].as_str().is_some_and(|name| name.ends_with("lines"));
            let leader =
                streams.find(of_lines).map_or(&said["meta_cluster"]["leader"], |it| &it["cluster"]["leader"]);
            if let Some(leader) = leader.as_str().and_then(|name| name.trim_start_matches('n').parse().ok()) {
                return leader;
            }
        }
        0
    }

    pub(super) fn kill(&mut self, node: usize) {
        let _ = self.servers[node].kill();
        let _ = self.servers[node].wait();
    }

    /// Stops it, or lets it go on.
    pub(super) fn stop(&self, node: usize, stopped: bool) {
        let pid = i32::try_from(self.servers[node].id()).unwrap_or(0);
        process::send(pid, if stopped { Signal::STOP } else { Signal::CONT });
    }

    /// Starts one that was killed.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start_again(&mut self, node: usize) -> Result<(), String> {
        self.servers[node] = self.spawn(node)?;
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for node in 0..self.servers.len() {
            self.kill(node);
        }
    }
}

/// What a server says of itself.
async fn look(node: usize, path: &str) -> Option<Value> {
    let address = (Place::Nats(node).ip(), LOOKS_PORT).into();
    let said = async {
        let reply = agent::send(address, Method::GET, path, &[], String::new()).await.ok()?;
        serde_json::from_slice(&reply.collect().await.ok()?).ok()
    };
    tokio::time::timeout(LOOKS, said).await.ok().flatten()
}
