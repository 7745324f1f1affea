//! Whether this machine slept: the clock that counts sleep and the one that stands still meanwhile have come apart.

#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod linux;

#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub use linux::Slept;

/// Watches for sleep. This system does not tell.
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[derive(Debug)]
pub struct Slept(());

#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
impl Slept {
    /// Begins to watch.
    pub fn watch() -> Self {
        Self(())
    }

    /// Watches nothing.
    pub const fn never() -> Self {
        Self(())
    }

    /// Nobody says that this machine slept.
    pub async fn wait(&mut self) -> std::time::Duration {
        std::future::pending().await
    }
}
