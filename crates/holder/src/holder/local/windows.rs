//! Named pipes for this user alone. In the place of a Unix socket stands a file with the pipe's name, which nobody can guess, so that
//! nobody else could have opened a pipe of this name before us. But everybody can list the names of pipes that are open, and may open
//! one of the same name once its holder has died and its file is left: whoever connects looks whose the pipe is.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_lc_rs::rand;
pub(in crate::holder) use linetender_wire::windows::lives;
use linetender_wire::windows::{OnlyUser, Sid, Thing, owner_of_pipe, this_user};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use tokio::sync::Mutex;
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

use crate::trusted;

/// What every pipe of ours is called at the beginning.
const PREFIX: &str = r"\\.\pipe\linetender-";

/// The longest name.
const LONGEST: u64 = 256;

/// While all instances of a pipe are taken: how soon it is tried again, and how often. Whoever asks has a patience of its own too.
const AGAIN: Duration = Duration::from_millis(10);
const TRIES: u32 = 200;

/// A pipe that is waited at.
#[derive(Debug)]
pub(in crate::holder) struct Listener {
    name: OsString,
    /// The instance that the next one connects to.
    next: Mutex<Option<NamedPipeServer>>,
}

/// Where somebody came from: nobody asks.
#[derive(Debug)]
pub(in crate::holder) struct Origin;

/// Either end of a pipe.
#[derive(Debug)]
pub(in crate::holder) enum Stream {
    Ours(NamedPipeServer),
    Theirs(NamedPipeClient),
}

impl Listener {
    /// The next who connects.
    pub(in crate::holder) async fn accept(&self) -> io::Result<(Stream, Origin)> {
        let mut next = self.next.lock().await;
        let pipe = match next.take() {
            Some(pipe) => pipe,
            None => instance(&self.name, false)?,
        };
        if let Err(error) = pipe.connect().await {
            // This one is of no use any more. The name stays ours as long as there is another.
            *next = instance(&self.name, false).ok();
            return Err(error);
        }
        *next = instance(&self.name, false).ok();
        Ok((Stream::Ours(pipe), Origin))
    }
}

/// Opens the pipe of this process, for this user alone, and writes its name to the file. One that is there already was left behind
/// by a dead process of our number.
pub(in crate::holder) fn bind(path: &Path) -> io::Result<Listener> {
    let mut unique = [0; 16];
    rand::fill(&mut unique).map_err(|_| io::Error::other("this machine gives no random numbers"))?;
    let name = format!("{PREFIX}{}-{:032x}", std::process::id(), u128::from_ne_bytes(unique));
    let first = instance(name.as_ref(), true)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    trusted::create(path)?.write_all(name.as_bytes())?;
    Ok(Listener { name: name.into(), next: Mutex::new(Some(first)) })
}

#[allow(unsafe_code, reason = "the runtime takes a descriptor as a raw pointer only")]
fn instance(name: &std::ffi::OsStr, is_first: bool) -> io::Result<NamedPipeServer> {
    let descriptor = OnlyUser::of(Thing::Pipe)?;
    let mut attributes = descriptor.attributes();
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first).reject_remote_clients(true);
    // SAFETY: the attributes, and the descriptor that they name, outlive the call.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}

/// Connects to whoever listens there.
pub(in crate::holder) async fn connect(path: &Path) -> io::Result<Stream> {
    let mut name = String::new();
    trusted::read(path)?.take(LONGEST).read_to_string(&mut name)?;
    // It leads nowhere else: not to another machine, and not to a file.
    if !name
        .strip_prefix(PREFIX)
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'))
    {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file holds no name of a pipe"));
    }
    let mut tries = 0;
    loop {
        match ClientOptions::new().open(&name) {
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY.cast_signed()) && tries < TRIES => {
                tries += 1;
                tokio::time::sleep(AGAIN).await;
            }
            opened => return opened.map(Stream::Theirs),
        }
    }
}

/// Checks who is at the other end. Whoever could open our pipe is this user.
pub(in crate::holder) fn check_peer(stream: &Stream) -> io::Result<()> {
    let Stream::Theirs(pipe) = stream else { return Ok(()) };
    if owner_of(pipe)? == this_user()? {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the pipe belongs to another user"))
}

#[allow(unsafe_code, reason = "the runtime has its handle as a raw one only")]
fn owner_of(pipe: &NamedPipeClient) -> io::Result<Sid> {
    // SAFETY: the pipe has it open, and outlives this.
    owner_of_pipe(unsafe { BorrowedHandle::borrow_raw(pipe.as_raw_handle()) })
}

/// Checks the file that is in the place of a socket.
pub(in crate::holder) fn check_socket(path: &Path) -> io::Result<()> {
    trusted::read(path).map(drop)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Ours(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Self::Theirs(pipe) => Pin::new(pipe).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Ours(pipe) => Pin::new(pipe).poll_write(context, bytes),
            Self::Theirs(pipe) => Pin::new(pipe).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Ours(pipe) => Pin::new(pipe).poll_flush(context),
            Self::Theirs(pipe) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Ours(pipe) => Pin::new(pipe).poll_shutdown(context),
            Self::Theirs(pipe) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

    use super::{ClientOptions, ServerOptions, Stream, bind, check_peer, check_socket, connect};
    use crate::Holder;
    use crate::holder::look::{Found, Reply, look};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linetender-pipe-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            crate::trusted::folder(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn several_ask_at_once_and_each_is_answered_to_the_end() {
        let folder = Folder::new("ask");
        let path = folder.0.join("1.sock");
        assert!(check_socket(&path).is_err());
        let listener = bind(&path).unwrap();
        check_socket(&path).unwrap();
        let answers = async {
            for _ in 0..3 {
                let (asker, _) = listener.accept().await.unwrap();
                let mut asker = BufReader::new(asker);
                let mut question = String::new();
                asker.read_line(&mut question).await.unwrap();
                asker.write_all(question.repeat(100_000).as_bytes()).await.unwrap();
            }
        };
        let ask = |number: u32| {
            let path = &path;
            async move {
                let mut holder = connect(path).await.unwrap();
                holder.write_all(format!("{number}\n").as_bytes()).await.unwrap();
                let mut answer = String::new();
                holder.read_to_string(&mut answer).await.unwrap();
                assert_eq!(answer, format!("{number}\n").repeat(100_000));
            }
        };
        tokio::join!(answers, ask(1), ask(2), ask(3));
        drop(listener);
        assert_eq!(connect(&path).await.unwrap_err().kind(), std::io::ErrorKind::NotFound, "nobody is there");
    }

    #[tokio::test]
    async fn a_file_leads_to_no_other_place() {
        let folder = Folder::new("leads");
        for name in [r"\\other\pipe\linetender-1", r"\\.\pipe\linetender-1\..\x", r"C:\secret", ""] {
            let path = folder.0.join("1.sock");
            std::fs::write(&path, name).unwrap();
            let refused = connect(&path).await.unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData, "{name}");
        }
    }

    /// As one may be that is there in the place of a dead holder's. One of the system's that everybody may open; wine has none, and
    /// what is made there without a descriptor is nobody's.
    #[tokio::test]
    async fn a_pipe_of_somebody_else_is_told_nothing() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("1.sock");
        let _listener = bind(&path).unwrap();
        check_peer(&connect(&path).await.unwrap()).unwrap();

        let (theirs, nobodys) = (r"\\.\pipe\wkssvc", r"\\.\pipe\linetender-test-nobodys");
        let is_wine = std::path::Path::new(r"C:\windows\system32\winecfg.exe").exists();
        let _nobodys = is_wine.then(|| ServerOptions::new().create(nobodys).unwrap());
        let foreign = ClientOptions::new().open(if is_wine { nobodys } else { theirs }).unwrap();
        let refused = check_peer(&Stream::Theirs(foreign)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied, "{refused}");
    }

    #[tokio::test]
    async fn a_holder_is_found_and_says_where_its_lines_stand() {
        let folder = Folder::new("look");
        let holder = Holder::new("run", None, None);
        holder.listen(&folder.0).unwrap();
        let found = look(std::slice::from_ref(&folder.0), |path, why| panic!("{path:?}: {why}")).await;
        let [Found { pid, reply: Reply::Report(_) }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(*pid, std::process::id());
    }
}
