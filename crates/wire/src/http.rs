//! Streamable HTTP: events, headers, connections, what a response means, and the generation made of them.
//!
//! A POST and its answer are a pair, and that pair is all we ever know of a call over HTTP. So every part here keeps the
//! facts of that pair: whether a byte of it was written, how its exchange broke, what a status says about the call and,
//! apart from that, about the line. Nothing here sends anything twice.

mod ask;
mod broken;
mod connect;
mod cookies;
mod endpoint;
pub mod headers;
mod key;
pub mod meaning;
mod pool;
mod remote;
pub mod sse;

pub use ask::{Asker, Reply};
pub use broken::{Broken, Phase};
#[doc(hidden)]
pub use connect::network;
pub use connect::{Proxies, Surroundings, Waits};
pub use endpoint::{Endpoint, URL_LIMIT};
pub use key::{KeyRefused, KeySlot, SentKey};
pub use pool::{Begun, Body, Pool, Request, Response, Settings};
pub use remote::{Approach, Pings, Remote, Way};

/// What some servers begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
