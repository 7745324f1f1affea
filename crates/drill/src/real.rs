//! Real servers, where `tools/real-servers` has installed them.

use std::path::{Path, PathBuf};

/// What to say where they are not.
pub(crate) const MISSING: &str = "not installed: run tools/real-servers";

/// A small server on the official Python SDK; its argument is its book.
pub(crate) const PYTHON_SERVER: &str = include_str!("../real/server_mcp.py");

fn installed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real")
}

/// Programs to compare with, where `tools/peers` has installed them.
pub(crate) fn peers() -> PathBuf {
    installed().join("peers")
}

/// Python, with the SDK of both eras.
pub(crate) fn python() -> Option<PathBuf> {
    Some(installed().join("py2/bin/python")).filter(|python| python.exists())
}

/// The reference server in TypeScript, through `npx`.
pub(crate) fn everything() -> Option<Vec<String>> {
    let node = installed().join("node");
    node.join(".done").exists().then(|| {
        let prefix = node.to_string_lossy().into_owned();
        ["npx", "--prefix", &prefix, "mcp-server-everything", "stdio"].map(str::to_owned).to_vec()
    })
}
