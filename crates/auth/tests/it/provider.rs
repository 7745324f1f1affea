//! The authorization server and the MCP server of `provider.mjs`, as a process that ends with the test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use http::{HeaderMap, Method};
use linetender_auth::{Client, LoginKeys, Store};
use linetender_wire::http::{Asker, Endpoint, Reply, Surroundings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::browser;

#[derive(Deserialize)]
pub(crate) struct Addresses {
    pub(crate) issuer: String,
    pub(crate) mcp: String,
    pub(crate) es256: String,
    pub(crate) rs256: String,
    pub(crate) sec1: String,
}

/// Both servers, and a folder for logins.
pub(crate) struct Provider {
    pub(crate) at: Addresses,
    pub(crate) folder: PathBuf,
    child: Child,
    /// It ends when this does, should the test be killed.
    #[expect(dead_code, reason = "held, not used")]
    stdin: Option<ChildStdin>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) token: u64,
    pub(crate) refresh: u64,
    pub(crate) refused: u64,
    pub(crate) registered: u64,
    pub(crate) revoked: u64,
    pub(crate) mcp: u64,
    pub(crate) granted: u64,
    /// Tools that ran.
    pub(crate) calls: u64,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn asker() -> Asker {
    Asker::new(Surroundings::bare())
}

/// The program that runs authorization servers, and the folder of their modules. `None` if they are not installed here.
pub(crate) fn node() -> Option<(PathBuf, PathBuf)> {
    let home = root().join("target/real/auth");
    if !home.join(".done").exists() {
        println!("no authorization server here: run tools/real-auth");
        return None;
    }
    let own = std::fs::read_dir(home.join("node_modules")).unwrap().flatten().map(|entry| entry.path());
    let own = own.map(|path| path.join("bin/node")).find(|path| path.exists());
    Some((own.unwrap_or_else(|| "node".into()), home.canonicalize().unwrap()))
}

impl Provider {
    /// Starts it. `None` if it is not installed here.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let (node, home) = node()?;
        let mut child = Command::new(node)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provider.mjs"))
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = serde_json::from_str(&line).expect("the provider says where it is");
        let folder = std::env::temp_dir().join(format!("linetender-auth-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let stdin = child.stdin.take();
        Some(Self { at, folder, child, stdin })
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.folder).unwrap()
    }

    /// Keys as another process would have them: a store of their own.
    pub(crate) fn keys(&self) -> std::sync::Arc<LoginKeys> {
        self.keys_as(Client::default())
    }

    pub(crate) fn keys_as(&self, client: Client) -> std::sync::Arc<LoginKeys> {
        let keys = LoginKeys::new(&self.store(), &self.at.mcp, client, "linetender login test").unwrap();
        std::sync::Arc::new(keys.through(asker()))
    }

    /// Somebody logs in.
    pub(crate) async fn login(&self) {
        browser::login(&self.store(), &self.at.mcp, Client::default()).await.unwrap();
    }

    /// Changes how it behaves.
    pub(crate) async fn set(&self, change: Value) -> Counts {
        self.control(Method::POST, change.to_string()).await
    }

    pub(crate) async fn counts(&self) -> Counts {
        self.control(Method::GET, String::new()).await
    }

    async fn control(&self, method: Method, body: String) -> Counts {
        let at = Endpoint::new(&format!("{}/control", self.at.issuer)).unwrap();
        let reply = asker().ask(method, &at, HeaderMap::new(), body.into(), Duration::from_secs(20)).await;
        serde_json::from_slice(&reply.unwrap().body).unwrap()
    }

    /// Ends the authorization server, and the MCP server with it.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The one file that holds the login.
    pub(crate) fn credential(&self) -> Value {
        let mut files = std::fs::read_dir(self.folder.join("credentials")).unwrap().flatten();
        let file = files.find(|entry| !entry.file_name().to_string_lossy().starts_with('.')).unwrap();
        serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap()
    }

    /// Makes the stored token older than it is: nobody waits for it to end.
    pub(crate) fn age(&self, seconds: u64) {
        self.change(|grant| {
            for name in ["got_at", "expires_at"] {
                grant[name] = (grant[name].as_u64().unwrap() - seconds).into();
            }
        });
    }

    /// Changes what is stored, as no program should.
    pub(crate) fn change(&self, how: impl FnOnce(&mut Value)) {
        let file =
            std::fs::read_dir(self.folder.join("credentials")).unwrap().flatten().next().unwrap().path();
        let mut credential = self.credential();
        how(&mut credential["grants"][&self.at.mcp]);
        std::fs::write(file, credential.to_string()).unwrap();
    }

    pub(crate) fn grant(&self) -> Value {
        self.credential()["grants"][&self.at.mcp].clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A request to the MCP server with these headers.
pub(crate) async fn call(mcp: &str, headers: &HeaderMap) -> Reply {
    let at = Endpoint::new(mcp).unwrap();
    let mut headers = headers.clone();
    headers.insert("content-type", "application/json".parse().unwrap());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    asker().ask(Method::POST, &at, headers, ping.into(), Duration::from_secs(20)).await.unwrap()
}
