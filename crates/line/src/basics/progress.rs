//! Progress of a call, on its way to whoever made it.

use std::sync::Arc;

/// Told of progress: the raw params of each notification, with the caller's own token.
pub(crate) type OnProgress = Arc<dyn Fn(&str) + Send + Sync>;
