//! Unix sockets: a file in a folder of the user's own, and the kernel says who is at the other end.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::{Pid, test_kill_process};

use crate::trusted;
pub(in crate::holder) use crate::trusted::check_socket;

pub(in crate::holder) type Listener = tokio::net::UnixListener;
pub(in crate::holder) type Stream = tokio::net::UnixStream;

/// Binds the socket of this process, for this user alone. One that is there already was left behind by a dead process of our number.
pub(in crate::holder) fn bind(path: &Path) -> io::Result<Listener> {
    let listener = match Listener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let refused = std::os::unix::net::UnixStream::connect(path).is_err();
            if !refused {
                // Numbers repeat between containers that share a folder.
                return Err(error);
            }
            fs::remove_file(path)?;
            Listener::bind(path)?
        }
        bound => bound?,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to whoever listens there.
pub(in crate::holder) async fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path).await
}

/// Checks who is at the other end.
pub(in crate::holder) fn check_peer(stream: &Stream) -> io::Result<()> {
    trusted::check_user(stream.peer_cred()?.uid())
}

/// Whether there is a process of this number.
pub(in crate::holder) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
