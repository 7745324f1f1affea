//! How many descriptors this process may have. Each server takes a handful, and the usual limit is a thousand.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the limit was before it was raised: servers get that one. Some cannot live with a large one.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one, once.
pub fn raise_descriptor_limit() {
    BEFORE.get_or_init(|| {
        let before = getrlimit(Resource::Nofile);
        // If it may not be raised, it stays: whoever runs out of descriptors is told so then.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum });
        before
    });
}

/// The soft limit that servers are to have, if it was raised.
pub(super) fn before() -> Option<u64> {
    BEFORE.get().and_then(|before| before.current)
}

/// Sets the soft limit back, for a server that is about to be started.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
pub(super) fn set_back(soft: u64) {
    let now = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum: now.maximum });
}
