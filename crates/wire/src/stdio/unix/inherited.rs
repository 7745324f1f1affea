//! The descriptors that our parent left for us.

#![allow(
    unsafe_code,
    reason = "an inherited descriptor can only be adopted by its number; everything else is safe"
)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// Takes over a descriptor that our parent left for us at `wanted`, and one at `also`, keeps them from our children, and closes
/// whatever else above stderr was left open by accident. Only the reaper does this, before it owns any other descriptor.
pub(super) fn adopt<const N: usize>(
    wanted: RawFd,
    also: [Option<RawFd>; N],
) -> io::Result<(OwnedFd, [Option<OwnedFd>; N])> {
    let (mut found, mut others) = (None, [const { None }; N]);
    for fd in open_descriptors() {
        if fd <= 2 {
            continue;
        }
        // SAFETY: the reaper calls this once, first thing, single-threaded; nothing in this process owns a descriptor
        // above 2 yet, so what is open was inherited and is ours to own. The listing's own descriptor is closed by
        // then, and closing it again would only fail.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        if fd == wanted {
            found = Some(owned);
        } else if let Some(at) = also.iter().position(|also| *also == Some(fd)) {
            others[at] = Some(owned);
        }
    }
    let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    for kept in others.iter().flatten().chain([&found]) {
        rustix::io::fcntl_setfd(kept, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((found, others))
}

/// Closes what was left open above stderr. Only for a program that has opened nothing itself yet.
pub(super) fn close() {
    for fd in open_descriptors().into_iter().filter(|fd| *fd > 2) {
        // SAFETY: as above: whoever calls this owns no descriptor above 2 yet.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

/// Where the system lists them.
const LISTED: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };

/// Where it does not, how many numbers are looked at: most of what our parent opened has low ones.
const LOOKED_AT: RawFd = 1024;

fn open_descriptors() -> Vec<RawFd> {
    listed_in(LISTED).unwrap_or_else(|| (0..LOOKED_AT).filter(|fd| is_open(*fd)).collect())
}

fn listed_in(folder: &str) -> Option<Vec<RawFd>> {
    let listed = std::fs::read_dir(folder).ok()?;
    let names = listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let mut numbers: Vec<RawFd> = names.collect();
    // The listing had a descriptor of its own, which is closed by now: only what is still there counts.
    numbers.retain(|fd| is_open(*fd));
    Some(numbers)
}

fn is_open(fd: RawFd) -> bool {
    // SAFETY: the number is only asked about, and nothing else runs in this process that could close it meanwhile.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(fd) }).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::{LISTED, LOOKED_AT, listed_in};

    #[test]
    fn descriptors_with_high_numbers_are_found_too() {
        let null = std::fs::File::open("/dev/null").unwrap();
        // Where the limit is low, nobody has one.
        let Ok(high) = rustix::io::fcntl_dupfd_cloexec(&null, LOOKED_AT + 500) else { return };
        for folder in [LISTED, "/dev/fd"] {
            let listed = listed_in(folder).unwrap();
            assert!(listed.contains(&high.as_raw_fd()) && listed.contains(&null.as_raw_fd()), "{folder}");
        }
    }
}
