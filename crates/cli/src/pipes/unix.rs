//! The agent's two pipes, waited for by the runtime itself.
//!
//! tokio's own stdin and stdout hand every message to a thread and back, which costs more than all else that is done with
//! it. Pipes and sockets, which is what agents give their servers, can be waited for; a file or a terminal cannot, and goes
//! by the thread.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::{Heard, Input, LOOK, Output};

/// Both ends, and what has to be set right again when we are done with them.
pub(crate) struct Pipes {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) gone: Gone,
    /// Put back when this is dropped.
    pub(crate) borrowed: [Option<Borrowed>; 2],
}

/// Sees that the agent is gone for good: it neither asks nor reads any more.
pub(crate) struct Gone {
    asked: Arc<Notify>,
    output: Option<OwnedFd>,
}

impl Gone {
    /// An agent that closed its input may still read answers; one that was killed reads nothing.
    pub(crate) async fn for_good(self) {
        self.asked.notified().await;
        let Some(output) = self.output else { return std::future::pending().await };
        while !reads_no_more(|asked| looked_at(&output, asked)) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// What is asked for. Linux tells the end of a pipe whatever is asked for. macOS looks only where something is asked for, and tells of
/// whoever writes to a pipe or a socket that nobody reads any more only if it asks whether it may write.
const ASKED: PollFlags = PollFlags::OUT;

/// Whether nobody reads any more, by what is told to whoever asks.
fn reads_no_more(look: impl FnOnce(PollFlags) -> PollFlags) -> bool {
    look(ASKED).intersects(PollFlags::ERR | PollFlags::HUP)
}

/// What there is to be told now.
fn looked_at(end: &OwnedFd, asked: PollFlags) -> PollFlags {
    let mut ends = [PollFd::new(end, asked)];
    match poll(&mut ends, Some(&Timespec::default())) {
        Ok(_) => ends[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// A description that is made not to block, and may be somebody else's too: a shell's that goes on after us.
pub(crate) struct Borrowed {
    descriptor: OwnedFd,
    before: OFlags,
}

impl Pipes {
    /// Takes stdin and stdout. Inside a runtime.
    pub(crate) fn take() -> Self {
        let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
        let (input, read) = match of_kind(&stdin, false) {
            Some((Kind::Pipe, fd, held)) => match pipe::Receiver::from_owned_fd(fd) {
                Ok(pipe) => (Some(Box::new(pipe) as Input), Some(held)),
                Err(_) => (None, Some(held)),
            },
            Some((Kind::Socket, fd, held)) => {
                (socket(fd).map(|socket| Box::new(socket) as Input), Some(held))
            }
            None => (None, None),
        };
        let (output, written) = match of_kind(&stdout, true) {
            Some((Kind::Pipe, fd, held)) => match pipe::Sender::from_owned_fd(fd) {
                Ok(pipe) => (Some(Box::new(pipe) as Output), Some(held)),
                Err(_) => (None, Some(held)),
            },
            Some((Kind::Socket, fd, held)) => {
                (socket(fd).map(|socket| Box::new(socket) as Output), Some(held))
            }
            None => (None, None),
        };
        let asked = Arc::new(Notify::new());
        let input = input.unwrap_or_else(|| Box::new(tokio::io::stdin()));
        Self {
            gone: Gone { asked: Arc::clone(&asked), output: stdout.as_fd().try_clone_to_owned().ok() },
            // A descriptor that could not be taken is as it was before a thread reads it.
            borrowed: [read, written.filter(|_| output.is_some())],
            input: Box::new(Heard(input, asked)),
            output: output.unwrap_or_else(|| Box::new(tokio::io::stdout())),
        }
    }
}

enum Kind {
    Pipe,
    Socket,
}

/// What can be waited for, as a descriptor of our own.
fn of_kind(stream: &impl AsFd, writes: bool) -> Option<(Kind, OwnedFd, Borrowed)> {
    let about = fstat(stream).ok()?;
    let kind = match FileType::from_raw_mode(about.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        _ => return None,
    };
    // What is shared with stderr must go on blocking: nobody expects a log to fail because it is read slowly.
    let log = fstat(std::io::stderr()).ok();
    if writes && log.is_some_and(|log| (log.st_dev, log.st_ino) == (about.st_dev, about.st_ino)) {
        return None;
    }
    let before = fcntl_getfl(stream).ok()?;
    let descriptor = stream.as_fd().try_clone_to_owned().ok()?;
    Some((kind, stream.as_fd().try_clone_to_owned().ok()?, Borrowed { descriptor, before }))
}

fn socket(descriptor: OwnedFd) -> Option<UnixStream> {
    let socket = Socket::from(descriptor);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let _ = fcntl_setfl(&self.descriptor, self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use rustix::event::PollFlags;

    use super::{looked_at, reads_no_more};

    /// `poll` of macOS, of the write end of a pipe whose reader is gone: it waits for events of a kqueue, one for each direction that
    /// is asked for, and makes POLLHUP of an end of file.
    fn as_on_a_mac(asked: PollFlags) -> PollFlags {
        if asked.intersects(PollFlags::OUT | PollFlags::WRNORM | PollFlags::WRBAND) {
            PollFlags::HUP
        } else {
            PollFlags::empty()
        }
    }

    #[test]
    fn an_agent_that_was_killed_is_noticed_where_only_what_is_asked_for_is_told() {
        assert!(reads_no_more(as_on_a_mac));
    }

    #[test]
    fn an_agent_that_was_killed_is_noticed_here_and_one_that_reads_slowly_is_not_taken_for_it() {
        let (from, to) = rustix::pipe::pipe().unwrap();
        rustix::io::ioctl_fionbio(&to, true).unwrap();
        assert!(!reads_no_more(|asked| looked_at(&to, asked)));
        while rustix::io::write(&to, &[0; 4096]).is_ok() {}
        assert!(!reads_no_more(|asked| looked_at(&to, asked)), "it is full, and open");
        drop(from);
        assert!(reads_no_more(|asked| looked_at(&to, asked)));

        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = OwnedFd::from(ours);
        assert!(!reads_no_more(|asked| looked_at(&ours, asked)));
        // It asks no more, and may still read.
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!reads_no_more(|asked| looked_at(&ours, asked)));
        drop(theirs);
        assert!(reads_no_more(|asked| looked_at(&ours, asked)));
    }
}
