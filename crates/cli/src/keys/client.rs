//! As whom linetender logs in, as a config file says it.

use linetender_auth::{Algorithm, Client, Grant, PrivateKey, Secret};
use linetender_gateway::config::{self, OAuth};

use super::FILE;

/// Reads the files that it names. Why that cannot be done.
pub(crate) fn client(oauth: &OAuth) -> Result<Client, String> {
    let secret = oauth.client_secret.as_deref();
    let grant = match (oauth.grant, &oauth.private_key) {
        (config::Grant::AuthorizationCode, _) => Grant::Person,
        (config::Grant::ClientCredentials, None) => Grant::Machine,
        (config::Grant::ClientCredentials, Some(path)) => Grant::MachineKey(PrivateKey {
            pem: read(&format!("{FILE}{}}}", path.display()))?,
            algorithm: match oauth.algorithm {
                config::Algorithm::Es256 => Algorithm::Es256,
                config::Algorithm::Rs256 => Algorithm::Rs256,
            },
            key_id: oauth.key_id.clone(),
        }),
    };
    Ok(Client {
        id: oauth.client_id.clone(),
        secret: secret.map(read).transpose()?,
        issuer: oauth.issuer.clone(),
        metadata_url: oauth.client_metadata_url.clone(),
        scopes: oauth.scopes.clone(),
        grant,
    })
}

/// A text with the files that it names.
fn read(template: &str) -> Result<Secret, String> {
    Secret::new(template).with_files()
}
