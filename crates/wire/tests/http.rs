//! The HTTP client's connections against peers that misbehave, over real sockets.

#[path = "http/peer.rs"]
mod peer;

#[path = "http/event_stream.rs"]
mod event_stream;
#[path = "http/http2.rs"]
mod http2;
#[path = "http/plain.rs"]
mod plain;
#[path = "http/proxy.rs"]
mod proxy;
#[path = "http/resumed.rs"]
mod resumed;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/tls.rs"]
mod tls;
#[path = "http/unattended.rs"]
mod unattended;
