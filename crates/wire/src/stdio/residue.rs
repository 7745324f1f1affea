//! What a dead server left unread in its stdin.
//!
//! A count alone proves nothing: whatever else was written into the pipe, by a wrapper or by the server itself, counts as
//! unread too. So what is left is read back, and a call counts as unread only if it lies there, at its place.

/// The bytes that no process can read any more, and where they begin in all that linetender wrote.
#[derive(Debug)]
pub struct Residue {
    start: u64,
    bytes: Vec<u8>,
}

impl Residue {
    /// What is left of so many bytes that were written. If more is left than was written, others wrote too, and all that linetender
    /// wrote counts as read.
    pub fn new(written: u64, bytes: Vec<u8>) -> Self {
        match written.checked_sub(bytes.len() as u64) {
            Some(start) => Self { start, bytes },
            None => Self { start: written, bytes: Vec::new() },
        }
    }

    /// How many of the bytes that were written were read.
    pub const fn consumed(&self) -> u64 {
        self.start
    }

    /// True if the line that belongs at `start`, and begins like this, lies here as far as it was written: no byte of it was
    /// read.
    pub fn holds(&self, start: u64, head: &[u8]) -> bool {
        let at = start.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let Some(at) = at else { return false };
        let rest = self.bytes.get(at..).unwrap_or_default();
        let length = rest.len().min(head.len());
        rest[..length] == head[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::Residue;

    #[test]
    fn a_line_is_unread_if_it_lies_at_its_place() {
        // "one\n" was read; "two\n" and half of "three\n" were not.
        let residue = Residue::new(11, b"two\nthr".to_vec());
        assert_eq!(residue.consumed(), 4);
        for (start, head, unread) in
            [(0, "one", false), (4, "two", true), (8, "three", true), (11, "four", true), (14, "five", true)]
        {
            assert_eq!(residue.holds(start, head.as_bytes()), unread, "{head}");
        }
    }

    #[test]
    fn what_others_wrote_makes_nothing_unread() {
        // All of ours was read, and then somebody else wrote as much.
        let residue = Residue::new(8, b"yes\n".to_vec());
        assert!(!residue.holds(4, b"two"));
        // Between ours, and one byte of the second was read.
        let residue = Residue::new(8, b"xyz\nwo\n".to_vec());
        assert!(!residue.holds(4, b"two"));
        let residue = Residue::new(3, b"many".to_vec());
        assert!(residue.consumed() == 3 && !residue.holds(0, b"man"));
    }
}
