//! What is freed goes back to the system.

/// Makes the allocator return large blocks as soon as they are freed, in this whole process: only the `linetender` binary asks for
/// it. By itself glibc keeps blocks of up to 32 MiB for later once one of that size was freed, and a gateway that had a few large
/// messages at a time stays as large as all of them together. Other allocators return memory by themselves.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::set();
}

/// Gives free memory back that lies between blocks in use. It takes milliseconds: not where others wait.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "mallopt and malloc_trim have no safe wrappers")]
mod glibc {
    /// Blocks of this size are the system's own: mapped when they are allocated, unmapped when they are freed. Ordinary messages are
    /// smaller, and never pay for that.
    const LARGE: libc::c_int = 1024 * 1024;

    /// So much may stay free at the end of a heap.
    const SPARE: libc::c_int = 4 * 1024 * 1024;

    /// Beyond one heap for each thread that runs at a time, more heaps are more places where free memory lies about.
    fn heaps() -> libc::c_int {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        threads.max(2).try_into().unwrap_or(libc::c_int::MAX)
    }

    pub(super) fn trim() {
        // SAFETY: malloc_trim takes a number, and locks each heap that it looks at.
        unsafe {
            libc::malloc_trim(0);
        }
    }

    pub(super) fn set() {
        // SAFETY: mallopt takes two numbers, and locks what it changes. If it refuses one, everything is as it was.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE);
            libc::mallopt(libc::M_ARENA_MAX, heaps());
        }
    }
}
