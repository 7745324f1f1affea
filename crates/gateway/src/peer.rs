//! Which user of this machine is at the other end of a connection.
//!
//! The kernel knows the owner of every socket. Of a connection within this machine the other end is such a socket, so its owner
//! can be asked for: by an exact `sock_diag` query, or from the system's table where there is no netlink. Whatever is not
//! certain counts as unknown, and nobody unknown is admitted.

#[cfg(target_os = "linux")]
mod netlink;
mod users;

pub(crate) use users::Users;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use linetender_wire::aside;

use crate::system;

/// How owners of sockets are found on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Owners(Arc<Way>);

#[derive(Debug)]
enum Way {
    #[cfg(target_os = "linux")]
    Netlink(netlink::Diag),
    Table,
}

/// One connection as the other end has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OtherEnd {
    local: SocketAddr,
    remote: SocketAddr,
}

impl OtherEnd {
    /// The other end of a connection between these two.
    pub(crate) fn of(ours: SocketAddr, theirs: SocketAddr) -> Self {
        Self { local: plain(theirs), remote: plain(ours) }
    }

    fn in_table(self) -> io::Result<Option<u32>> {
        system::connected_from(self.local, self.remote)
    }
}

/// An IPv4 address that is written as an IPv6 one is the same address. The kernel files both under the former.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl Owners {
    /// The first way that finds the owner of a connection of our own at this address.
    ///
    /// # Errors
    /// There is none, and why the last one failed.
    pub(crate) fn known_at(address: IpAddr) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(diag) = netlink::Diag::open() {
            let netlink = Way::Netlink(diag);
            if netlink.finds_ourselves(address).is_ok() {
                return Ok(Self(Arc::new(netlink)));
            }
        }
        Way::Table.finds_ourselves(address)?;
        Ok(Self(Arc::new(Way::Table)))
    }

    /// The uid of whoever holds the other end; `None` unless that is certain.
    pub(crate) async fn owner(&self, end: OtherEnd) -> Option<u32> {
        match &*self.0 {
            // The kernel answers within the call: there is nothing to wait for.
            #[cfg(target_os = "linux")]
            Way::Netlink(diag) => diag.owner(end).ok().flatten(),
            // Its length is decided by everybody on this machine.
            Way::Table => aside(move || end.in_table().ok().flatten()).await.flatten(),
        }
    }
}

impl Way {
    fn owner(&self, end: OtherEnd) -> io::Result<Option<u32>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Netlink(diag) => diag.owner(end),
            Self::Table => end.in_table(),
        }
    }

    /// Connects to ourselves, and asks who that was.
    fn finds_ourselves(&self, address: IpAddr) -> io::Result<()> {
        let listener = TcpListener::bind((address, 0))?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let found = self.owner(OtherEnd::of(client.peer_addr()?, client.local_addr()?))?;
        let us = system::ourselves();
        match found {
            Some(uid) if uid == us => Ok(()),
            Some(uid) => Err(io::Error::other(format!(
                "the kernel says that a connection of our own belongs to uid {uid}, but we are uid {us}"
            ))),
            None => Err(io::Error::other("the kernel does not say who owns a connection of our own")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

    use super::{OtherEnd, Way, system};

    fn ways() -> Vec<Way> {
        let mut ways = vec![Way::Table];
        #[cfg(target_os = "linux")]
        match super::netlink::Diag::open() {
            Ok(diag) => ways.push(Way::Netlink(diag)),
            Err(error) => eprintln!("skipped netlink: {error}"),
        }
        ways
    }

    /// Where one listens, and by which address it is called.
    const PAIRS: [(IpAddr, IpAddr); 4] = [
        (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)),
        // An IPv6 socket that talks IPv4, at our end and at the other.
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x7f00, 1))),
    ];

    #[test]
    fn x04_the_owner_of_the_other_end_is_found_in_both_families() {
        for way in ways() {
            for (at, by) in PAIRS {
                let Ok(listener) = TcpListener::bind((at, 0)) else {
                    eprintln!("skipped {at}: this machine has no such address");
                    continue;
                };
                let port = listener.local_addr().unwrap().port();
                let client = TcpStream::connect(SocketAddr::new(by, port)).unwrap();
                let (ours, theirs) = listener.accept().unwrap();
                let end = OtherEnd::of(ours.local_addr().unwrap(), theirs);
                assert_eq!(way.owner(end).unwrap(), Some(system::ourselves()), "{way:?} {at} {by}");
                drop(client);
                assert_eq!(way.owner(end).unwrap(), None, "it has closed: {way:?} {at} {by}");
            }
        }
    }

    #[test]
    fn x04_a_listener_is_not_taken_for_the_other_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        for way in ways() {
            assert_eq!(way.owner(OtherEnd::of(nobody, at)).unwrap(), None, "{way:?}");
        }
    }
}
