//! Supervised connections to MCP servers: they notice when a server crashes or hangs, and restart it.
//!
//! A [`Line`] is a connection to one server, for the life of the process. When the server dies, the line ends the calls
//! that were under way with an error that says why, starts the server again, and never runs a call twice without
//! permission.
//!
//! ```no_run
//! use linetender::{Line, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let line = Line::open(Server::stdio("everything", ["npx", "-y", "@modelcontextprotocol/server-everything"]));
//! let answer = line.call_tool("echo", serde_json::json!({ "message": "hello" })).await?;
//! println!("{}", answer.text());
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
mod keys;
mod line;
mod outcome;
mod server;
pub mod session;
mod status;
mod tender;

pub use basics::code::Code;
pub use basics::context_loss::ContextLoss;
pub use basics::error::{CallError, CallErrorKind, Phase};
pub use basics::kind::Kind;
pub use basics::next_try::NextTry;
pub use basics::rooms::Rooms;
pub use basics::rpc_error::RpcError;
#[doc(hidden)] // for linetender's gateway
pub use basics::said::Declared;
pub use basics::trace::TraceContext;
#[doc(hidden)] // for linetender's gateway
pub use call::AgentContext;
pub use call::{Answer, Options, Progress, ProgressStream};
#[doc(hidden)] // for linetender's gateway
pub use catalogue::Freshness;
pub use catalogue::{Catalogue, Change, Prompt, Resource, ResourceTemplate, Tool};
pub use keys::{Asked, Key, Keys, NoKey, Refused};
#[doc(hidden)] // for linetender's commands
pub use line::ServerInfo;
pub use line::{Event, Events, Follower, Line, Memory, Page, Raw, Remembered, Rig, RigChange, WeakLine};
pub use linetender_core::{
    Account, Class, Cost, Delivery, Doubt, Evidence, Leaf, Plan, Refusal, ServerRefusal, StateKind as State,
};
pub use linetender_core::{
    BackoffPolicy, BudgetPolicy, CallPolicy, ClosePolicy, DialPolicy, Limits, ParkPolicy, ProbePolicy,
    RetryPolicy,
};
pub use linetender_core::{Invalid, Policy, RetryOn, RetryReason, ServerState, Settings, Tree};
pub use linetender_wire::allocator;
pub use linetender_wire::handshake::{Era, Eras, Hello};
#[doc(hidden)] // for linetender's keeper
pub use linetender_wire::hop;
#[doc(hidden)] // for linetender's commands
pub use linetender_wire::stdio::Process;
pub use linetender_wire::stdio::{LeftBehind, guard, pass_on, raise_descriptor_limit, reaper, signals};
#[cfg(windows)]
#[doc(hidden)] // for the shim, which reads from its agent as we do from servers
pub use linetender_wire::windows::{Reading, is_read_by_nobody};
pub use linetender_wire::{Exit, Redacted, hide as hide_secrets, visible};
#[doc(hidden)]
pub use outcome::Here;
pub use outcome::{Outcome, Receipt, Retry, Stage, Times, UnderWay, Verdict, Witness};
#[doc(hidden)] // for linetender's commands and gateway
pub use server::package;
pub use server::{
    Deadline, HttpServer, HttpTransport, Server, Stderr, StdioServer, ToolErrors, Transport, pass_stderr_to,
    way,
};
pub use status::signs::Health;
pub use status::{Status, Why};

/// What stands in the project's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So does what stands in the crate's.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;
