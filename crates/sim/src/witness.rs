//! What linetender reports of each call: how often it sent it, and how often it said that it sends it again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use linetender::{Outcome, Receipt, Retry, UnderWay, Witness};

/// How often a call was sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// By the account at its end.
    pub attempts: u32,
    /// By what was told each time.
    pub retries: u32,
}

/// Hears what a line reports.
#[derive(Clone, Default)]
pub(crate) struct Reports(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    retries: BTreeMap<u64, u32>,
    sent: BTreeMap<String, Sent>,
}

impl Reports {
    /// Of calls that have ended, by nonce.
    pub(crate) fn sent(&self) -> BTreeMap<String, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sent.clone()
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reports")
    }
}

impl Witness for Reports {
    fn came(&self, _: &Arc<UnderWay>, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }

    fn retried(&self, call: &Arc<UnderWay>, _: Retry) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).retries.entry(call.number).or_default() += 1;
    }

    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let retries = heard.retries.remove(&call.number).unwrap_or(0);
        let params = outcome.params.and_then(|params| serde_json::from_str::<serde_json::Value>(params).ok());
        if let Some(nonce) = params.as_ref().and_then(|params| params["arguments"]["nonce"].as_str()) {
            heard.sent.insert(nonce.to_owned(), Sent { attempts: outcome.attempts, retries });
        }
        None
    }
}
