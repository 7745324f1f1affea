//! A NATS cluster of this test's own.

#![allow(dead_code, reason = "not every test does everything to it")]
#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a cluster may take to be one.
const BEGINS: Duration = Duration::from_secs(30);

pub(crate) struct Cluster {
    folder: PathBuf,
    ports: Vec<u16>,
    servers: Vec<Child>,
}

impl Cluster {
    pub(crate) async fn start(size: usize) -> Self {
        Self::with_room(size, "1G").await
    }

    /// One whose servers keep no more than this.
    pub(crate) async fn with_room(size: usize, room: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-nats-{}-{}", std::process::id(), free()));
        // The first half is for clients, the second for each other.
        let ports: Vec<u16> = (0..2 * size).map(|_| free()).collect();
        let mut cluster = Self { folder, ports, servers: Vec::new() };
        for at in 0..size {
            cluster.configure(at, size, room);
            let server = cluster.spawn(at);
            cluster.servers.push(server);
        }
        for at in 0..size {
            cluster.listens(at).await;
        }
        cluster
    }

    fn configure(&self, at: usize, size: usize, room: &str) {
        let (port, own) = (self.ports[at], self.ports[size + at]);
        let home = self.home(at);
        std::fs::create_dir_all(&home).unwrap();
        let routes: Vec<_> =
            self.ports[size..].iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let cluster = format!(
            "cluster {{ name: test, listen: \"127.0.0.1:{own}\", routes: [{}] }}\n",
            routes.join(", ")
        );
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\nserver_name: n{at}\njetstream {{ store_dir: \"{}\", max_file_store: {room} }}\n{}",
            home.join("store").display(),
            if size > 1 { &cluster } else { "" }
        );
        std::fs::write(home.join("nats.conf"), config).unwrap();
    }

    fn home(&self, at: usize) -> PathBuf {
        self.folder.join(format!("n{at}"))
    }

    fn spawn(&self, at: usize) -> Child {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real/nats/bin/nats-server");
        let mut command = Command::new(&program);
        command.arg("-c").arg(self.home(at).join("nats.conf")).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}: run tools/real-nats", program.display()))
    }

    async fn listens(&self, at: usize) {
        let until = Instant::now() + BEGINS;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports[at])).await.is_err() {
            assert!(Instant::now() < until, "n{at} does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Everything of it is here, and goes with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.ports[..self.servers.len()].iter().map(|port| format!("nats://127.0.0.1:{port}")).collect()
    }

    /// Which server leads a stream.
    pub(crate) async fn leader_of(&self, stream: &str) -> usize {
        let client = async_nats::connect(self.addresses()).await.unwrap();
        let mut stream = async_nats::jetstream::new(client).get_stream(stream).await.unwrap();
        let leader = stream.info().await.unwrap().cluster.as_ref().and_then(|cluster| cluster.leader.clone());
        leader.unwrap().trim_start_matches('n').parse().unwrap()
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.servers[at].kill().unwrap();
        self.servers[at].wait().unwrap();
    }

    pub(crate) fn stop(&self, at: usize, stopped: bool) {
        let pid = Pid::from_child(&self.servers[at]);
        kill_process(pid, if stopped { Signal::STOP } else { Signal::CONT }).unwrap();
    }

    /// Takes everything it has written.
    pub(crate) fn rob(&self, at: usize) {
        std::fs::remove_dir_all(self.home(at).join("store")).unwrap();
    }

    pub(crate) async fn restart(&mut self, at: usize) {
        self.servers[at] = self.spawn(at);
        self.listens(at).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
