//! What was found, and what to do about it.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// The server does not work.
    Error,
    /// It works, and something will go wrong.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// A word for programs: it stays the same when the text changes.
    pub(super) code: &'static str,
    pub(super) what: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
    /// The last lines of the server's stderr, if they explain something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stderr: Option<String>,
}

impl Finding {
    fn of(severity: Severity, code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        let fix = Some(fix.into()).filter(|fix: &String| !fix.is_empty());
        Self { severity, code, what: what.into(), fix, stderr: None }
    }

    pub(super) fn error(code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::of(Severity::Error, code, what, fix)
    }

    pub(super) fn warning(code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::of(Severity::Warning, code, what, fix)
    }

    pub(super) fn note(code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::of(Severity::Note, code, what, fix)
    }

    pub(super) fn with_stderr(self, stderr: Option<String>) -> Self {
        Self { stderr, ..self }
    }
}
