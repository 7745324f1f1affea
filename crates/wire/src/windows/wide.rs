//! Text as this system's calls want it.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt as _;

/// In UTF-16, with a zero behind it.
///
/// # Errors
/// If there is a zero in it: the system would not see what is behind that.
pub(crate) fn wide(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut wide = units(text)?;
    wide.push(0);
    Ok(wide)
}

/// In UTF-16.
///
/// # Errors
/// If there is a zero in it.
pub(crate) fn units(text: &OsStr) -> io::Result<Vec<u16>> {
    let wide: Vec<u16> = text.encode_wide().collect();
    if wide.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it contains a zero character"));
    }
    Ok(wide)
}
