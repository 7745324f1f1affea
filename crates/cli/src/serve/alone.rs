//! A linetender that was built without the fleet.

#![expect(clippy::unused_async, reason = "the other one has to wait")]

use std::sync::Arc;
use std::time::Duration;

use linetender_gateway::config::{Config, Fleet};
use linetender_gateway::{Gateway, Shared};
use linetender_holder::holder::FleetReport;

/// No fleet.
pub(super) enum InFleet {}

impl InFleet {
    pub(super) async fn join(settings: &Fleet, _kept: Duration) -> Result<Option<Arc<Self>>, String> {
        if settings.is_on() {
            return Err("this linetender was built without [gateway.fleet]: build it with --features fleet"
                .to_owned());
        }
        Ok(None)
    }

    pub(super) fn fit(&self, _config: &mut Config) {
        match *self {}
    }

    pub(super) fn shares(&self, _names: Vec<String>, _gateway: &Gateway) {
        match *self {}
    }

    pub(super) fn among(self: &Arc<Self>, _gateway: &Gateway) {
        match **self {}
    }

    pub(super) fn calls(self: &Arc<Self>) -> Shared {
        match **self {}
    }

    pub(super) fn report(&self) -> FleetReport {
        match *self {}
    }

    pub(super) async fn leave(&self) {
        match *self {}
    }

    pub(super) async fn left(&self) {
        match *self {}
    }
}

pub(super) fn shared(_config: &Config) -> Vec<String> {
    Vec::new()
}
