//! The Unix socket beside the address: this user's alone, and never in the place of something that is not ours.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net as std_unix;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tokio::net::UnixListener;

/// A connection.
pub(in crate::front) type Stream = tokio::net::UnixStream;

/// The user at the other end of one.
pub(in crate::front) fn owner(stream: &Stream) -> Option<u32> {
    stream.peer_cred().ok().map(|peer| peer.uid())
}

/// The mode of a file that nobody else reads or writes.
const OURS: Mode = Mode::RUSR.union(Mode::WUSR);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// A socket that is listened to. Its file goes when this is dropped.
#[derive(Debug)]
pub(in crate::front) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is: another one at its path is not ours to remove.
    file: (u64, u64),
}

impl Socket {
    /// Binds the socket at a path; in a folder of its own, if that is for us to make.
    ///
    /// # Errors
    /// If the path is taken by anything but a socket of ours that nobody listens to, or if others could replace it.
    pub(in crate::front) fn bind(path: &Path, make_folder: bool) -> io::Result<Self> {
        Self::bind_as(path, make_folder, |socket| rustix::fs::fchmod(socket, OURS))
    }

    /// The same, on a system that closes a socket without a name in this way.
    fn bind_as(
        path: &Path,
        make_folder: bool,
        close: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
    ) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        if make_folder {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        is_safe(&fs::metadata(folder)?).map_err(|why| wrong(&format!("its folder {why}")))?;
        clear(path)?;
        let socket = unix_socket()?;
        // Before it has a name, so that there is no moment at which others can connect. Where only files have modes (macOS), right after
        // that: nobody can connect before it listens, and nobody else can put something in its place.
        let is_late = match close(&socket) {
            Ok(()) => false,
            Err(Errno::INVAL) => true,
            Err(error) => return Err(error.into()),
        };
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        if is_late && let Err(error) = rustix::fs::chmod(path, OURS) {
            let _ = fs::remove_file(path);
            return Err(error.into());
        }
        let about = fs::symlink_metadata(path)?;
        if about.mode() & 0o177 != 0 {
            let _ = fs::remove_file(path);
            return Err(wrong("this file system does not keep its mode at 0600"));
        }
        rustix::net::listen(&socket, BACKLOG)?;
        let listener = UnixListener::from_std(std_unix::UnixListener::from(socket))?;
        Ok(Self { listener, path: path.to_owned(), file: (about.dev(), about.ino()) })
    }

    pub(in crate::front) async fn accept(&self) -> io::Result<Stream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    pub(in crate::front) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_it = |about: Metadata| (about.dev(), about.ino()) == self.file;
        if fs::symlink_metadata(&self.path).is_ok_and(is_it) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// One that never waits.
fn unix_socket() -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    // Not with flags, which not every system has. No process is started by now.
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Makes room at a path: what a gateway of ours left there that is no more.
fn clear(path: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if !about.file_type().is_socket() {
        return Err(wrong("there is a file of this name that is not a socket"));
    }
    if about.uid() != us() {
        return Err(wrong("there is a socket of another user"));
    }
    let knock = unix_socket()?;
    match rustix::net::connect(&knock, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path),
        // One that is stopped accepts nobody; it is there all the same.
        Ok(()) | Err(Errno::AGAIN) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another gateway listens there"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether nobody but us and root can put something else in the place of a file in this folder.
fn is_safe(folder: &Metadata) -> Result<(), &'static str> {
    let (owner, mode) = (folder.uid(), folder.mode());
    if owner != us() && owner != 0 {
        return Err("belongs to another user");
    }
    let sticky = mode & 0o1000 != 0;
    if mode & 0o022 != 0 && !sticky {
        return Err("can be written to by other users");
    }
    Ok(())
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn wrong(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, words)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::Socket;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("linetender-sock-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn x04_the_socket_is_this_users_alone_and_goes_with_its_gateway() {
        let folder = Folder::new("mode");
        let path = folder.0.join("own/gateway.sock");
        assert!(Socket::bind(&path, false).is_err(), "there is no such folder");
        let socket = Socket::bind(&path, true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
        let taken = Socket::bind(&path, true).unwrap_err();
        assert!(taken.to_string().contains("another gateway listens there"), "{taken}");
        drop(socket);
        assert!(!path.exists());
        // One that was killed leaves its file behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let again = Socket::bind(&path, true).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "somebody else's").unwrap();
        drop(again);
        assert!(path.exists(), "it removes nothing but its own");
    }

    #[tokio::test]
    async fn x04_the_socket_is_this_users_alone_where_a_socket_without_a_name_has_no_mode() {
        let folder = Folder::new("late-mode");
        let path = folder.0.join("gateway.sock");
        let as_on_a_mac = |_: &std::os::fd::OwnedFd| Err(rustix::io::Errno::INVAL);
        let socket = Socket::bind_as(&path, false, as_on_a_mac).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        drop(socket);
        let refused = |_: &std::os::fd::OwnedFd| Err(rustix::io::Errno::PERM);
        assert!(Socket::bind_as(&path, false, refused).is_err() && !path.exists());
    }

    #[tokio::test]
    async fn x12_nothing_that_is_not_ours_is_followed_or_removed() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("gateway.sock");
        let target = folder.0.join("target");
        fs::write(&target, "precious").unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(Socket::bind(&path, false).is_err());
        fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        assert!(Socket::bind(&path, false).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
        let error = Socket::bind(&path, false).unwrap_err();
        assert!(error.to_string().contains("can be written to by other users"), "{error}");
    }
}
