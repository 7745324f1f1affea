//! What a server said of itself, for people.

use linetender_wire::handshake::{Era, Greeting, MODERN};
use serde::Deserialize;

/// How a server introduced itself.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The era in which it was greeted.
    pub era: Era,
    /// The revision of MCP that is spoken with it, if it named one.
    pub revision: Option<String>,
    /// Its name, if it gave one.
    pub name: Option<String>,
    /// Its version, if it gave one.
    pub version: Option<String>,
}

/// The members of `initialize` and of `server/discover` that name the server and its revision.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Said {
    protocol_version: Option<String>,
    supported_versions: Vec<String>,
    server_info: Option<Implementation>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Option<Implementation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Implementation {
    name: Option<String>,
    version: Option<String>,
}

impl ServerInfo {
    pub(super) fn of(greeting: &Greeting) -> Self {
        let said: Said = serde_json::from_str(&greeting.result).unwrap_or_default();
        let newest = || {
            let speaks_ours = said.supported_versions.iter().any(|version| version == MODERN);
            if speaks_ours { Some(MODERN.to_owned()) } else { said.supported_versions.iter().max().cloned() }
        };
        let revision = match greeting.era {
            Era::Legacy => said.protocol_version,
            Era::Modern => newest(),
        };
        let info = said.server_info.or(said.meta.info).unwrap_or_default();
        Self { era: greeting.era, revision, name: info.name, version: info.version }
    }
}

#[cfg(test)]
mod tests {
    use super::{Era, Greeting, ServerInfo};

    fn of(era: Era, result: &str) -> ServerInfo {
        ServerInfo::of(&Greeting { era, result: result.into() })
    }

    #[test]
    fn a_server_is_named_in_either_era() {
        let legacy = of(
            Era::Legacy,
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"2"}}"#,
        );
        assert_eq!(legacy.revision.as_deref(), Some("2025-06-18"));
        assert_eq!((legacy.name.as_deref(), legacy.version.as_deref()), (Some("s"), Some("2")));
        let modern = of(
            Era::Modern,
            r#"{"supportedVersions":["2026-07-28","2027-01-01"],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m"}}}"#,
        );
        assert_eq!(modern.revision.as_deref(), Some("2026-07-28"), "the one that we speak");
        assert_eq!((modern.name.as_deref(), modern.version), (Some("m"), None));
        assert_eq!(of(Era::Legacy, "7").name, None);
    }
}
