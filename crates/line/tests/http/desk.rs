//! Credentials that a test hands out itself.

use std::sync::{Arc, Mutex};

use linetender::{Asked, Key, Keys, NoKey, Redacted, Refused};
use tokio::sync::watch;

/// What is handed out.
pub type Given = Result<Option<Key>, NoKey>;

/// Hands out keys, and remembers who asked.
#[derive(Debug)]
pub struct Desk {
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
    /// Whether it answers at all about refused keys.
    open: watch::Sender<bool>,
}

#[derive(Debug)]
struct Inner {
    now: Given,
    /// What comes after a refusal, the next one first; when they are used up, the last one again.
    next: Vec<Given>,
    asked: Vec<Option<Refused>>,
}

#[allow(clippy::unnecessary_wraps, reason = "it stands among others that are errors")]
pub fn key(number: u32) -> Given {
    Ok(Some(Key::bearer(&token(number)).unwrap()))
}

/// As it stands in the header.
pub fn bearer(number: u32) -> String {
    format!("Bearer {}", token(number))
}

fn token(number: u32) -> String {
    format!("desk-token-{number:06}")
}

pub fn login(words: &str) -> Given {
    Err(NoKey::Login { words: Redacted::head(words, 200) })
}

pub fn later(words: &str) -> Given {
    Err(NoKey::Later { words: Redacted::head(words, 200), after: None })
}

impl Desk {
    /// Hands out this key, and these after it was refused.
    pub fn with(now: Given, next: impl IntoIterator<Item = Given>) -> Arc<Self> {
        let inner = Inner { now, next: next.into_iter().collect(), asked: Vec::new() };
        Arc::new(Self {
            inner: Mutex::new(inner),
            changes: watch::Sender::new(0),
            open: watch::Sender::new(true),
        })
    }

    /// Answers nothing about refused keys until it is opened again.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Hands out something else from now on, and says so.
    pub fn change(&self, now: Given, next: impl IntoIterator<Item = Given>) {
        self.quietly(now, next);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The same, and says nothing.
    pub fn quietly(&self, now: Given, next: impl IntoIterator<Item = Given>) {
        let mut inner = self.inner.lock().unwrap();
        (inner.now, inner.next) = (now, next.into_iter().collect());
    }

    /// How often it was asked about a refused key.
    pub fn refusals(&self) -> Vec<Refused> {
        self.inner.lock().unwrap().asked.iter().flatten().cloned().collect()
    }

    /// How often it was asked without one.
    pub fn questions(&self) -> usize {
        self.inner.lock().unwrap().asked.iter().filter(|refused| refused.is_none()).count()
    }
}

impl Keys for Desk {
    fn key(self: Arc<Self>, refused: Option<Refused>) -> Asked {
        self.inner.lock().unwrap().asked.push(refused.clone());
        Box::pin(async move {
            if refused.is_some() {
                let _ = self.open.subscribe().wait_for(|open| *open).await;
            }
            let mut inner = self.inner.lock().unwrap();
            if refused.is_some() {
                let next = if inner.next.len() > 1 { inner.next.remove(0) } else { inner.next[0].clone() };
                if next.is_ok() {
                    inner.now.clone_from(&next);
                }
                return next;
            }
            inner.now.clone()
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
