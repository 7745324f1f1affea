//! Whether each call is written down, and how.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::{size, time};

/// The smallest size at which a file is rotated: several of the longest lines.
const SMALLEST: u64 = 256 * 1024;

/// The most files that are kept.
const MOST: u32 = 10_000;

/// Audit file: one line of JSON per call, chained by hashes. Off without `path`.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AuditFile {
    /// The file, by its absolute path; its name ends with `.jsonl`. No two gateways can share one.
    pub path: Option<PathBuf>,
    /// When a line is on disk: `call`: before the agent has its response; `interval`: at most `interval` later.
    pub sync: AuditSync,
    /// How long a line may not be on disk, with `sync = "interval"`.
    #[schemars(schema_with = "time")]
    pub interval: u64,
    /// How long a response waits for its line, with `sync = "call"`.
    #[schemars(schema_with = "time")]
    pub timeout: u64,
    /// What happens to calls while nothing can be written: `refuse` them, or `continue` and write down how many have no line.
    pub on_error: AuditOnError,
    /// What is written of a call's arguments: their SHA-256 (`hash`), also the arguments themselves (`full`), or nothing (`none`).
    pub arguments: AuditArguments,
    /// Size at which the file is rotated: to `NAME.1.jsonl` and so on.
    #[schemars(schema_with = "size")]
    pub rotate: u64,
    /// Number of rotated files to keep; older ones are deleted.
    pub keep: u32,
}

/// When a line of the audit file is on disk.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditSync {
    /// Before the agent has its response.
    #[default]
    Call,
    /// At most `interval` later.
    Interval,
}

/// What happens to calls while the audit file cannot be written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOnError {
    /// They are refused.
    #[default]
    Refuse,
    /// They go on. How many have no line is written down later.
    Continue,
}

/// What the audit file has of a call's arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditArguments {
    /// SHA-256 and size.
    #[default]
    Hash,
    /// The arguments too, of long ones their beginning. They may hold secrets.
    Full,
    /// Nothing.
    None,
}

impl Default for AuditFile {
    fn default() -> Self {
        Self {
            path: None,
            sync: AuditSync::default(),
            interval: 1000,
            timeout: 5000,
            on_error: AuditOnError::default(),
            arguments: AuditArguments::default(),
            rotate: 64 * 1024 * 1024,
            keep: 16,
        }
    }
}

impl AuditFile {
    /// Which setting cannot be so, and why. Only asked if a file has the table.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        let is_named = |path: &Path| path.is_absolute() && path.extension().is_some_and(|end| end == "jsonl");
        let (name, what) = match &self.path {
            None => ("path", "audit needs `path`, such as \"/var/lib/linetender/audit.jsonl\"".to_owned()),
            Some(path) if !is_named(path) => {
                ("path", "audit.path must be an absolute path that ends with .jsonl".to_owned())
            }
            _ if self.interval == 0 => ("interval", "audit.interval must be at least 1ms".to_owned()),
            _ if self.timeout == 0 => ("timeout", "audit.timeout must be at least 1ms".to_owned()),
            _ if self.rotate < SMALLEST => {
                ("rotate", format!("audit.rotate must be at least {}KiB", SMALLEST / 1024))
            }
            _ if !(1..=MOST).contains(&self.keep) => {
                ("keep", format!("audit.keep must be between 1 and {MOST}"))
            }
            _ => return None,
        };
        Some((name, what))
    }
}

#[cfg(test)]
mod tests {
    use super::{AuditArguments, AuditFile, AuditOnError, AuditSync};
    use crate::config::{Config, Problem, load};

    fn read(table: &str) -> Result<Config, Box<Problem>> {
        let text = format!("{table}\n[servers.a]\ncommand = 'x'");
        load("test", &text, &|name| (name == "STATE").then(|| "/var/lib".to_owned()))
    }

    #[test]
    fn no_audit_is_kept_unless_a_file_is_named() {
        assert_eq!(read("").unwrap().gateway.audit, AuditFile::default());
        assert_eq!(AuditFile::default().path, None);
        let strict = read("[gateway.audit]\npath = '${STATE}/audit.jsonl'").unwrap().gateway.audit;
        assert_eq!(strict, AuditFile { path: Some("/var/lib/audit.jsonl".into()), ..AuditFile::default() });
        assert_eq!((strict.sync, strict.on_error), (AuditSync::Call, AuditOnError::Refuse));
        let lenient = read(
            "[gateway.audit]\npath = '/a.jsonl'\nsync = 'interval'\ninterval = '2s'\ntimeout = '1m'\non_error = 'continue'\n\
             arguments = 'full'\nrotate = '1MiB'\nkeep = 3",
        );
        let expected = AuditFile {
            path: Some("/a.jsonl".into()),
            sync: AuditSync::Interval,
            interval: 2000,
            timeout: 60_000,
            on_error: AuditOnError::Continue,
            arguments: AuditArguments::Full,
            rotate: 1 << 20,
            keep: 3,
        };
        assert_eq!(lenient.unwrap().gateway.audit, expected);
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        for (table, line, words) in [
            ("[gateway.audit]", 1, "audit needs `path`"),
            ("[gateway.audit]\nsync = 'call'", 1, "audit needs `path`"),
            ("[gateway.audit]\npath = 'audit.jsonl'", 2, "absolute path that ends with .jsonl"),
            ("[gateway.audit]\npath = '/audit.log'", 2, "absolute path that ends with .jsonl"),
            ("[gateway.audit]\npath = '/a.jsonl'\ninterval = 0", 3, "audit.interval must be"),
            ("[gateway.audit]\npath = '/a.jsonl'\ntimeout = '0s'", 3, "audit.timeout must be"),
            ("[gateway.audit]\npath = '/a.jsonl'\nrotate = '1k'", 3, "at least 256KiB"),
            ("[gateway.audit]\npath = '/a.jsonl'\nkeep = 0", 3, "between 1 and 10000"),
            ("[gateway.audit]\npath = '/a.jsonl'\nsync = 'never'", 3, "unknown variant"),
            ("[gateway.audit]\npath = '/a.jsonl'\nonerror = 'refuse'", 3, "unknown key `onerror`"),
        ] {
            let problem = read(table).unwrap_err();
            assert!(problem.to_string().contains(words), "{table}: {problem}");
            assert_eq!(problem.line(), line, "{table}: {problem}");
        }
    }
}
