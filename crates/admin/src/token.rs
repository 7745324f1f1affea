//! The one token of the address: compared by its hash, and read again when its file changes.

use std::collections::HashMap;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use linetender_holder::trusted;
use tokio::time::Instant;

use crate::Secret;

/// The shortest token. One that was made by a machine is longer.
const SHORTEST: usize = 16;

/// The longest token.
const LONGEST: usize = 4096;

/// How often it is looked whether the file has changed, if requests come.
const LOOK: Duration = Duration::from_secs(1);

/// How many wrong tokens an address may show within [`MINUTE`] before it is told to wait.
const WRONG: u32 = 20;
const MINUTE: Duration = Duration::from_secs(60);

/// The most addresses that are remembered.
const ADDRESSES: usize = 1024;

/// What requests have to show.
pub(crate) struct Token {
    hash: Mutex<Vec<u8>>,
    file: Option<PathBuf>,
    looked: Mutex<Instant>,
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

/// What a request showed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shown {
    Right,
    /// Nothing, or something else.
    Wrong,
    /// Too often.
    TooOften,
}

impl Token {
    pub(crate) fn of(secret: Secret) -> Result<Self, String> {
        let (hash, file) = match secret {
            Secret::Text(text) => (hashed(&text).map_err(|why| format!("gateway.admin.token {why}"))?, None),
            Secret::File(path) => (read(&path)?, Some(path)),
        };
        let (hash, looked) = (Mutex::new(hash), Mutex::new(Instant::now()));
        Ok(Self { hash, file, looked, wrong: Mutex::default() })
    }

    /// Judges what was shown. The right token is let in however often a wrong one came from the same address: a limit that locked
    /// it out would be a way to lock out the owner.
    pub(crate) async fn judge(&self, shown: Option<&str>, from: IpAddr) -> Shown {
        self.look().await;
        if shown.is_some_and(|shown| self.is(shown)) {
            return Shown::Right;
        }
        // Whoever shows nothing has not guessed.
        if shown.is_none() || self.may_err(from) { Shown::Wrong } else { Shown::TooOften }
    }

    fn is(&self, shown: &str) -> bool {
        // What is compared has one length, whatever was shown.
        let shown = digest(&SHA256, shown.as_bytes());
        verify_slices_are_equal(shown.as_ref(), &lock(&self.hash)).is_ok()
    }

    /// Counts a wrong token of this address.
    fn may_err(&self, from: IpAddr) -> bool {
        let (mut wrong, now) = (lock(&self.wrong), Instant::now());
        if wrong.len() >= ADDRESSES && !wrong.contains_key(&from) {
            wrong.retain(|_, (began, _)| now.duration_since(*began) < MINUTE);
            if wrong.len() >= ADDRESSES {
                wrong.clear();
            }
        }
        let (began, count) = wrong.entry(from).or_insert((now, 0));
        if now.duration_since(*began) >= MINUTE {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        if *count == WRONG {
            tracing::warn!(%from, "many wrong tokens at the admin address");
        }
        *count <= WRONG
    }

    /// Reads the file again, if it is time to. If it cannot be used, the token stays what it was.
    async fn look(&self) {
        let Some(file) = &self.file else { return };
        {
            let mut looked = lock(&self.looked);
            if looked.elapsed() < LOOK {
                return;
            }
            *looked = Instant::now();
        }
        let path = file.clone();
        match tokio::task::spawn_blocking(move || read(&path)).await {
            Ok(Ok(hash)) => {
                let mut known = lock(&self.hash);
                if *known != hash {
                    *known = hash;
                    tracing::info!(file = %file.display(), "the admin token changed");
                }
            }
            Ok(Err(problem)) => tracing::warn!(problem, "the admin token stays as it was"),
            Err(_) => {}
        }
    }
}

/// The hash of what stands in a file.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bad =
        |why: String| format!("the file of gateway.admin.token, {}, cannot be used: {why}", path.display());
    let (file, _) = trusted::read_named(path).map_err(|error| bad(error.to_string()))?;
    let mut text = String::new();
    file.take(LONGEST as u64 + 2).read_to_string(&mut text).map_err(|error| bad(error.to_string()))?;
    hashed(&text).map_err(|why| bad(format!("what it holds {why}")))
}

fn hashed(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim_end_matches(['\r', '\n']);
    match text.len() {
        ..SHORTEST => Err(format!(
            "is shorter than {SHORTEST} characters and could be guessed; make one: openssl rand -hex 32"
        )),
        SHORTEST..=LONGEST if text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(digest(&SHA256, text.as_bytes()).as_ref().to_vec())
        }
        _ => Err("is too long, or has characters that cannot stand in a header".to_owned()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::{Shown, Token, WRONG};
    use crate::Secret;

    const RIGHT: &str = "0123456789abcdef";
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test(start_paused = true)]
    async fn an_address_that_guesses_is_slowed_down_and_the_right_token_never_locked_out() {
        let token = Token::of(Secret::Text(RIGHT.to_owned())).unwrap();
        for _ in 0..WRONG {
            assert_eq!(token.judge(Some("0123456789abcdeg"), HERE).await, Shown::Wrong);
        }
        assert_eq!(token.judge(Some("0123456789abcdeg"), HERE).await, Shown::TooOften);
        assert_eq!(token.judge(None, HERE).await, Shown::Wrong, "nothing is no guess");
        assert_eq!(token.judge(Some(RIGHT), HERE).await, Shown::Right);
        let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(token.judge(Some("x"), other).await, Shown::Wrong, "others are not slowed down");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(token.judge(Some("x"), HERE).await, Shown::Wrong, "a minute later it may try again");
    }

    #[test]
    fn a_token_that_could_be_guessed_or_not_be_sent_is_refused() {
        for bad in ["", "short", "0123456789abcde\n", "0123456789 abcdef", "0123456789äbcdefg"] {
            assert!(Token::of(Secret::Text(bad.to_owned())).is_err(), "{bad:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_changes_the_token_and_a_broken_one_does_not() {
        let path = std::env::temp_dir().join(format!("linetender-admin-token-{}", std::process::id()));
        std::fs::write(&path, format!("{RIGHT}\n")).unwrap();
        let token = Token::of(Secret::File(path.clone())).unwrap();
        assert_eq!(token.judge(Some(RIGHT), HERE).await, Shown::Right);
        for (text, right) in [("another-token-0123", "another-token-0123"), ("x", "another-token-0123")] {
            std::fs::write(&path, text).unwrap();
            tokio::time::advance(Duration::from_secs(2)).await;
            assert_eq!(token.judge(Some(RIGHT), HERE).await, Shown::Wrong);
            assert_eq!(token.judge(Some(right), HERE).await, Shown::Right);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
