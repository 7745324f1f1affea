//! Several addresses of one name, raced: one that answers nothing must not delay the connection to one that does.
//!
//! RFC 8305, "Happy Eyeballs Version 2": families alternate, the next attempt begins 250 ms after the one before it or as
//! soon as that has failed, and the first connection that stands ends the others.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::socket::{is_itself, is_of_this_machine};
use crate::http::broken::{Broken, Phase};

/// RFC 8305, 8: "Connection Attempt Delay".
const STAGGER: Duration = Duration::from_millis(250);

/// The address that a connection was made to: the next one is tried there first.
#[derive(Debug, Default)]
pub(crate) struct Winner(Mutex<Option<IpAddr>>);

impl Winner {
    pub(super) fn get(&self) -> Option<IpAddr> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, address: IpAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }
}

/// Puts the last winner first, and lets families alternate after it.
pub(super) fn order(addresses: &mut Vec<SocketAddr>, winner: Option<IpAddr>) {
    let first = winner.and_then(|winner| addresses.iter().position(|address| address.ip() == winner));
    if let Some(first) = first {
        addresses[..=first].rotate_right(1);
    }
    let Some(head) = addresses.first().copied() else { return };
    let (mut same, mut other): (VecDeque<_>, VecDeque<_>) =
        addresses.drain(..).partition(|address| address.is_ipv6() == head.is_ipv6());
    while !same.is_empty() || !other.is_empty() {
        addresses.extend(same.pop_front());
        addresses.extend(other.pop_front());
    }
}

/// Connects to the first of these that answers.
pub(super) async fn run(
    addresses: Vec<SocketAddr>,
    each: Duration,
) -> Result<(SocketAddr, TcpStream), Broken> {
    let mut trying = JoinSet::new();
    let mut rest = addresses.into_iter();
    let mut failed = Failed::Refused(String::new());
    loop {
        if let Some(address) = rest.next() {
            trying.spawn(async move { (address, timeout(each, TcpStream::connect(address)).await) });
        }
        let done = tokio::select! {
            done = trying.join_next() => done,
            () = sleep(STAGGER), if rest.len() > 0 => continue,
        };
        match done {
            None => return Err(failed.broken()),
            // The runtime is going down.
            Some(Err(error)) => return Err(Broken::unsent(Phase::Connect, error)),
            Some(Ok((address, attempt))) => match attempt {
                Ok(Ok(stream)) if !is_itself(&stream) => return Ok((address, stream)),
                Ok(Ok(_)) => failed.refused(format!("{address}: connection refused")),
                Ok(Err(error)) if is_of_this_machine(&error) => {
                    return Err(Broken::unsent(Phase::Machine, error));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    failed.refused(format!("{address}: {error}"));
                }
                Ok(Err(error)) => failed = Failed::Otherwise(format!("{address}: {error}")),
                Err(_) => failed = Failed::Otherwise(format!("{address}: connect timeout after {each:?}")),
            },
        }
    }
}

/// How the attempts failed.
enum Failed {
    /// All of them were refused.
    Refused(String),
    /// One of them failed in another way.
    Otherwise(String),
}

impl Failed {
    fn refused(&mut self, words: String) {
        if let Self::Refused(last) = self {
            *last = words;
        }
    }

    fn broken(self) -> Broken {
        match self {
            Self::Refused(words) => Broken::unsent(Phase::Refused, words),
            Self::Otherwise(words) => Broken::unsent(Phase::Connect, words),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use tokio::net::{TcpListener, TcpSocket};
    use tokio::time::Instant;

    use super::{order, run};
    use crate::http::broken::Phase;

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split(' ').map(|one| one.parse().unwrap()).collect()
    }

    #[test]
    fn families_alternate_and_the_last_winner_is_first() {
        for (given, winner, expected) in [
            ("[::1]:1 [::2]:1 1.1.1.1:1 2.2.2.2:1", None, "[::1]:1 1.1.1.1:1 [::2]:1 2.2.2.2:1"),
            ("[::1]:1 [::2]:1 1.1.1.1:1", Some("1.1.1.1"), "1.1.1.1:1 [::1]:1 [::2]:1"),
            ("[::1]:1 1.1.1.1:1", Some("9.9.9.9"), "[::1]:1 1.1.1.1:1"),
            ("1.1.1.1:1", None, "1.1.1.1:1"),
        ] {
            let mut got = addresses(given);
            order(&mut got, winner.map(|winner| winner.parse().unwrap()));
            assert_eq!(got, addresses(expected), "{given}");
        }
        order(&mut Vec::new(), None);
    }

    #[tokio::test]
    async fn h24_a_silent_address_first_costs_less_than_300_ms() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (at, mut filling) = (socket.local_addr().unwrap(), Vec::new());
        let _full = socket.listen(0).unwrap();
        // With its queue full the kernel drops what comes, as a firewall does.
        while let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(at)).await
        {
            filling.push(stream);
            assert!(filling.len() < 100, "its queue is never full");
        }
        let answers = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = answers.local_addr().unwrap();
        // On a busy machine any one attempt can be late; an address that is waited for makes all of them late.
        let mut took = Vec::new();
        for _ in 0..5 {
            let began = Instant::now();
            let (winner, _) = run(vec![at, there], Duration::from_secs(4)).await.unwrap();
            assert_eq!(winner, there);
            took.push(began.elapsed());
            if began.elapsed() < Duration::from_millis(300) {
                return;
            }
        }
        panic!("{took:?}");
    }

    #[tokio::test]
    async fn what_is_refused_everywhere_is_refused_and_nothing_else_is() {
        let nobody = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let broken = run(vec![nobody, nobody], Duration::from_secs(4)).await.unwrap_err();
        assert_eq!(broken.phase, Phase::Refused, "{broken}");
        // An address that nothing can be sent to.
        let broken = run(vec![nobody, "255.255.255.255:1".parse().unwrap()], Duration::from_secs(1)).await;
        assert_eq!(broken.unwrap_err().phase, Phase::Connect);
    }
}
