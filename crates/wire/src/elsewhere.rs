//! What a simulation puts in the system's place, as a part of a configuration.

use std::fmt;
use std::sync::Arc;

/// Some other place than the system: it is the same if it is the very same.
pub struct Elsewhere<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> Clone for Elsewhere<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> fmt::Debug for Elsewhere<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl<T: ?Sized> PartialEq for Elsewhere<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for Elsewhere<T> {}
