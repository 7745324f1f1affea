//! OAuth logins that stay, for every process of a user.
//!
//! A [`Store`] holds logins on disk. A person makes one with [`Login`]; a line asks [`LoginKeys`] for the token to send, and
//! again when the server refused it. A token is renewed in one transaction that all processes share, so that of any number
//! of callers in any number of processes one asks the authorization server, and the others use what it got.
//!
//! [`HeaderKeys`] are for credentials that other programs keep: headers out of files and commands, read again at every
//! question.
//!
//! [`Bearers`] are for the other side: the tokens that agents present to the gateway.
//!
//! Nothing here opens a browser. **No stable interface** yet.

mod account;
mod address;
mod assertion;
mod bearer;
mod challenge;
mod client;
mod discover;
mod encode;
mod error;
mod headers;
mod keys;
mod login;
mod loopback;
mod metadata;
mod register;
mod renew;
mod scopes;
mod secret;
mod store;
mod system;
mod tasks;
mod token;
mod visitor;

pub use account::{Account, LoggedOut, Standing, list, logout, logout_through};
pub use bearer::{
    Audience, BearerRules, Bearers, By, JwtRules, Known, NewToken, Refused, TokenEntry, TokenFile, check_name,
};
pub use challenge::Challenge;
pub use client::{Algorithm, Client, Grant, PrivateKey};
pub use error::{Error, ErrorKind};
pub use headers::{HeaderKeys, Source};
pub use keys::LoginKeys;
pub use linetender_wire::http::{Asker, Endpoint};
pub use login::{LoggedIn, Login, Pending, Prepared};
pub use loopback::Loopback;
pub use secret::Secret;
pub use store::Store;
pub use visitor::{FirstRedirect, Visitor};
