//! The owner of one socket, by an exact `sock_diag` query.
//!
//! The kernel handles a request within the call that sends it, so the answer is there when that returns, and nothing here waits.
// Linux, include/uapi/linux/netlink.h, sock_diag.h, inet_diag.h; man 7 sock_diag.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::OtherEnd;

const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP_ESTABLISHED: u8 = 1;

/// Lengths of `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const REQUEST_LENGTH: u32 = 72;
const MESSAGE: usize = HEADER + 72;

/// Answers to earlier questions that may be found before ours: one each time that receiving failed.
const STALE: usize = 16;

/// A socket to the kernel, where one question is asked at a time.
#[derive(Debug)]
pub(super) struct Diag(Mutex<Asking>);

#[derive(Debug)]
struct Asking {
    kernel: OwnedFd,
    sequence: u32,
}

/// What a message from the kernel says.
#[derive(Debug, Eq, PartialEq)]
enum Said {
    /// The socket is there, and this user's.
    Owner(u32),
    /// There is no such socket, or none that is certain to be somebody's.
    Nobody,
    /// The kernel refused the question.
    Refused(i32),
    /// It answers another question.
    Stale,
}

impl Diag {
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kernel =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
        // Connected, so that no other process can put an answer in.
        rustix::net::connect(&kernel, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self(Mutex::new(Asking { kernel, sequence: 0 })))
    }

    pub(super) fn owner(&self, end: OtherEnd) -> io::Result<Option<u32>> {
        let mut asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asking.sequence = asking.sequence.wrapping_add(1);
        let Asking { kernel, sequence } = &*asking;
        rustix::net::send(kernel, &question(end, *sequence), SendFlags::empty())?;
        for _ in 0..=STALE {
            let mut answer = [0; 512];
            let (length, _) = rustix::net::recv(kernel, &mut answer, RecvFlags::DONTWAIT)?;
            match understood(answer.get(..length).unwrap_or_default(), *sequence, end) {
                Said::Owner(uid) => return Ok(Some(uid)),
                Said::Nobody => return Ok(None),
                Said::Refused(errno) => return Err(io::Error::from_raw_os_error(errno)),
                Said::Stale => {}
            }
        }
        Err(io::Error::other("no answer from the kernel"))
    }
}

fn question(end: OtherEnd, sequence: u32) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(&REQUEST_LENGTH.to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    put(&sequence.to_ne_bytes());
    put(&0_u32.to_ne_bytes());
    let family = if end.local.is_ipv4() { AF_INET } else { AF_INET6 };
    put(&[family, IPPROTO_TCP, 0, 0]);
    put(&(1_u32 << TCP_ESTABLISHED).to_ne_bytes());
    put(&end.local.port().to_be_bytes());
    put(&end.remote.port().to_be_bytes());
    put(&octets(end.local.ip()));
    put(&octets(end.remote.ip()));
    put(&0_u32.to_ne_bytes());
    // No cookie: whichever socket it is.
    put(&[0xff; 8]);
    bytes
}

/// An address in the sixteen bytes that it has there.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&address.octets());
            octets
        }
    }
}

fn understood(answer: &[u8], sequence: u32, end: OtherEnd) -> Said {
    read(answer, sequence, end).unwrap_or(Said::Nobody)
}

/// `None` if it is cut short.
fn read(answer: &[u8], sequence: u32, end: OtherEnd) -> Option<Said> {
    let two = |at: usize| answer.get(at..at + 2)?.try_into().ok();
    let four = |at: usize| answer.get(at..at + 4)?.try_into().ok();
    if u32::from_ne_bytes(four(8)?) != sequence {
        return Some(Said::Stale);
    }
    match u16::from_ne_bytes(two(4)?) {
        NLMSG_ERROR => {
            let error = i32::from_ne_bytes(four(HEADER)?);
            // What the kernel says of a socket that is not there; also if it knows nothing of TCP sockets.
            let nobody = error == -Errno::NOENT.raw_os_error();
            Some(if nobody { Said::Nobody } else { Said::Refused(error.wrapping_neg()) })
        }
        SOCK_DIAG_BY_FAMILY if answer.len() >= MESSAGE => {
            let (family, state) = (*answer.get(HEADER)?, *answer.get(HEADER + 1)?);
            let id = HEADER + 4;
            let address = |at: usize, port: usize| {
                let octets: [u8; 16] = answer.get(at..at + 16)?.try_into().ok()?;
                let address = match family {
                    AF_INET => Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into(),
                    _ => IpAddr::from(Ipv6Addr::from(octets)).to_canonical(),
                };
                Some(SocketAddr::new(address, u16::from_be_bytes(two(port)?)))
            };
            let (local, remote) = (address(id + 4, id)?, address(id + 20, id + 2)?);
            let (uid, inode) = (u32::from_ne_bytes(four(id + 60)?), u32::from_ne_bytes(four(id + 64)?));
            // The kernel falls back on a listener of that port. And a socket that no process holds any more is filed under
            // root, who never had it: it has no inode.
            let certain = state == TCP_ESTABLISHED && inode != 0 && end == OtherEnd { local, remote };
            Some(if certain { Said::Owner(uid) } else { Said::Nobody })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER, MESSAGE, NLMSG_ERROR, OtherEnd, Said, question, understood};
    use std::net::SocketAddr;

    fn end() -> OtherEnd {
        OtherEnd::of(SocketAddr::from(([127, 0, 0, 1], 7331)), SocketAddr::from(([127, 0, 0, 1], 50_000)))
    }

    /// What the kernel would say of a socket.
    fn answer(state: u8, uid: u32, inode: u32) -> Vec<u8> {
        let asked = question(end(), 7);
        let mut said = vec![0; MESSAGE];
        said[..HEADER].copy_from_slice(&asked[..HEADER]);
        said[HEADER..HEADER + 2].copy_from_slice(&[asked[HEADER], state]);
        said[HEADER + 4..HEADER + 52].copy_from_slice(&asked[HEADER + 8..]);
        said[HEADER + 64..HEADER + 68].copy_from_slice(&uid.to_ne_bytes());
        said[HEADER + 68..].copy_from_slice(&inode.to_ne_bytes());
        said
    }

    #[test]
    fn x04_only_an_established_socket_that_somebody_holds_has_an_owner() {
        let of = |said: &[u8]| understood(said, 7, end());
        assert_eq!(of(&answer(1, 1001, 99)), Said::Owner(1001));
        for (why, said) in [
            ("time wait", answer(6, 0, 0)),
            ("listens", answer(10, 1001, 99)),
            ("orphaned", answer(1, 0, 0)),
            ("cut", answer(1, 1001, 99)[..MESSAGE - 1].to_vec()),
            ("empty", Vec::new()),
        ] {
            assert_eq!(of(&said), Said::Nobody, "{why}");
        }
        assert_eq!(understood(&answer(1, 1001, 99), 8, end()), Said::Stale);
        let other = OtherEnd { remote: SocketAddr::from(([127, 0, 0, 1], 7332)), ..end() };
        assert_eq!(understood(&answer(1, 1001, 99), 7, other), Said::Nobody);
    }

    #[test]
    fn x04_a_refusal_is_told_from_a_socket_that_is_not_there() {
        for (errno, is) in [(-2_i32, Said::Nobody), (-1, Said::Refused(1))] {
            let mut said = answer(1, 1001, 99);
            said[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
            said[HEADER..HEADER + 4].copy_from_slice(&errno.to_ne_bytes());
            assert_eq!(understood(&said, 7, end()), is);
        }
    }
}
