//! Whether this machine slept: the clock that counts sleep and the one that stands still meanwhile have come apart.

#[cfg_attr(all(target_os = "linux", not(linetender_portable)), path = "slept/linux.rs")]
#[cfg_attr(all(target_os = "macos", not(linetender_portable)), path = "slept/macos.rs")]
#[cfg_attr(all(windows, not(linetender_portable)), path = "slept/windows.rs")]
#[cfg_attr(
    any(linetender_portable, not(any(target_os = "linux", target_os = "macos", windows))),
    path = "slept/not.rs"
)]
mod system;
#[cfg(any(test, all(any(target_os = "macos", windows), not(linetender_portable))))]
mod ticks;
mod watch;

pub use watch::{SleepWatch, Slept};

/// The shortest sleep that is told. The two clocks are read one after the other, so a little is always between them.
const SHORTEST: std::time::Duration = std::time::Duration::from_secs(1);
