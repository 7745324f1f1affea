//! The authorization server and the MCP server of the auth crate's `provider.mjs`, as a process that ends with the test.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::browser::ask;

pub(crate) struct Provider {
    pub(crate) issuer: String,
    pub(crate) mcp: String,
    /// The private key of its client `machine-es`.
    pub(crate) es256: String,
    child: Child,
    /// It ends when this does, should the test be killed.
    #[expect(dead_code, reason = "held, not used")]
    stdin: Option<ChildStdin>,
}

impl Provider {
    /// Starts it. `None` if it is not installed here.
    pub(crate) fn start() -> Option<Self> {
        let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let home = crates.join("../target/real/auth");
        if !home.join(".done").exists() {
            println!("no authorization server here: run tools/real-auth");
            return None;
        }
        let own = std::fs::read_dir(home.join("node_modules")).unwrap().flatten();
        let own = own.map(|entry| entry.path().join("bin/node")).find(|path| path.exists());
        let mut child = Command::new(own.unwrap_or_else(|| "node".into()))
            .arg(crates.join("auth/tests/provider.mjs"))
            .arg(home.canonicalize().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at: Value = serde_json::from_str(&line).expect("the provider says where it is");
        let text = |name: &str| at[name].as_str().unwrap().to_owned();
        let stdin = child.stdin.take();
        Some(Self { issuer: text("issuer"), mcp: text("mcp"), es256: text("es256"), child, stdin })
    }

    /// Changes how it behaves, and returns what was counted.
    pub(crate) fn set(&self, change: &Value) -> Counts {
        Counts::of(&ask("POST", &format!("{}/control", self.issuer), "", &change.to_string()).body)
    }

    /// Every token, code, verifier, state and client secret so far.
    pub(crate) fn secrets(&self) -> Vec<String> {
        serde_json::from_str(&ask("GET", &format!("{}/secrets", self.issuer), "", "").body).unwrap()
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::of(&ask("GET", &format!("{}/control", self.issuer), "", "").body)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was asked of it.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) token: u64,
    pub(crate) revoked: u64,
    /// How often each call ran that had a name.
    pub(crate) ran: BTreeMap<String, u64>,
}

impl Counts {
    fn of(text: &str) -> Self {
        let counts: Value = serde_json::from_str(text).unwrap();
        let number = |name: &str| counts[name].as_u64().unwrap();
        let ran = serde_json::from_value(counts["ran"].clone()).unwrap();
        Self { token: number("token"), revoked: number("revoked"), ran }
    }
}
