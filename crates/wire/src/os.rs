//! The one seam to the operating system: what safe crates do not offer.

#![allow(
    unsafe_code,
    reason = "an inherited descriptor can only be adopted by its number; everything else is safe"
)]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;

/// Takes over a descriptor that our parent left for us at `wanted`, keeps it from our children, and closes whatever
/// else above stderr was left open by accident. Only the reaper does this, before it owns any other descriptor.
pub(crate) fn adopt_inherited(wanted: RawFd) -> io::Result<OwnedFd> {
    let mut found = None;
    for fd in open_descriptors()? {
        if fd <= 2 {
            continue;
        }
        // SAFETY: the reaper calls this once, first thing, single-threaded; nothing in this process owns a descriptor
        // above 2 yet, so what is open was inherited and is ours to own. The listing's own descriptor is closed by
        // then, and closing it again would only fail.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        if fd == wanted {
            found = Some(owned);
        }
    }
    let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    rustix::io::fcntl_setfd(&found, rustix::io::FdFlags::CLOEXEC)?;
    Ok(found)
}

fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let mut numbers: Vec<RawFd> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
    }
    // The listing had a descriptor of its own, which is closed by now: only what is still there counts.
    numbers.retain(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    Ok(numbers)
}

/// The processes whose parent we are, adopted orphans included.
pub(crate) fn children() -> Vec<Pid> {
    let listed = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
