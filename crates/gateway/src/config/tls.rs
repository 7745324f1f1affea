//! The files that make the address speak TLS: both are named, or neither.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A file for TLS, by its absolute path: a gateway may be started from anywhere.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "PathBuf", into = "PathBuf")]
pub struct TlsFile(PathBuf);

/// Certificate and key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl TryFrom<PathBuf> for TlsFile {
    type Error = &'static str;

    fn try_from(path: PathBuf) -> Result<Self, &'static str> {
        if path.is_absolute() { Ok(Self(path)) } else { Err("expected an absolute path to a PEM file") }
    }
}

impl From<TlsFile> for PathBuf {
    fn from(file: TlsFile) -> Self {
        file.0
    }
}

/// One of the two is named, and the other is not.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{set} needs {missing}")]
pub(crate) struct Half {
    pub(super) set: &'static str,
    missing: &'static str,
}

impl Half {
    /// What to do about it.
    pub(super) fn help(self) -> String {
        format!("add {} = \"/path/to/file.pem\", or remove {}", self.missing, self.set)
    }
}

/// Both files, if the address is to speak TLS.
pub(super) fn files(certificate: Option<&TlsFile>, key: Option<&TlsFile>) -> Result<Option<TlsFiles>, Half> {
    let (of_certificate, of_key) = ("tls_certificate", "tls_key");
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsFiles { certificate: certificate.0.clone(), key: key.0.clone() }))
        }
        (Some(_), None) => Err(Half { set: of_certificate, missing: of_key }),
        (None, Some(_)) => Err(Half { set: of_key, missing: of_certificate }),
        (None, None) => Ok(None),
    }
}
