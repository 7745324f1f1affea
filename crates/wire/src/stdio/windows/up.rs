//! Our end of a server's stdout and stderr.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
use tokio::net::windows::named_pipe::NamedPipeServer;

use crate::stdio::platform::Output;
use crate::windows::Reading;

/// How long what lies in a pipe may take to us: the system has it, and the runtime has yet to hear of that.
const TURN: Duration = Duration::from_millis(10);

/// A pipe that we read from.
pub(super) type Up = Reading<NamedPipeServer>;

impl Output for Up {
    /// A read is always under way: what it brings is here after a turn of the runtime.
    async fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let read = tokio::time::timeout(TURN, self.read_buf(buffer)).await;
        read.unwrap_or_else(|_| Err(io::ErrorKind::WouldBlock.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::Up;
    use crate::stdio::windows::pipes::Pipe;

    /// Of messages, since wine drops a write of nothing to any other pipe.
    #[tokio::test]
    async fn a_write_of_nothing_is_not_the_end() {
        let pipe = Pipe::of_messages().unwrap();
        let (mut up, mut theirs) = (Up::new(pipe.ours), File::from(pipe.theirs));
        let mut buffer = [0; 16];
        let mut read = async || {
            let read = tokio::time::timeout(Duration::from_secs(20), up.read(&mut buffer)).await;
            read.expect("an end in time").map(|bytes| buffer[..bytes].to_vec()).unwrap()
        };
        for nothings in [1, 3, 1000] {
            for _ in 0..nothings {
                assert_eq!(theirs.write(&[]).unwrap(), 0);
            }
            assert_eq!(theirs.write(b"x").unwrap(), 1);
            assert_eq!(read().await, b"x", "after {nothings}");
        }
        let _ = theirs.write(&[]).unwrap();
        drop(theirs);
        assert_eq!(read().await, b"", "the end");
    }
}
