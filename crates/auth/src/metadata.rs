//! What servers and authorization servers say about themselves, and where they say it.

use serde::Deserialize;

use crate::address::Address;
use crate::error::{Error, ErrorKind};

/// The longest metadata that is read.
pub(crate) const LONGEST: usize = 256 * 1024;

/// RFC 9728: the metadata of a protected resource.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the specification's")]
pub(crate) struct Resource {
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414 and `OpenID` Connect Discovery: the metadata of an authorization server.
#[derive(Clone, Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the specification's")]
pub(crate) struct Issuer {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) jwks_uri: Option<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    pub(crate) grant_types_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
}

impl Issuer {
    /// MCP 2025-03-26, authorization, "Fallbacks for Servers without Metadata Discovery".
    pub(crate) fn by_default(origin: &str) -> Self {
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            revocation_endpoint: None,
            jwks_uri: None,
            scopes_supported: None,
            grant_types_supported: None,
            token_endpoint_auth_methods_supported: None,
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
        }
    }

    /// MCP 2026-07-28, authorization, "Authorization Code Protection": clients must refuse to proceed if
    /// `code_challenge_methods_supported` is absent.
    pub(crate) fn check_pkce(&self) -> Result<(), Error> {
        let listed = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if listed.iter().any(|method| method == "S256") {
            return Ok(());
        }
        let words = format_args!(
            "the authorization server {} does not say that it supports PKCE with S256, without which a login can be intercepted; its operator has to add code_challenge_methods_supported to its metadata",
            self.issuer
        );
        Err(Error::new(ErrorKind::Metadata, words))
    }

    /// Whether it lists this grant; whoever lists none supports the usual ones.
    pub(crate) fn supports_refresh(&self) -> bool {
        self.grant_types_supported
            .as_ref()
            .is_none_or(|grants| grants.iter().any(|grant| grant == "refresh_token"))
    }
}

/// Where the metadata of a protected resource may be, best first. MCP 2026-07-28, authorization, "Protected Resource Metadata
/// Discovery Requirements": what the challenge names, then with the path, then at the root.
pub(crate) fn resource_places(server: &Address, challenged: Option<&str>) -> Vec<String> {
    let well_known = format!("{}/.well-known/oauth-protected-resource", server.origin());
    let mut places: Vec<String> = challenged.map(str::to_owned).into_iter().collect();
    for place in [format!("{well_known}{}", server.path()), well_known] {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Where the metadata of an authorization server may be, best first. MCP 2026-07-28, authorization, "Authorization Server
/// Metadata Discovery".
pub(crate) fn issuer_places(issuer: &Address) -> Vec<String> {
    let (origin, path) = (issuer.origin(), issuer.path());
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{Issuer, issuer_places, resource_places};
    use crate::address::Address;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        let server = Address::of_server("https://h:8443/public/mcp?x=y").unwrap();
        let known = "https://h:8443/.well-known/oauth-protected-resource";
        assert_eq!(resource_places(&server, None), [format!("{known}/public/mcp"), known.to_owned()]);
        assert_eq!(resource_places(&server, Some("https://h:8443/own"))[0], "https://h:8443/own");
        assert_eq!(resource_places(&server, Some(known)).len(), 2);
        let root = Address::of_server("https://h/").unwrap();
        assert_eq!(resource_places(&root, None), ["https://h/.well-known/oauth-protected-resource"]);
        let tenant = Address::of_server("https://as.example.com/tenant1").unwrap();
        assert_eq!(
            issuer_places(&tenant),
            [
                "https://as.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://as.example.com/.well-known/openid-configuration/tenant1",
                "https://as.example.com/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(issuer_places(&root).len(), 2);
    }

    #[test]
    fn without_s256_there_is_no_login() {
        let mut issuer = Issuer::by_default("https://h");
        issuer.check_pkce().unwrap();
        for methods in [None, Some(vec![]), Some(vec!["plain".to_owned()])] {
            issuer.code_challenge_methods_supported = methods;
            let words = issuer.check_pkce().unwrap_err().to_string();
            assert!(words.contains("S256") && words.contains("https://h"), "{words}");
        }
    }
}
