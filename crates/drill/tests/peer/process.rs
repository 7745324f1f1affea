//! A server over HTTP in a process of its own, which can be killed and comes back on its port.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::look::eventually;

/// A server, whether it runs or not.
pub struct Process {
    argv: Vec<String>,
    variables: Vec<(&'static str, String)>,
    port: u16,
    child: Option<Child>,
}

impl Process {
    /// `{port}` in an argument or a variable stands for its port.
    pub fn new(argv: &[&str], variables: &[(&'static str, &str)]) -> Self {
        let port = free_port();
        let spelt = |word: &str| word.replace("{port}", &port.to_string());
        Self {
            argv: argv.iter().map(|word| spelt(word)).collect(),
            variables: variables.iter().map(|(name, value)| (*name, spelt(value))).collect(),
            port,
            child: None,
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Starts it, and waits until it accepts connections.
    pub async fn start(&mut self) {
        let mut child = Command::new(&self.argv[0])
            .args(&self.argv[1..])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.argv[0]));
        let port = self.port;
        eventually(|| {
            assert!(child.try_wait().unwrap().is_none(), "the server ended by itself");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        })
        .await;
        self.child = Some(child);
    }

    /// kill -9. When this returns, the port refuses.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port below those that the system gives to whoever connects: while the server is down nobody may get it by chance.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let ours = u16::try_from(std::process::id() % 500).unwrap() * 20;
    std::iter::repeat_with(|| 20_000 + (ours + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000)
        .take(12_000)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port")
}
