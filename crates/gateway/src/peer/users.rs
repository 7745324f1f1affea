//! Which users are admitted.

use crate::config::LocalUser;
use crate::system::{ourselves, unmapped_user, user_called};

/// Users of this machine, by number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Users {
    uids: Vec<u32>,
    /// The number that stands for every user without one in our namespace: it is nobody's, also if it is on the list.
    anybody: Option<u32>,
}

impl Users {
    /// Those that were named; if nobody was, the one that we run as.
    ///
    /// # Errors
    /// A name that this machine does not know.
    pub(crate) fn of(named: Option<&[LocalUser]>) -> Result<Self, String> {
        let uids = match named {
            None => vec![ourselves()],
            Some(named) => named.iter().map(number).collect::<Result<_, _>>()?,
        };
        Ok(Self { uids, anybody: unmapped_user() })
    }

    /// Whether users can be told from each other at all: not if we have the number of those who have none.
    pub(crate) fn are_told_apart(&self) -> bool {
        self.anybody != Some(ourselves())
    }

    pub(crate) fn admit(&self, uid: u32) -> bool {
        self.anybody != Some(uid) && self.uids.contains(&uid)
    }
}

fn number(user: &LocalUser) -> Result<u32, String> {
    match user {
        LocalUser::Uid(uid) => Ok(*uid),
        LocalUser::Name(name) => user_called(name).map_err(|why| format!("gateway.local_users: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Users, ourselves};
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
    #[cfg(unix)]
    fn a_name_that_is_not_there_is_an_error() {
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
