//! Logins with real processes: `linetender login`, shims and gateways, against a real authorization server (npm oidc-provider,
//! see `tools/real-auth`). Where that is not installed there is nothing to test against, and each test says so.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

#[path = "../agent/mod.rs"]
mod agent;
mod browser;
mod canaries;
#[path = "../serve/echoes.rs"]
mod echoes;
mod kit;
mod logins;
mod many;
mod provider;
mod shared;
mod words;
