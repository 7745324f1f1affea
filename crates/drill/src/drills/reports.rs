//! What our library reports of the calls that it made: how often it sent each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use linetender::{Outcome, Receipt, UnderWay, Witness};
use serde_json::Value;

/// Attempts, by nonce.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<BTreeMap<String, u32>>>);

impl Reports {
    /// Those of calls that have ended since the last time.
    pub(crate) fn take(&self) -> BTreeMap<String, u32> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Witness for Reports {
    fn came(&self, _: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn ended(&self, _: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let params = outcome.params.and_then(|params| serde_json::from_str::<Value>(params).ok());
        if let Some(nonce) = params.as_ref().and_then(|params| params["arguments"]["nonce"].as_str()) {
            let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            sent.insert(nonce.to_owned(), outcome.attempts);
        }
        None
    }
}
