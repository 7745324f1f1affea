//! Lines to MCP servers that come back by themselves.
//!
//! A [`Line`] is a supervised connection to one server, for the life of the process. It notices when the server dies,
//! ends the calls that were under way with an error that says why, starts the server again, and never runs a call twice
//! without permission.
//!
//! ```no_run
//! use linetender::{Line, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let line = Line::open(Server::stdio("everything", ["npx", "-y", "@modelcontextprotocol/server-everything"]));
//! let result = line.call_tool("echo", r#"{"message":"hello"}"#).await?;
//! println!("{}", result.result());
//! line.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A program that holds lines to child processes calls [`reaper::run_if_asked`] first thing in `main`, or names a
//! `linetender` or `linetender-reaper` binary with [`Server::reaper`].

mod audience;
mod call;
mod catalogue;
mod clock;
mod dial;
mod dial_gate;
mod entry;
mod error;
pub mod holder;
pub mod journal;
mod ledger;
mod line;
mod listen;
mod memory;
mod private;
#[cfg(all(test, shuttle))]
mod races;
mod reach;
mod rig;
mod server;
pub mod session;
mod status;
mod sync;
mod tender;
mod turns;
mod wishes;

pub use call::{Answer, Deadline, Options};
pub use catalogue::{Catalogue, Change, Kind};
pub use error::{CallError, CallErrorKind};
pub use line::{Event, Line};
pub use linetender_core::{Invalid, Policy, ProbePolicy, ServerState, Settings, Span};
pub use linetender_wire::Redacted;
pub use linetender_wire::handshake::{Era, Eras, Hello};
pub use linetender_wire::stdio::reaper;
pub use linetender_wire::stdio::{Env, Program};
pub use memory::Memory;
pub use rig::{Rig, RigChange};
pub use server::{Server, Stderr, ToolErrors, pass_stderr_to};
pub use status::{Status, Why};
