//! Whose a connection is, as far as this machine can tell: found out once, when it is accepted.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use axum::response::Response;
use http::StatusCode;

use super::reply;
use crate::peer::{OtherEnd, Owners, Users};

/// Refused users that are named in the log. There can be as many as there are numbers, and nobody reads thousands of lines.
const NAMED: usize = 32;

/// Whoever is at the other end of a connection. Connections of one caller share what there is for one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Caller {
    /// A user of this machine who is admitted.
    User(u32),
    /// Anybody, by address: nobody is asked who it is.
    Anybody(IpAddr),
    /// A user of this machine who is not admitted; or nobody can tell which.
    Stranger(Option<u32>),
}

impl Caller {
    /// The answer to a stranger's request.
    pub(super) fn refused(self) -> Option<Response> {
        let words = match self {
            Self::User(_) | Self::Anybody(_) => return None,
            Self::Stranger(Some(uid)) => format!(
                "this gateway does not serve uid {uid}: to admit it, add it to gateway.local_users and restart the gateway"
            ),
            Self::Stranger(None) => "this gateway cannot tell which user opened this connection, and serves only those in \
                gateway.local_users: use its Unix socket, or keep the connection open until the answer has come"
                .to_owned(),
        };
        Some(reply::error(StatusCode::FORBIDDEN, "null", -32600, &words))
    }

    pub(super) const fn is_stranger(self) -> bool {
        matches!(self, Self::Stranger(_))
    }
}

/// Who is admitted.
#[derive(Debug)]
pub(super) struct Admission {
    who: Who,
    /// Refused users who have been named in the log.
    named: Mutex<HashSet<Option<u32>>>,
}

#[derive(Debug)]
enum Who {
    Everybody,
    These(Users, Option<Owners>),
}

impl Admission {
    /// Everybody who can reach us.
    pub(super) fn everybody() -> Self {
        Self { who: Who::Everybody, named: Mutex::default() }
    }

    /// These users. `owners` finds out who is at the other end of a TCP connection; without it nobody is admitted there.
    pub(super) fn only(users: Users, owners: Option<Owners>) -> Self {
        Self { who: Who::These(users, owners), named: Mutex::default() }
    }

    /// Whoever is at the other end of a TCP connection between these two.
    pub(super) async fn over_tcp(&self, ours: Option<SocketAddr>, theirs: SocketAddr) -> Caller {
        let Who::These(users, owners) = &self.who else { return Caller::Anybody(network_of(theirs.ip())) };
        let uid = match (owners, ours) {
            (Some(owners), Some(ours)) => owners.owner(OtherEnd::of(ours, theirs)).await,
            _ => None,
        };
        self.judged(users, uid)
    }

    /// Whoever is at the other end of a Unix socket.
    pub(super) fn over_unix(&self, uid: Option<u32>) -> Caller {
        match (&self.who, uid) {
            (Who::Everybody, Some(uid)) => Caller::User(uid),
            // The socket's own rights admitted it.
            (Who::Everybody, None) => Caller::Stranger(None),
            (Who::These(users, _), uid) => self.judged(users, uid),
        }
    }

    fn judged(&self, users: &Users, uid: Option<u32>) -> Caller {
        if let Some(uid) = uid.filter(|uid| users.admit(*uid)) {
            return Caller::User(uid);
        }
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() < NAMED && named.insert(uid) {
            let uid = uid.map_or_else(|| "unknown".to_owned(), |uid| uid.to_string());
            tracing::warn!(uid, "refusing connections of a user who is not in gateway.local_users");
        }
        Caller::Stranger(uid)
    }
}

/// Whoever has one IPv6 address mostly has a whole network of them.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Caller, NAMED};
    use crate::config::LocalUser;
    use crate::peer::Users;

    #[tokio::test]
    async fn x04_who_cannot_be_told_is_not_admitted() {
        let admission = Admission::only(Users::of(None).unwrap(), None);
        let (ours, theirs) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert_eq!(admission.over_tcp(Some(ours), theirs).await, Caller::Stranger(None));
        assert_eq!(admission.over_tcp(None, theirs).await, Caller::Stranger(None));
        assert_eq!(admission.over_unix(None), Caller::Stranger(None));
    }

    #[test]
    fn x04_a_stranger_is_told_its_uid_and_the_setting_and_the_log_stays_short() {
        let admission = Admission::only(Users::of(Some(&[LocalUser::Uid(7)])).unwrap(), None);
        assert_eq!(admission.over_unix(Some(7)), Caller::User(7));
        for uid in 1000..2000 {
            assert_eq!(admission.over_unix(Some(uid)), Caller::Stranger(Some(uid)));
        }
        assert_eq!(admission.named.lock().unwrap().len(), NAMED);
        assert!(Caller::User(7).refused().is_none());
        assert_eq!(Caller::Stranger(Some(8)).refused().unwrap().status(), 403);
    }
}
