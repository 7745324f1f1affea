//! The owner of one socket, from the tables in `/proc/net`: for machines that let us have no netlink.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Both are looked at: an IPv6 socket may talk IPv4.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// How the tables spell an established connection.
const ESTABLISHED: &str = "01";

/// The user who has a connection from `local` to `remote`.
pub(crate) fn connected_from(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let end = (local, remote);
    let mut failed = None;
    for table in TABLES {
        match within(table, end) {
            Ok(None) => {}
            Ok(found) => return Ok(found),
            Err(error) => failed = Some(error),
        }
    }
    // A machine without IPv6 lacks one of them.
    match failed {
        Some(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(None),
    }
}

fn within(table: &str, end: (SocketAddr, SocketAddr)) -> io::Result<Option<u32>> {
    for line in BufReader::new(File::open(table)?).lines().skip(1) {
        if let Some(uid) = of_line(&line?, end) {
            return Ok(Some(uid));
        }
    }
    Ok(None)
}

/// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`
fn of_line(line: &str, end: (SocketAddr, SocketAddr)) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    if (local, remote) != end || fields.next()? != ESTABLISHED {
        return None;
    }
    let uid = fields.nth(3)?.parse().ok()?;
    // One that no process holds is filed under root.
    let inode: u64 = fields.nth(1)?.parse().ok()?;
    (inode != 0).then_some(uid)
}

/// `0100007F:1CA3`: words of four bytes in the order of this machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(address.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::of_line;
    use std::net::SocketAddr;

    #[test]
    fn x04_a_line_of_the_table_is_believed_only_if_all_of_it_fits() {
        let end = (SocketAddr::from(([127, 0, 0, 1], 50_000)), SocketAddr::from(([127, 0, 0, 1], 7331)));
        let line = |state: &str, inode: u32| {
            format!(
                "   7: 0100007F:C350 0100007F:1CA3 {state} 00000000:00000000 00:00000000 00000000  1001        0 {inode} 1 0 20 4 30 10 -1"
            )
        };
        assert_eq!(of_line(&line("01", 55), end), Some(1001));
        assert_eq!(of_line(&line("06", 55), end), None);
        assert_eq!(of_line(&line("01", 0), end), None);
        let mapped = "0: 0000000000000000FFFF00000100007F:C350 0000000000000000FFFF00000100007F:1CA3 01 0:0 0:0 0 1002 0 56";
        assert_eq!(of_line(mapped, end), Some(1002));
        assert_eq!(of_line("   7: 0100007F:C350", end), None);
    }
}
