//! What the reaper and we tell each other: eight bytes up, one byte down.

use crate::seen::Exit;

/// Which records, orders, arguments and environment they agree on. The reaper may be another version's program: an update replaces the
/// file that a running process starts its reapers from, and a library may find any `linetender` on `PATH`.
pub const VERSION: i32 = 1;

/// SIGTERM to the server's group.
pub const TERM: u8 = b'T';
/// SIGKILL to everything.
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
    /// Its time is over.
    Expired,
    /// A process that the server started is somebody else's, and stays behind: nobody may kill it.
    Left(i32),
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
            Self::Expired => (b'E', 0),
            Self::Left(pid) => (b'L', pid),
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
            b'E' => Self::Expired,
            b'L' => Self::Left(value),
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
