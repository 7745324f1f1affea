//! There are no signals here whose dispositions could be inherited.

/// Nothing happens.
pub const fn own() {}

/// Does this. A thread takes no signals here.
pub fn blocked<T>(work: impl FnOnce() -> T) -> T {
    work()
}
