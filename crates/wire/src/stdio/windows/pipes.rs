//! Pipes to a server: our end never blocks, its end is as plain as a program expects.
//!
//! Anonymous pipes of this system always block, so each pipe is a named one with a single pair of ends, both of which are opened
//! here. The name is unguessable, only our user may open it, and nobody may have opened it before.

#![allow(unsafe_code, reason = "both ends of a pipe are made by raw calls, and owned at once")]

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::windows::io::{FromRawHandle as _, IntoRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};

use tokio::net::windows::named_pipe::NamedPipeServer;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CreateFileW, FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, FILE_READ_ATTRIBUTES,
    FILE_WRITE_ATTRIBUTES, OPEN_EXISTING, PIPE_ACCESS_DUPLEX, PIPE_ACCESS_INBOUND,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_WAIT,
};

use crate::windows::{OnlyUser, Thing};

/// How much a pipe holds, as on other systems.
pub(super) const HOLDS: u32 = 64 * 1024;

/// Both ends of a pipe.
pub(super) struct Pipe {
    pub(super) ours: NamedPipeServer,
    /// Nobody inherits it unless that is said.
    pub(super) theirs: OwnedHandle,
}

impl Pipe {
    /// One that we write to.
    ///
    /// Our end can be read from as well, and theirs cannot be written to: a read of ours ends only when theirs is closed, and that
    /// is how we learn of it.
    pub(super) fn down() -> io::Result<Self> {
        Self::new(PIPE_ACCESS_DUPLEX, GENERIC_READ | FILE_WRITE_ATTRIBUTES, PIPE_TYPE_BYTE)
    }

    /// One that we read from.
    pub(super) fn up() -> io::Result<Self> {
        Self::new(PIPE_ACCESS_INBOUND, GENERIC_WRITE | FILE_READ_ATTRIBUTES, PIPE_TYPE_BYTE)
    }

    /// One that we read from, with what was written at once kept together.
    #[cfg(test)]
    pub(super) fn of_messages() -> io::Result<Self> {
        use windows_sys::Win32::System::Pipes::PIPE_TYPE_MESSAGE;
        Self::new(PIPE_ACCESS_INBOUND, GENERIC_WRITE | FILE_READ_ATTRIBUTES, PIPE_TYPE_MESSAGE)
    }

    fn new(ours: u32, theirs: u32, kind: u32) -> io::Result<Self> {
        let name = name();
        let owner = OnlyUser::of(Thing::Pipe)?;
        let attributes = owner.attributes();
        // SAFETY: name and attributes outlive the call.
        let server = unsafe {
            CreateNamedPipeW(
                name.as_ptr(),
                ours | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
                kind | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
                1,
                HOLDS,
                HOLDS,
                0,
                &raw const attributes,
            )
        };
        let server = owned(server)?;
        // SAFETY: the name outlives the call; no attributes, so nobody inherits it.
        let client = unsafe { CreateFileW(name.as_ptr(), theirs, 0, null(), OPEN_EXISTING, 0, null_mut()) };
        let theirs = owned(client)?;
        // SAFETY: it is a named pipe's, opened for overlapped use, and handed over.
        let ours = unsafe { NamedPipeServer::from_raw_handle(server.into_raw_handle()) }?;
        Ok(Self { ours, theirs })
    }
}

fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a new handle, and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Keys of the system's random numbers are behind it, new ones each time.
fn name() -> Vec<u16> {
    let (one, other) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
    let name = format!(r"\\.\pipe\linetender-{}-{one:016x}{other:016x}", std::process::id());
    name.encode_utf16().chain([0]).collect()
}
