//! Whether a session's principal may still have it.

use std::sync::{Arc, PoisonError};

use super::Session;
use crate::front::Front;
use crate::front::shown::{Credential, Credentials};
use crate::listing::Endpoint;
use crate::principal::Principal;

impl Session {
    /// Its principal uses it, and shows this for it.
    pub(in crate::front) fn is_used_with(&self, principal: &Principal, credentials: &Arc<Credentials>) {
        let mut credential = self.credential.lock().unwrap_or_else(PoisonError::into_inner);
        if !credential.as_ref().is_some_and(|credential| credential.is_shown_by(principal)) {
            *credential = Some(credentials.shown_by(principal));
        }
    }

    /// Whether its principal may not have it any more: what was shown for it was taken back, or its server, which is still there, is
    /// not for this principal now.
    pub(in crate::front) fn is_shut_out(&self, front: &Front) -> bool {
        let credential = self.credential.lock().unwrap_or_else(PoisonError::into_inner);
        if credential.as_ref().is_some_and(Credential::was_taken_back) {
            return true;
        }
        drop(credential);
        let (Endpoint::One(name), Some(number)) = (&self.endpoint, self.berth) else { return false };
        front.gateway.has_server(number) && front.berth(&self.principal, name) != Some(number)
    }
}
