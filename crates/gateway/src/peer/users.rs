//! Which users are admitted.

use std::fs;

use crate::config::LocalUser;

/// The file that says which names there are.
const PASSWD: &str = "/etc/passwd";

/// Users of this machine, by number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Users {
    uids: Vec<u32>,
    /// The number that stands for every user without one in our namespace: it is nobody's, also if it is on the list.
    anybody: Option<u32>,
}

/// The user that we run as.
pub(crate) fn ourselves() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Users {
    /// Those that were named; if nobody was, the one that we run as.
    ///
    /// # Errors
    /// A name that this machine does not know.
    pub(crate) fn of(named: Option<&[LocalUser]>) -> Result<Self, String> {
        let uids = match named {
            None => vec![ourselves()],
            Some(named) => {
                let passwd = fs::read_to_string(PASSWD).unwrap_or_default();
                named.iter().map(|user| number(user, &passwd)).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { uids, anybody: anybody() })
    }

    /// Whether users can be told from each other at all: not if we have the number of those who have none.
    pub(crate) fn are_told_apart(&self) -> bool {
        self.anybody != Some(ourselves())
    }

    pub(crate) fn admit(&self, uid: u32) -> bool {
        self.anybody != Some(uid) && self.uids.contains(&uid)
    }
}

fn number(user: &LocalUser, passwd: &str) -> Result<u32, String> {
    match user {
        LocalUser::Uid(uid) => Ok(*uid),
        LocalUser::Name(name) => uid_of(name, passwd).ok_or_else(|| {
            format!(
                "gateway.local_users: no user `{name}` in {PASSWD}; name the user by its uid (`id -u {name}`)"
            )
        }),
    }
}

/// `name:password:uid:…`
fn uid_of(name: &str, passwd: &str) -> Option<u32> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        fields.nth(1)?.parse().ok()
    })
}

/// In a user namespace that does not have all users, those that it lacks are all shown under one number.
fn anybody() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if map.split_ascii_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    Some(number.and_then(|number| number.trim().parse().ok()).unwrap_or(65_534))
}

#[cfg(test)]
mod tests {
    use super::{Users, ourselves, uid_of};
    use crate::config::LocalUser;

    #[test]
    fn x04_by_default_only_the_user_that_we_run_as_is_admitted() {
        let users = Users::of(None).unwrap();
        assert!(users.admit(ourselves()));
        assert!(!users.admit(ourselves() + 1));
        let others = Users::of(Some(&[LocalUser::Uid(ourselves() + 1)])).unwrap();
        assert!(others.admit(ourselves() + 1) && !others.admit(ourselves()), "the list is all there is");
        assert!(!Users::of(Some(&[])).unwrap().admit(ourselves()));
    }

    #[test]
    fn a_name_is_looked_up_and_one_that_is_not_there_is_an_error() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nalice:x:1001:1001::/home/alice:/bin/sh\n";
        assert_eq!(uid_of("alice", passwd), Some(1001));
        assert_eq!(uid_of("ali", passwd), None);
        let error = Users::of(Some(&[LocalUser::Name("no such user".into())])).unwrap_err();
        assert!(error.contains("no such user"), "{error}");
    }

    #[test]
    fn x04_the_number_of_unmapped_users_admits_nobody() {
        let users = Users { uids: vec![65_534], anybody: Some(65_534) };
        assert!(!users.admit(65_534));
        let us = Users { uids: vec![ourselves()], anybody: Some(ourselves()) };
        assert!(!us.are_told_apart());
    }
}
