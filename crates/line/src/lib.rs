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
//! # The reaper
//!
//! On Linux each child process runs under a small process of ours, the reaper, so that nothing of it is left behind even if
//! this program is killed. A program that holds lines to child processes therefore begins like this:
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     if let Some(done) = linetender::reaper::run_if_asked() {
//!         return done;
//!     }
//!     // … start a runtime, open lines …
//!     ExitCode::SUCCESS
//! }
//! ```
//!
//! The reaper is the binary named with [`Server::reaper`]; else this program, if it has called
//! [`reaper::run_if_asked`] as above (not inside `#[tokio::main]`); else `linetender-reaper` or `linetender` on `PATH`. If
//! there is none, the server is not started, and every call says which line to add. Test binaries cannot call it first in
//! `main`: there the program on `PATH` is used, or the one that the test names.
//!
//! [`Server::without_reaper`] does without: what leaves the server's process group, or outlives this program, is then not
//! killed.

mod audience;
mod basics;
mod book;
mod call;
mod catalogue;
mod generation;
mod line;
mod server;
pub mod session;
mod status;
mod tender;

pub use basics::code::Code;
pub use basics::error::{CallError, CallErrorKind};
pub use basics::kind::Kind;
pub use call::{Answer, Options};
pub use catalogue::{Catalogue, Change};
pub use line::{Event, Follower, Line, Memory, Page, Remembered, Rig, RigChange, WeakLine};
pub use linetender_core::{Invalid, Policy, ProbePolicy, ServerState, SessionRefusal, Settings};
pub use linetender_wire::Redacted;
pub use linetender_wire::handshake::{Era, Eras, Hello};
pub use linetender_wire::stdio::{Env, Program};
pub use linetender_wire::stdio::{reaper, signals};
pub use server::{Deadline, Server, Stderr, ToolErrors, pass_stderr_to};
pub use status::signs::Health;
pub use status::{Status, Why};

/// What stands in the project's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
