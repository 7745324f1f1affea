//! A deadline that a server's processes do not outlive, whatever becomes of us. A job has none: there is nobody to keep it while
//! this process is stopped.

#![allow(unsafe_code, reason = "the clock that goes on while the machine sleeps has no safe wrapper")]

use std::convert::Infallible;
use std::io;

use linetender_core::Instant;
use windows_sys::Win32::System::SystemInformation::GetTickCount64;

/// The timer. There is none.
#[derive(Debug)]
pub struct Lifeline(Infallible);

impl Lifeline {
    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn new(_until: Instant) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is none.
    ///
    /// # Errors
    /// Never: there is none.
    pub fn extend(&self, _until: Instant) -> io::Result<()> {
        match self.0 {}
    }

    /// The clock that one would go by: since the machine was started, and on while it sleeps.
    pub fn now() -> Instant {
        // SAFETY: it takes nothing.
        Instant::from_nanos(unsafe { GetTickCount64() }.saturating_mul(1_000_000))
    }

    /// There is none.
    pub fn is_over(&self) -> bool {
        match self.0 {}
    }
}
