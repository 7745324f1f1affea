//! A transport for [`rmcp`] that never dies.
//!
//! An `rmcp` client ends with its transport, and a transport to a child process ends with the child: every call after
//! that is "transport closed", until somebody builds the client anew. The transport of this crate is an agent's session on
//! a supervised line. The server behind it may die as often as it likes; the client lives on, the server is started again,
//! and each call gets its answer or an error that says what happened and whether the call may have run.
//!
//! One line of a program changes, where it serves its handler:
//!
//! ```no_run
//! use linetender::Server;
//! use rmcp::ServiceExt as _;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Before: let client = ().serve(TokioChildProcess::new(command)?).await?;
//! let server = Server::stdio("everything", ["npx", "-y", "@modelcontextprotocol/server-everything"]);
//! let client = ().serve(linetender_rmcp::transport(server)).await?;
//! println!("{} tools", client.list_all_tools().await?.len());
//! client.cancel().await?;
//! # Ok(())
//! # }
//! ```
//!
//! and one is added first thing in `main`, where the server is a program: [`linetender::reaper::run_if_asked`]. Without it
//! `linetender` has to be on `PATH`, or the server is not started and every call says which line to add.
//!
//! # What a client sees of a death
//!
//! A call of a tool that the server could not answer is a result with `is_error`, in words for a model; `_meta.linetender`
//! has them for programs. ([`Server::tool_errors`](linetender::Server::tool_errors) makes it an error instead.) Every other
//! request ends with [`ServiceError::McpError`](rmcp::ServiceError::McpError), whose
//! code lies outside JSON-RPC's reserved range and whose `data.source` is `"linetender"`.
//!
//! The client's own deadline is the only one: a call without one waits for as long as the server lives.
//!
//! # What `rmcp` cannot read
//!
//! A message that is not one of `rmcp`'s models never becomes silence. An answer becomes an error for its request that says
//! what could not be read; a question of the server's is answered with such an error; a notification is dropped. A result of a
//! shape that `rmcp` does not know passes, for it has a model for just that: `CustomResult`, which its typed calls report
//! as `UnexpectedResponse`.

mod read;
mod transport;

pub use transport::{Closed, SessionTransport, shared, transport, transport_on};

/// What stands in the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
