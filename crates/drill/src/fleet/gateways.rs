//! The three gateways, each a `linetender serve` in a network namespace of its own, and the balancer before them.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use http::Method;
use linetender_badserver::agent;
use linetender_badserver::process;
use rustix::process::Signal;

use super::engine::Engine;
use super::net::{NODES, Place, gateway_address, node_name};

/// How long one may take to be ready, and to end when it is told to: its drain, its servers' ends, and some.
const READY: Duration = Duration::from_secs(60);
const END: Duration = Duration::from_secs(40);

/// How long it may take until a step of its clock is seen in its answers.
const STEPS: Duration = Duration::from_secs(15);

/// A date that is the same in so many looks stands still.
const STILL: u32 = 150;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(20);

/// Where agents find the balancer.
pub(super) const BALANCER_PORT: u16 = 8080;

/// Round robin, and no health checks. A connection that is refused, or not made in two seconds, is tried at another gateway; what was
/// sent once is never sent again. That is as plain as a user's first balancer, and the hardest for a fleet: a third of all
/// connections are made to a gateway that is gone, stopped or cut off, for as long as it is.
const BALANCER: &str = "\
global
    maxconn 4000
defaults
    mode http
    timeout connect 2s
    timeout client 5m
    timeout server 5m
    retries 3
    option redispatch 1
frontend agents
    bind {address}
    default_backend gateways
backend gateways
    balance roundrobin
";

/// How the gateways are started.
#[derive(Clone, Debug)]
pub(super) struct How {
    pub(super) linetender: PathBuf,
    /// What serves every other time that a gateway is started.
    pub(super) to: Option<PathBuf>,
    pub(super) folder: PathBuf,
    /// A lease; without one there is no fleet, and each gateway believes that it is alone.
    pub(super) lease: Option<Duration>,
    /// The library that sets a process's clock.
    pub(super) faketime: Option<PathBuf>,
    /// The servers, as a config file has them.
    pub(super) servers: String,
}

/// The gateways. Dropped, they are killed.
pub(super) struct Gateways {
    how: How,
    running: Vec<Child>,
    /// How often each was started again.
    again: [usize; NODES],
}

impl Gateways {
    /// Starts all, and waits until they take agents.
    ///
    /// # Errors
    /// If one does not.
    pub(super) async fn start(how: How) -> Result<Self, String> {
        let mut gateways = Self { how, running: Vec::new(), again: [0; NODES] };
        for node in 0..NODES {
            gateways.configure(node).map_err(|error| error.to_string())?;
            let child = gateways.spawn(node)?;
            gateways.running.push(child);
        }
        for node in 0..NODES {
            gateways.ready(node).await?;
        }
        Ok(gateways)
    }

    fn home(&self, node: usize) -> PathBuf {
        self.how.folder.join(Place::Gateway(node).name())
    }

    fn configure(&self, node: usize) -> std::io::Result<()> {
        let home = self.home(node);
        std::fs::create_dir_all(&home)?;
        std::fs::write(self.clock(node), "+0\n")?;
        let mut text = format!("[gateway]\nlisten = '{}'\ninsecure = true\n", gateway_address(node));
        if let Some(lease) = self.how.lease {
            let _ = write!(
                text,
                "\n[gateway.fleet]\nname = 'drill'\nnode = '{}'\nnats = {:?}\nreplicas = {NODES}\nlease = '{}s'\n",
                node_name(node),
                Engine::addresses(),
                lease.as_secs()
            );
        }
        std::fs::write(home.join("linetender.toml"), text + &self.how.servers)
    }

    fn spawn(&self, node: usize) -> Result<Child, String> {
        let home = self.home(node);
        let text = |error: std::io::Error| format!("{}: {error}", self.how.linetender.display());
        let says =
            std::fs::OpenOptions::new().create(true).append(true).open(home.join("stderr")).map_err(text)?;
        let mut serve = Place::Gateway(node).command("env");
        serve.args(
            [("XDG_STATE_HOME", &home), ("XDG_RUNTIME_DIR", &home)]
                .map(|(name, home)| format!("{name}={}", home.display())),
        );
        if let Some(library) = &self.how.faketime {
            // The time of day alone: what measures durations is no clock that anybody sets.
            serve.arg(format!("LD_PRELOAD={}", library.display()));
            serve.arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.clock(node).display()));
            serve.args(["FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_CACHE_DURATION=1"]);
        }
        let other = self.how.to.as_ref().filter(|_| self.again[node] % 2 == 1);
        serve
            .arg(other.unwrap_or(&self.how.linetender))
            .args(["serve", "--config"])
            .arg(home.join("linetender.toml"));
        serve.arg("--log").arg(home.join("log")).stdout(Stdio::null()).stderr(says);
        serve.spawn().map_err(text)
    }

    /// The file that says how far a gateway's time of day is off.
    fn clock(&self, node: usize) -> PathBuf {
        self.home(node).join("clock")
    }

    /// Steps a gateway's time of day, so many seconds off the machine's, and waits until it says so itself.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn step_clock(&self, node: usize, seconds: i64) -> Result<(), String> {
        let (path, new) = (self.clock(node), self.home(node).join("clock.new"));
        let written =
            std::fs::write(&new, format!("{seconds:+}\n")).and_then(|()| std::fs::rename(new, path));
        written.map_err(|error| format!("the clock of {}: {error}", node_name(node)))?;
        let others = date_at((node + 1) % NODES).await;
        let steps = async {
            let (mut last, mut still) = (None, 0);
            loop {
                let date = date_at(node).await;
                still = if date.is_some() && date == last { still + 1 } else { 0 };
                // `Wed, 18 Nov 2026 00:45:40 GMT`; what a server says is never set back, it stands still instead.
                let day =
                    |date: &Option<String>| date.as_ref().and_then(|date| date.get(..16)).map(str::to_owned);
                let is_ahead = date.is_some() && day(&date) != day(&others);
                if seconds == 0 || (seconds > 0 && is_ahead) || (seconds < 0 && still > STILL) {
                    return;
                }
                last = date;
                tokio::time::sleep(EVERY).await;
            }
        };
        let stepped = tokio::time::timeout(STEPS, steps).await;
        stepped.map_err(|_| format!("the clock of {} does not step", node_name(node)))
    }

    /// Waits until it takes agents.
    ///
    /// # Errors
    /// If it does not, in time.
    async fn ready(&mut self, node: usize) -> Result<(), String> {
        let home = self.home(node);
        let child = &mut self.running[node];
        let ready = async {
            let look = || async move {
                let looked = agent::send(gateway_address(node), Method::GET, "/readyz", &[], String::new());
                matches!(tokio::time::timeout(EVERY * 50, looked).await, Ok(Ok(reply)) if reply.status == 200)
            };
            while !look().await {
                if let Ok(Some(status)) = child.try_wait() {
                    let said = std::fs::read_to_string(home.join("stderr")).unwrap_or_default();
                    return Err(format!("gateway {} ended with {status}: {}", node_name(node), said.trim()));
                }
                tokio::time::sleep(EVERY).await;
            }
            Ok(())
        };
        let within = tokio::time::timeout(READY, ready).await;
        within.unwrap_or_else(|_| {
            Err(format!("gateway {} is not ready: see {}", node_name(node), home.display()))
        })
    }

    /// A gateway that ended, and nobody told it to.
    pub(super) fn ended_by_itself(&mut self) -> Option<String> {
        let ended = |(node, child): (usize, &mut Child)| {
            let status = child.try_wait().ok()??;
            Some(format!("gateway {} ended by itself, with {status}", node_name(node)))
        };
        self.running.iter_mut().enumerate().find_map(ended)
    }

    pub(super) fn signal(&self, node: usize, signal: Signal) {
        process::send(i32::try_from(self.running[node].id()).unwrap_or(0), signal);
    }

    /// Kills it, and its reapers do the rest.
    pub(super) fn kill(&mut self, node: usize) {
        let _ = self.running[node].kill();
        let _ = self.running[node].wait();
    }

    /// Waits for the end of one that was told to end.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub(super) async fn ended(&mut self, node: usize) -> Result<(), String> {
        let child = &mut self.running[node];
        let ended = async {
            loop {
                if let Ok(Some(status)) = child.try_wait() {
                    return status;
                }
                tokio::time::sleep(EVERY).await;
            }
        };
        let name = node_name(node);
        match tokio::time::timeout(END, ended).await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("gateway {name} ended with {status}")),
            Err(_) => Err(format!("gateway {name} does not end")),
        }
    }

    /// Starts one that ended, and waits until it takes agents.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn start_again(&mut self, node: usize) -> Result<(), String> {
        self.again[node] += 1;
        self.running[node] = self.spawn(node)?;
        self.ready(node).await
    }
}

impl Drop for Gateways {
    fn drop(&mut self) {
        for node in 0..self.running.len() {
            self.kill(node);
        }
    }
}

/// What time it is, by what a gateway's answers say.
async fn date_at(node: usize) -> Option<String> {
    let asked = agent::send(gateway_address(node), Method::GET, "/healthz", &[], String::new());
    let reply = tokio::time::timeout(EVERY * 50, asked).await.ok()?.ok()?;
    Some(reply.headers.get("date")?.to_str().ok()?.to_owned())
}

/// The balancer. Dropped, it is killed.
pub(super) struct Balancer(Child);

impl Balancer {
    /// # Errors
    /// If it does not listen.
    pub(super) async fn start(folder: &Path, checks: bool) -> Result<Self, String> {
        let address = balancer_address();
        let mut text = BALANCER.replace("{address}", &address.to_string());
        // A gateway that is told to end says so here before it stops.
        text += if checks {
            "    option httpchk GET /readyz\n    default-server check inter 500ms\n"
        } else {
            ""
        };
        for node in 0..NODES {
            let _ = writeln!(text, "    server {} {}", node_name(node), gateway_address(node));
        }
        let config = folder.join("haproxy.cfg");
        std::fs::write(&config, text).map_err(|error| error.to_string())?;
        let mut haproxy = Place::Hub.command("haproxy");
        let says = std::fs::File::create(folder.join("haproxy.log")).map_err(|error| error.to_string())?;
        haproxy.arg("-db").arg("-f").arg(&config).stdout(Stdio::null()).stderr(says);
        let balancer = Self(haproxy.spawn().map_err(|error| format!("haproxy: {error}"))?);
        let listens = async {
            while tokio::net::TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(EVERY).await;
            }
        };
        tokio::time::timeout(READY, listens).await.map_err(|_| "haproxy does not listen".to_owned())?;
        Ok(balancer)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where agents go.
pub(super) fn balancer_address() -> std::net::SocketAddr {
    (Place::Hub.ip(), BALANCER_PORT).into()
}
