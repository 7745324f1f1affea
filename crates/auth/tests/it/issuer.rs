//! The issuer of `issuer.mjs`, as a process that can be killed and come back.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method};
use linetender_wire::http::{Endpoint, Reply};
use serde_json::Value;

use crate::provider::{asker, node};

pub(crate) struct Issuer {
    pub(crate) url: String,
    file: PathBuf,
    child: Child,
}

impl Issuer {
    /// Starts it. `None` if it is not installed here.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let (node, home) = node()?;
        let file = std::env::temp_dir().join(format!("linetender-issuer-{name}-{}.json", std::process::id()));
        let (child, url) = spawn(&node, &home, &file, 0);
        Some(Self { url, file, child })
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was, with the keys that it had, of which it publishes the first.
    pub(crate) fn restart(&mut self) {
        let (node, home) = node().unwrap();
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        let (child, url) = spawn(&node, &home, &self.file, port);
        assert_eq!(url, self.url);
        self.child = child;
    }

    /// Changes how it behaves.
    pub(crate) async fn set(&self, change: Value) {
        self.ask(Method::POST, "/control", HeaderMap::new(), change.to_string()).await;
    }

    /// How often its keys were fetched.
    pub(crate) async fn fetched(&self) -> u64 {
        let reply = self.ask(Method::GET, "/control", HeaderMap::new(), String::new()).await;
        serde_json::from_slice::<Value>(&reply.body).unwrap()["jwks"].as_u64().unwrap()
    }

    /// A token of the machine for this resource.
    pub(crate) async fn token(&self, resource: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
        let basic = format!("Basic {}", STANDARD.encode("machine:secret"));
        headers.insert("authorization", basic.parse().unwrap());
        let resource = resource.replace(':', "%3A").replace('/', "%2F");
        let form = format!("grant_type=client_credentials&scope=mcp%3Aread&resource={resource}");
        let reply = self.ask(Method::POST, "/token", headers, form).await;
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        reply["access_token"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    async fn ask(&self, method: Method, path: &str, headers: HeaderMap, body: String) -> Reply {
        let at = Endpoint::new(&format!("{}{path}", self.url)).unwrap();
        asker().ask(method, &at, headers, body.into(), Duration::from_secs(20)).await.unwrap()
    }
}

fn spawn(node: &Path, home: &Path, file: &Path, port: u16) -> (Child, String) {
    let mut child = Command::new(node)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/issuer.mjs"))
        .args([home, file])
        .arg(port.to_string())
        // It ends when this does, should the test be killed.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(&self.file);
    }
}
