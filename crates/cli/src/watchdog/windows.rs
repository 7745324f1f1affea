//! Nobody: what starts a program on Windows, and is no service manager of its own kind, looks at its process alone.

/// Never ends.
pub(crate) async fn run() -> std::convert::Infallible {
    std::future::pending().await
}

/// Nothing happens.
pub(crate) const fn ends() {}
