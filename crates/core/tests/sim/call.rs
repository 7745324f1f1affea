//! A caller's call, and what it was told.

use linetender_core::{
    Delivery, Generation, Held, Instant, Record, RetryOn, RetryReason, Safety, ServerRefusal,
};

use crate::server::Try;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Not made yet, or waiting out a repair.
    Away,
    /// Before the gate.
    AtGate(Held),
    /// Its outcome is unknown, and the next generation's tool list decides.
    Asking { until: Instant },
    /// Registered.
    In(Generation),
    /// It has its outcome.
    Done,
}

/// What its caller was told.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub delivery: Delivery,
}

#[derive(Debug)]
pub struct Call {
    pub safety: Safety,
    pub deadline: Instant,
    pub record: Record,
    pub place: Place,
    pub tries: u32,
    pub outcome: Option<Outcome>,
    /// Whether a generation that might get it again declared it safe.
    pub declared_safe: bool,
}

impl Call {
    pub fn new(safety: Safety, deadline: Instant) -> Self {
        Self {
            safety,
            deadline,
            record: Record::new(safety),
            place: Place::Away,
            tries: 0,
            outcome: None,
            declared_safe: false,
        }
    }

    /// Whether its user permits that it runs twice, whatever the server answers.
    pub fn may_run_twice(&self, retry_on: RetryOn) -> bool {
        match self.safety {
            Safety::Protocol | Safety::Listed => true,
            Safety::Read => retry_on.contains(RetryReason::Reads),
            Safety::Annotated => self.declared_safe,
            Safety::Unsafe => false,
        }
    }
}

/// What the world knows of one try.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truth {
    pub runs: u32,
    /// What the server said instead of an answer, whether it ran the call or not.
    pub refused: Option<ServerRefusal>,
    pub verdict: Option<Delivery>,
}

pub type Truths = std::collections::BTreeMap<Try, Truth>;
