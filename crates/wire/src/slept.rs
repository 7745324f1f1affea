//! Whether this machine slept: the clock that counts sleep and the one that stands still meanwhile have come apart.

#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod linux;

#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub use linux::{SleepWatch, Slept};

/// One watch for all lines of a rig. This system does not tell.
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[derive(Clone, Debug, Default)]
pub struct SleepWatch(());

/// Watches for sleep. This system does not tell.
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[derive(Debug)]
pub struct Slept(());

#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
impl SleepWatch {
    /// Begins to watch.
    pub fn watch(&self) -> Slept {
        Slept(())
    }
}

#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
impl Slept {
    /// Watches nothing.
    pub const fn never() -> Self {
        Self(())
    }

    /// Nobody says that this machine slept.
    pub async fn wait(&mut self) -> std::time::Duration {
        std::future::pending().await
    }
}
