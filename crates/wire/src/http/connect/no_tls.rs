//! A build without TLS: a secure address is a matter of configuration.

use super::{Counted, OverTcp};
use crate::http::broken::{Broken, Phase};
use crate::http::endpoint::Endpoint;

/// Nobody is trusted.
#[derive(Clone)]
pub(super) struct Tls;

impl Tls {
    pub(super) const fn of_this_machine() -> Self {
        Self
    }

    pub(super) const fn nobody() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as with TLS")]
    pub(super) fn and(&self, _: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "as with TLS")]
    pub(super) const fn roots(&self) -> usize {
        0
    }
}

#[expect(clippy::unused_async, reason = "stands in for one that waits")]
pub(super) async fn secure(
    _: Counted<OverTcp>,
    to: &Endpoint,
    _: &Tls,
) -> Result<(Counted<OverTcp>, bool), Broken> {
    Err(Broken::unsent(Phase::Url, format_args!("{to} needs TLS, and this build has no TLS support")))
}
