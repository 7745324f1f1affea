//! What the server over HTTP and the proxy really do on the wire: a drill that does not do what it says proves nothing.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]

mod command;
mod cuts;
mod eras;
mod floods;
mod kit;
mod proxy;
mod refusals;
mod secure;
mod sessions;
mod sockets;
mod sse_door;
mod streams;
