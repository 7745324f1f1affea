//! Logins against a real authorization server (npm oidc-provider): needs `tools/real-auth`. Without it there is nothing to
//! test against, and each test that needs it says so.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start tasks, and are told by the environment how long to run"
)]

mod act;
mod bearers;
mod browser;
mod discovery;
mod headers;
mod issuer;
mod kills;
mod lines;
mod logins;
mod machine;
mod processes;
mod provider;
mod renewals;
mod scripted;
