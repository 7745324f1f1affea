//! Which process is at the other end of a connection within this machine.

#![allow(unsafe_code, reason = "the table of connections has no safe wrapper")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, NO_ERROR};
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GetExtendedTcpTable, MIB_TCP_STATE_ESTAB, MIB_TCP6ROW_OWNER_PID, MIB_TCPROW_OWNER_PID,
    TCP_TABLE_OWNER_PID_CONNECTIONS,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, AF_INET6};

/// The table may grow between two looks.
const LOOKS: usize = 8;

/// The process that has a connection from `local` to `remote`.
///
/// # Errors
/// If the system does not tell.
pub fn connected_from(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    // Both are looked at: an IPv6 socket may talk IPv4.
    let found = rows(AF_INET, |row: &MIB_TCPROW_OWNER_PID| {
        let address = |address: u32, port| (IpAddr::V4(Ipv4Addr::from(address.to_ne_bytes())), port_of(port));
        is(local, address(row.dwLocalAddr, row.dwLocalPort))
            && is(remote, address(row.dwRemoteAddr, row.dwRemotePort))
            && row.dwState == MIB_TCP_STATE_ESTAB.cast_unsigned()
    })?;
    if let Some(row) = found {
        return Ok(known(row.dwOwningPid));
    }
    let found = rows(AF_INET6, |row: &MIB_TCP6ROW_OWNER_PID| {
        let address = |address: [u8; 16], port| (Ipv6Addr::from(address).to_canonical(), port_of(port));
        is(local, address(row.ucLocalAddr, row.dwLocalPort))
            && is(remote, address(row.ucRemoteAddr, row.dwRemotePort))
            && row.dwState == MIB_TCP_STATE_ESTAB.cast_unsigned()
    })?;
    Ok(found.and_then(|row| known(row.dwOwningPid)))
}

/// No process of anybody's has the number 0: it stands where none is known.
fn known(pid: u32) -> Option<u32> {
    (pid != 0).then_some(pid)
}

/// The first two bytes, in the order of the network.
fn port_of(port: u32) -> u16 {
    let [high, low, ..] = port.to_ne_bytes();
    u16::from_be_bytes([high, low])
}

fn is(address: SocketAddr, (ip, port): (IpAddr, u16)) -> bool {
    address.ip() == ip && address.port() == port
}

/// The first row of the table of one family that fits.
fn rows<Row: Copy>(family: u16, fits: impl Fn(&Row) -> bool) -> io::Result<Option<Row>> {
    let mut table: Vec<u64> = Vec::new();
    for _ in 0..LOOKS {
        let mut size = u32::try_from(table.len() * size_of::<u64>()).unwrap_or(u32::MAX);
        let room = if table.is_empty() { null_mut() } else { table.as_mut_ptr().cast() };
        // SAFETY: there is as much room as is said.
        let code = unsafe {
            GetExtendedTcpTable(room, &raw mut size, 0, family.into(), TCP_TABLE_OWNER_PID_CONNECTIONS, 0)
        };
        match code {
            NO_ERROR if table.is_empty() => return Ok(None),
            NO_ERROR => {
                // SAFETY: the table begins with the number of its rows, which is followed by them, all within the room.
                return Ok(unsafe {
                    let count = *table.as_ptr().cast::<u32>() as usize;
                    let most = (table.len() * size_of::<u64>() - size_of::<u32>()) / size_of::<Row>();
                    let first = table.as_ptr().cast::<u32>().add(1).cast::<Row>();
                    std::slice::from_raw_parts(first, count.min(most)).iter().find(|row| fits(row)).copied()
                });
            }
            // A little more than it asks for, since it may grow.
            ERROR_INSUFFICIENT_BUFFER => table = vec![0; (size as usize).div_ceil(size_of::<u64>()) + 64],
            code => return Err(io::Error::from_raw_os_error(code.cast_signed())),
        }
    }
    Err(io::Error::other("the table of connections grows too fast"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::connected_from;

    fn is_wine() -> bool {
        std::path::Path::new(r"C:\windows\system32\winecfg.exe").exists()
    }

    #[test]
    fn the_process_at_the_other_end_is_found() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                eprintln!("skipped {at}: this machine has no such address");
                continue;
            };
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_server, theirs) = listener.accept().unwrap();
            // wine knows whose a socket is once it was used.
            client.write_all(b"x").unwrap();
            let ours = listener.local_addr().unwrap();
            let found = connected_from(theirs, ours).unwrap();
            if found.is_none() && at.starts_with('[') && is_wine() {
                eprintln!("skipped {at}: wine does not know whose it is");
                continue;
            }
            assert_eq!(found, Some(std::process::id()), "{at}");
            drop(client);
            assert_eq!(connected_from(theirs, ours).unwrap(), None, "{at}: it has closed");
        }
    }
}
