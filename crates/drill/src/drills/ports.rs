//! Ports that nobody takes by chance.
//!
//! A server that is down for a moment wants its port back. The kernel gives ports to whoever connects somewhere, from a
//! range of its own; these lie below it, and each is handed out once.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

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
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free".to_owned())
}
