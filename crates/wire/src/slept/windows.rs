//! By the two clocks, which are looked at now and then.

#![allow(unsafe_code, reason = "neither clock has a safe wrapper")]

use std::time::Duration;

use tokio::sync::watch;
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;

/// How long the machine has slept since it was started.
// Microsoft's page on interrupt time: GetTickCount64 counts sleep and hibernation, unbiased interrupt time (in units of 100 ns) does not.
pub(super) fn apart() -> Duration {
    let mut awake = 0;
    // SAFETY: there is room for the number; the other call takes nothing.
    let (counts_sleep, told) = unsafe { (GetTickCount64(), QueryUnbiasedInterruptTime(&raw mut awake)) };
    if told == 0 {
        return Duration::ZERO;
    }
    Duration::from_millis(counts_sleep).saturating_sub(Duration::from_nanos(awake.saturating_mul(100)))
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(super) fn start() -> Option<watch::Receiver<()>> {
    Some(super::ticks::start(apart))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::apart;

    /// Both stand in steps of up to 16 ms.
    #[tokio::test]
    async fn the_two_clocks_go_together_while_the_machine_is_awake() {
        let before = apart();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let after = apart();
        assert!(after.abs_diff(before) < Duration::from_millis(100), "{before:?}, {after:?}");
    }
}
