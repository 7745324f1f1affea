//! A person who logs in wherever the suite's authorization servers want it: those send everybody back at once.

use std::sync::Arc;

use linetender::Keys;
use linetender_auth::{
    Algorithm, Asker, Client, FirstRedirect, Grant, Login, LoginKeys, PrivateKey, Secret, Store,
};

use super::Outcome;
use super::task::Task;

/// The client's metadata document, at the address that the suite knows.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Where an authorization server sends people back to. Nobody listens there: the address itself is what is wanted.
const REDIRECT: &str = "http://127.0.0.1:8931/callback";

/// Logins of one run, kept until it is over.
pub(super) struct Logins {
    folder: std::path::PathBuf,
    pub(super) keys: Arc<dyn Keys>,
}

impl Logins {
    /// For this scenario.
    pub(super) async fn of(task: &Task) -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("linetender-conformance-{}", std::process::id()));
        let store = Store::open(&folder)?;
        let visitor = FirstRedirect::new(Asker::of_this_machine(), REDIRECT);
        let mut client = client(task)?;
        let has_secret = client.secret.is_some() || matches!(client.grant, Grant::MachineKey(_));
        if has_secret && client.issuer.is_none() {
            // The suite hands out secrets without saying for whom, and linetender sends such a secret nowhere.
            let asking = Login::new(&store, &task.url, Client::default())?.prepare(None);
            client.issuer = Some(asking.await?.issuer().to_owned());
        }
        let keys = LoginKeys::new(&store, &task.url, client, "conformance-client")?;
        Ok(Self { folder, keys: Arc::new(keys.visited_by(Arc::new(visitor))) })
    }
}

impl Drop for Logins {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// As whom to log in: what the scenario says, else as whoever has a metadata document.
fn client(task: &Task) -> Outcome<Client> {
    let text = |name: &str| task.context[name].as_str().map(str::to_owned);
    let id = text("client_id");
    let grant = match (text("private_key_pem"), text("signing_algorithm").as_deref()) {
        (Some(pem), Some("ES256")) => {
            Grant::MachineKey(PrivateKey { pem: Secret::new(pem), algorithm: Algorithm::Es256, key_id: None })
        }
        (Some(pem), Some("RS256")) => {
            Grant::MachineKey(PrivateKey { pem: Secret::new(pem), algorithm: Algorithm::Rs256, key_id: None })
        }
        (Some(_), other) => return Err(format!("no such way to sign: {other:?}").into()),
        (None, _) if task.scenario.starts_with("auth/client-credentials") => Grant::Machine,
        (None, _) => Grant::Person,
    };
    let metadata_url = id.is_none().then(|| METADATA.to_owned());
    let (secret, issuer) = (text("client_secret").map(Secret::new), text("issuer"));
    Ok(Client { id, secret, issuer, metadata_url, grant, ..Client::default() })
}
