//! Whether this machine slept: the clock that counts sleep and the one that stands still meanwhile have come apart.

#[cfg(all(target_os = "linux", not(linetender_portable)))]
#[path = "slept/linux.rs"]
mod system;
#[cfg(all(target_os = "macos", not(linetender_portable)))]
#[path = "slept/macos.rs"]
mod system;
#[cfg(all(any(all(test, target_os = "linux"), target_os = "macos"), not(linetender_portable)))]
mod ticks;
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
mod watch;

#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
pub use watch::{SleepWatch, Slept};

/// The shortest sleep that is told. The two clocks are read one after the other, so a little is always between them.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
const SHORTEST: std::time::Duration = std::time::Duration::from_secs(1);

/// One watch for all lines of a rig. This system does not tell.
#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
#[derive(Clone, Debug, Default)]
pub struct SleepWatch(());

/// Watches for sleep. This system does not tell.
#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
#[derive(Debug)]
pub struct Slept(());

#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
impl SleepWatch {
    /// Begins to watch.
    pub fn watch(&self) -> Slept {
        Slept(())
    }
}

#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
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
