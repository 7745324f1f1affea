//! Tokens that could not be written to the disk. They are the only ones that are still good, so this process uses them from
//! memory until they can be written.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::record::{Credential, Granted};
use crate::secret::Secret;

/// By the name of the credential's file, and then by server.
#[derive(Default)]
pub(super) struct Unsaved(Mutex<HashMap<String, HashMap<String, Kept>>>);

struct Kept {
    /// The refresh token that is on the disk in its place. If another one is there, somebody has logged in since.
    replaces: Option<Secret>,
    granted: Granted,
}

impl Unsaved {
    pub(super) fn keep(&self, file: String, server: String, replaces: Option<Secret>, granted: Granted) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(file).or_default().insert(server, Kept { replaces, granted });
    }

    /// Puts what is newer into what was read from the disk.
    pub(super) fn add_to(&self, file: &str, credential: &mut Credential) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = all.get_mut(file) else { return };
        kept.retain(|server, kept| {
            let stored = credential.grants.get_mut(server).filter(|stored| stored.refresh == kept.replaces);
            stored.map(|stored| *stored = kept.granted.clone()).is_some()
        });
    }

    /// It is on the disk.
    pub(super) fn saved(&self, file: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(file);
    }
}
