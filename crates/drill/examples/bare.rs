//! The bare official Rust SDK between an agent and a server: its server on our pipes, its client behind, and each request
//! handed from one to the other. What an agent has that holds the SDK itself, with nobody who supervises.
//!
//! `bare URL`, or a command and its words in place of the URL; it is what the board calls the bare SDK.
//!
//! Not a binary, because then the SDK would be a dependency of the crate and not only of its tests.

mod sdk;

use std::error::Error;

use rmcp::model::ProtocolVersion;
use rmcp::transport::stdio;
use rmcp::{ClientLifecycleMode, ServiceExt as _};

use sdk::Through;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let through = Through::to(std::env::args().skip(1), lifecycle).await?;
    through.serve(stdio()).await?.waiting().await?;
    Ok(())
}
