//! From a configured server to its keys: where a line gets credentials that change.
//!
//! A server at an address gets them from a login, unless its configuration names another source. The logins of this user are in
//! one store in the state folder, which all processes share.

mod client;
mod command;
mod unable;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use linetender::{HttpServer, Keys};
use linetender_auth::{HeaderKeys, LoginKeys, Secret, Source, Store};
use linetender_gateway::config::{Auth, Config, OAuth};

use crate::places;
pub(crate) use client::client;
pub(crate) use command::{by_name, by_url};
use unable::Unable;

/// What the store's folder is called in the state folder.
const FOLDER: &str = "auth";

/// How a file begins that a header names.
pub(crate) const FILE: &str = "${file:";

/// Makes keys. The store is opened when the first server needs it.
#[derive(Debug, Default)]
pub(crate) struct KeyMaker {
    store: OnceLock<Result<Store, String>>,
}

/// The logins of this user.
pub(crate) fn store() -> Result<Store, String> {
    let state = places::state();
    let state = state.ok_or_else(|| format!("there is no folder for logins: {}", places::UNKNOWN))?;
    Store::open(state.join(FOLDER)).map_err(|error| error.to_string())
}

impl KeyMaker {
    /// Gives every server of a config file its keys. `path` is that file.
    pub(crate) fn fit(&self, config: &mut Config, path: &Path) {
        for entry in &mut config.servers {
            let Some(server) = entry.server.to_http() else { continue };
            let keys: Arc<dyn Keys> = match &entry.auth {
                Auth::Files(headers) => of_files(headers),
                Auth::Command(argv) => Arc::new(HeaderKeys::new(Source::Command(argv.clone()))),
                Auth::Login(oauth) => self.of_login(oauth, &by_name(entry.server.name(), path)),
                _ => continue,
            };
            entry.server = server.keys(keys).into();
        }
    }

    /// The same for the one server of a shim. Headers that name files are not among those that it has.
    pub(crate) fn fit_one(&self, server: HttpServer, url: &str, headers: &[(String, String)]) -> HttpServer {
        let files: Vec<_> = headers.iter().filter(|(_, value)| value.contains(FILE)).cloned().collect();
        let is_fixed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if !files.is_empty() {
            return server.keys(of_files(&files));
        }
        // A socket is on this machine, and says itself whom it lets in.
        if is_fixed || url.starts_with("unix:") {
            return server;
        }
        let oauth = OAuth { url: url.to_owned(), ..OAuth::default() };
        server.keys(self.of_login(&oauth, &by_url(url)))
    }

    fn of_login(&self, oauth: &OAuth, command: &str) -> Arc<dyn Keys> {
        let made = self.store.get_or_init(store).clone().and_then(|store| {
            LoginKeys::new(&store, &oauth.url, client(oauth)?, command).map_err(|error| error.to_string())
        });
        match made {
            Ok(keys) => Arc::new(keys),
            Err(why) => Arc::new(Unable::new(&why)),
        }
    }
}

fn of_files(headers: &[(String, String)]) -> Arc<dyn Keys> {
    let headers = headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.as_str())));
    Arc::new(HeaderKeys::new(Source::Headers(headers.collect())))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use linetender::{NoKey, Refused, Server};
    use linetender_auth::Store;
    use linetender_gateway::config::{self, OAuth};

    use super::KeyMaker;

    fn maker(name: &str) -> KeyMaker {
        let folder = std::env::temp_dir().join(format!("linetender-keys-{name}-{}", std::process::id()));
        let store = Store::open(folder).map_err(|error| error.to_string());
        KeyMaker { store: store.into() }
    }

    fn server(maker: &KeyMaker, text: &str) -> Server {
        let text = format!("[servers.a]\nurl = 'https://a.example/mcp'\n{text}");
        let mut config = config::load("c.toml", &text, &|_| None).unwrap();
        maker.fit(&mut config, Path::new("/c.toml"));
        config.servers.remove(0).server
    }

    /// G15: also if only the text around a file changes.
    #[test]
    fn a_reload_keeps_a_server_unless_its_credentials_come_from_elsewhere() {
        let maker = maker("reload");
        let texts = [
            "",
            "auth = { scopes = ['a'] }",
            "auth = { client_id = 'a' }",
            "auth = { client_id = 'a', client_secret = 'b', issuer = 'https://i' }",
            "auth = { client_id = 'a', client_secret = 'c', issuer = 'https://i' }",
            "auth = { client_id = 'a', client_secret = 'c', issuer = 'https://i', grant = 'client_credentials' }",
            "auth = { command = ['a'] }",
            "auth = { command = ['a', 'b'] }",
            "headers = { A = '${file:/a}' }",
            "headers = { A = '${file:/b}' }",
            "headers = { A = 'Bearer ${file:/b}' }",
            "headers = { A = 'Token ${file:/b}' }",
            "headers = { A = '${file:/b} ${file:/b}' }",
            "headers = { A = '${file:/b}', B = '' }",
            "headers = { A = '${file:/b}', B = '1' }",
            "headers = { Authorization = 'b' }",
        ];
        for (one, text) in texts.iter().enumerate() {
            for (other, another) in texts.iter().enumerate() {
                let is_same = server(&maker, text) == server(&maker, another);
                assert_eq!(is_same, one == other, "{text:?} {another:?}");
            }
        }
    }

    #[tokio::test]
    async fn nobody_logs_in_without_tls_and_that_is_said_when_the_server_wants_it() {
        let maker = maker("plain");
        let oauth = OAuth { url: "http://a.example/mcp".to_owned(), ..OAuth::default() };
        let keys = maker.of_login(&oauth, "linetender login a");
        assert!(Arc::clone(&keys).key(None).await.unwrap().is_none(), "it may want none");
        let refused = Refused { key: None, status: 401, challenge: "Bearer".into() };
        match keys.key(Some(refused)).await {
            Err(NoKey::Login { words }) => assert!(words.to_string().contains("is not https"), "{words}"),
            other => panic!("{other:?}"),
        }
    }
}
