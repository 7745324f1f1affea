//! What a process does with signals is inherited: whoever starts us may ignore or block any of them.
//!
//! With SIGCHLD ignored the kernel keeps no exit statuses; with SIGXFSZ at its default a full `ulimit -f` kills us at the
//! next line of a journal; and a server that is started with SIGTERM ignored cannot be asked to go.

#![allow(
    unsafe_code,
    reason = "dispositions can only be changed by a raw call; no handler is ever installed here"
)]

use std::process::Command;

/// Makes this process's signal dispositions its own. A program calls it first thing in `main`: nothing is blocked, exit
/// statuses of children are kept, and writing beyond a limit on file sizes is an error instead of a death.
pub fn own() {
    unblock();
    keep_exit_statuses();
    set(libc::SIGXFSZ, libc::SIG_IGN);
}

/// What a thread does to itself. It is left as it is: whoever handles a fault (Rust, Python's faulthandler) has something to say.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV, libc::SIGSYS, libc::SIGTRAP];

/// Does this while the program's signals are blocked in this thread, so that a thread which it starts takes none: the threads of a
/// library are not to end the program when a server closes its pipe (SIGPIPE), nor to take what the program itself waits for.
pub fn blocked<T>(work: impl FnOnce() -> T) -> T {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the sets are initialised before they are read. What may not be blocked (SIGKILL, those of the C library) is not.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let done = work();
    // SAFETY: it was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    done
}

/// Exit statuses of children are kept. Only an inherited "ignore" is changed: a handler is somebody's decision.
pub(super) fn keep_exit_statuses() {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action only asks for the present one, for which there is room.
    let ignored = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    };
    if ignored {
        set(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Everything at its default and nothing blocked: what a program expects that was just started. SIGPIPE stays ignored here;
/// the standard library resets it in each process that it starts.
pub(super) fn reset() {
    unblock();
    for signal in 1..=LAST {
        if signal != libc::SIGPIPE {
            set(signal, libc::SIG_DFL);
        }
    }
}

/// The same for a process that is about to be started.
pub(super) fn reset_in(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let reset = || {
        reset();
        Ok(())
    };
    // SAFETY: between fork and exec only calls that are safe in a signal handler are made, and nothing is allocated.
    unsafe { command.pre_exec(reset) };
}

#[cfg(target_os = "linux")]
const LAST: libc::c_int = 64;
#[cfg(not(target_os = "linux"))]
const LAST: libc::c_int = 31;

fn set(signal: libc::c_int, disposition: libc::sighandler_t) {
    // SAFETY: no handler is installed, so no code of ours runs in one. What cannot be set (SIGKILL) is refused.
    unsafe { libc::signal(signal, disposition) };
}

fn unblock() {
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised by the first call and read by the second.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}
