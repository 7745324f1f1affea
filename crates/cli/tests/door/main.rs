//! The rows of the fault catalogue as an agent sees them: through `linetender run`, a process with two pipes.
//!
//! The library has the same rows in `line/tests`; here a whole door stands between. Each test is named by its row, and
//! ends with [`Door::closes`](kit::Door::closes): the pipe was open to the end, every call had exactly one outcome, the
//! checker found nothing in the server's own book that an agent was told otherwise, and no process is left.
//!
//! | row | not here, because |
//! |---|---|
//! | S19, S20 | an agent cannot ask for a planned end or a redial: library and gateway only. What is free over HTTP is H08 |
//! | H02a | needs a network namespace, and twenty seconds: `cli/tests/soaks/http.rs` |
//! | H02b, the redial | two probes of an idle line, five seconds each: `line/tests/http/network.rs` |
//! | H10, -32022 | this line speaks one modern version; a server that refuses it is one of the other era: H15 |
//! | H16, drip | ends by a call's own time, which is the agent's: it takes the call back |

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]
#![allow(clippy::needless_pass_by_value, reason = "arguments are written where they are passed")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]

#[path = "../agent/mod.rs"]
mod agent;
mod deaths;
mod exchanges;
mod full;
mod hangs;
mod kit;
mod look;
mod network;
mod odd;
mod sessions;
mod starts;
mod streams;
mod told;
mod web;
