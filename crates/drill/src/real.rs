//! Real servers, where `tools/real-servers` has installed them.

use std::path::PathBuf;

/// What to say where they are not.
pub(crate) const MISSING: &str = "not installed: run tools/real-servers";

/// A small server on the official Python SDK; its argument is its book.
pub(crate) const PYTHON_SERVER: &str = include_str!("../real/server_mcp.py");

/// The folder beside this program's, else that of the repository we are in. It is looked for when it is needed: a path that is
/// compiled in would be the builder's.
fn installed() -> PathBuf {
    let (program, here) = (std::env::current_exe(), std::env::current_dir());
    let (program, here) = (program.unwrap_or_default(), here.unwrap_or_default());
    let beside =
        program.ancestors().filter(|folder| folder.ends_with("target")).map(|folder| folder.join("real"));
    let around = here.ancestors().filter(|folder| folder.join("tools/real-servers").is_file());
    let mut places = beside.chain(around.map(|folder| folder.join("target/real")));
    places.find(|place| place.is_dir()).unwrap_or_else(|| PathBuf::from("target/real"))
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
