//! What there is to see of a pipe that somebody gave us.

#![allow(unsafe_code, reason = "the state of a pipe has no safe wrapper")]

use std::os::windows::io::{AsHandle, AsRawHandle as _};

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_PIPE_CLOSING_STATE, FILE_PIPE_DISCONNECTED_STATE, FILE_PIPE_LOCAL_INFORMATION,
    FilePipeLocalInformation, NtQueryInformationFile,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

/// Whether this is a pipe whose other end is closed: what is written to it is lost.
///
/// An anonymous pipe does one thing at a time. If somebody is just writing to it, this waits until that is over: not for a thread that
/// others wait for.
pub fn is_read_by_nobody(pipe: &impl AsHandle) -> bool {
    let mut status = IO_STATUS_BLOCK::default();
    let mut about = FILE_PIPE_LOCAL_INFORMATION::default();
    #[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
    let length = size_of::<FILE_PIPE_LOCAL_INFORMATION>() as u32;
    // SAFETY: the handle is open, and there is room for both answers.
    let answered = unsafe {
        NtQueryInformationFile(
            pipe.as_handle().as_raw_handle(),
            &raw mut status,
            (&raw mut about).cast(),
            length,
            FilePipeLocalInformation,
        )
    };
    // A file or a console is no pipe, and is told so.
    answered == 0 && matches!(about.NamedPipeState, FILE_PIPE_CLOSING_STATE | FILE_PIPE_DISCONNECTED_STATE)
}

#[cfg(test)]
mod tests {
    use super::is_read_by_nobody;

    #[test]
    fn a_pipe_that_is_closed_at_its_other_end_is_read_by_nobody() {
        let (theirs, ours) = std::io::pipe().unwrap();
        assert!(!is_read_by_nobody(&ours));
        drop(theirs);
        assert!(is_read_by_nobody(&ours));
    }

    #[test]
    fn a_file_is_no_pipe() {
        assert!(!is_read_by_nobody(&std::fs::File::open(std::env::current_exe().unwrap()).unwrap()));
    }
}
