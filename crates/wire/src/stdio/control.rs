//! What the reaper and we tell each other: eight bytes up, one byte down.

use crate::seen::Exit;

/// Which records, orders, arguments and environment they agree on. The reaper may be another version's program: an update replaces the
/// file that a running process starts its reapers from, and a library may find any `linetender` on `PATH`.
pub const VERSION: i32 = 2;

/// The handshake is over: from now on the server ends when its parent does.
pub const UP: u8 = b'U';
/// A look at what left the server's tree.
pub const LOOK: u8 = b'L';
/// Its stdin is about to be closed: the reaper climbs down the ladder by itself.
pub const CLOSE: u8 = b'C';
/// SIGINT to the server's group, as its parent got it. It begins the ladder too.
pub const INT: u8 = b'I';
/// SIGTERM, the same.
pub const TERM: u8 = b'T';
/// SIGKILL to the server.
pub const KILL: u8 = b'K';

/// What the reaper reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Record {
    /// The reaper runs, and this is its [`VERSION`]: what follows is about the server.
    Ready(i32),
    /// The reaper cannot work on this machine: an error number.
    Refused(i32),
    /// It is still killing the tree.
    Busy,
    /// The server runs, under this pid.
    Spawned(i32),
    /// It could not be started: an error number.
    Failed(i32),
    /// It ended.
    Exited(Exit),
    /// The end was begun, and its stdin may be closed now.
    Closing,
    /// Its time is over.
    Expired,
    /// A process that the server started is somebody else's, and stays behind: nobody may kill it.
    Left(i32),
    /// Four bytes of the name of a process that is told of next, zeros behind it.
    Name([u8; 4]),
    /// A process that the server left behind was ended.
    Ended(i32),
    /// A process left the server's tree on purpose, and lives on.
    Spared(i32),
    /// Nothing of its tree is left, but for those.
    Clear,
}

impl Record {
    /// How long it is.
    pub const SIZE: usize = 8;

    /// As it is sent.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let (tag, value) = match self {
            Self::Ready(version) => (b'R', version),
            Self::Refused(error) => (b'N', error),
            Self::Busy => (b'B', 0),
            Self::Spawned(pid) => (b'S', pid),
            Self::Failed(error) => (b'F', error),
            Self::Exited(Exit::Status(status)) => (b'X', status),
            Self::Exited(Exit::Signal(signal)) => (b'G', signal),
            Self::Closing => (b'D', 0),
            Self::Expired => (b'E', 0),
            Self::Left(pid) => (b'L', pid),
            Self::Name(bytes) => (b'M', i32::from_le_bytes(bytes)),
            Self::Ended(pid) => (b'O', pid),
            Self::Spared(pid) => (b'P', pid),
            Self::Clear => (b'C', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, 0, 0, 0, a, b, c, d]
    }

    /// As it was sent; `None` if nobody sends such a thing.
    pub fn decode([tag, _, _, _, a, b, c, d]: [u8; Self::SIZE]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'R' => Self::Ready(value),
            b'N' => Self::Refused(value),
            b'B' => Self::Busy,
            b'S' => Self::Spawned(value),
            b'F' => Self::Failed(value),
            b'X' => Self::Exited(Exit::Status(value)),
            b'G' => Self::Exited(Exit::Signal(value)),
            b'D' => Self::Closing,
            b'E' => Self::Expired,
            b'L' => Self::Left(value),
            b'M' => Self::Name([a, b, c, d]),
            b'O' => Self::Ended(value),
            b'P' => Self::Spared(value),
            b'C' => Self::Clear,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, VERSION};
    use crate::seen::Exit;

    #[test]
    fn records_survive_the_socket() {
        for record in [
            Record::Ready(VERSION),
            Record::Refused(1),
            Record::Busy,
            Record::Left(4711),
            Record::Expired,
            Record::Closing,
            Record::Name(*b"tmux"),
            Record::Ended(4711),
            Record::Spared(4711),
            Record::Spawned(4_000_000),
            Record::Failed(2),
            Record::Exited(Exit::Status(-1)),
            Record::Exited(Exit::Signal(9)),
            Record::Clear,
        ] {
            assert_eq!(Record::decode(record.encode()), Some(record));
        }
        assert_eq!(Record::decode([0; 8]), None);
    }
}
