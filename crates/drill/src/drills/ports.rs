//! Ports that nobody takes by chance.
//!
//! A server that is down for a moment wants its port back. The kernel gives ports to whoever connects somewhere, from a
//! range of its own; these lie below it, and each is handed out once.

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::TcpSocket;

/// Where they begin, and how many there are: Linux gives out ports from 32768 on.
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;

/// The next one that is free.
pub(crate) fn next() -> Result<u16, String> {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Several drills at once begin at different places.
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..COUNT {
        let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(begin) % COUNT;
        let port = u16::try_from(FIRST + number).unwrap_or(u16::MAX);
        if taken(port).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free".to_owned())
}

/// Takes a port for a moment. It is not listened on: a process that is just being started has a copy of our socket until it becomes another program, and a
/// listener, even one that was closed here, would keep its port from the server that it is for.
fn taken(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_listened_on_is_not_free_and_a_copy_of_what_tried_it_keeps_nobody_from_it() {
        let port = next().unwrap();
        let copy = taken(port).unwrap();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(taken(port).is_err());
        drop((copy, listener));
    }
}
