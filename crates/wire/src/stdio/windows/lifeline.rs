//! A deadline that a server's processes do not outlive, whatever becomes of us. A job has none: there is nobody to keep it while
//! this process is stopped.

use std::convert::Infallible;
use std::io;

use linetender_core::Instant;

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

    /// There is none.
    pub fn is_over(&self) -> bool {
        match self.0 {}
    }
}
