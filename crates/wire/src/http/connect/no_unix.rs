//! A system without Unix sockets: such an address is a matter of configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Stream;
use super::network::Quiet;
use crate::http::broken::{Broken, Phase};

#[expect(clippy::unused_async, reason = "stands in for one that waits")]
pub(super) async fn connect(path: &Path, _: Duration) -> Result<(Box<dyn Stream>, Arc<dyn Quiet>), Broken> {
    let words = format_args!("unix:{}: this system has no Unix sockets", path.display());
    Err(Broken::unsent(Phase::Url, words))
}
