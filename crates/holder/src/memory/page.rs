//! One page of the memory: a file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use linetender::{Era, Kind, Remembered};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::draft_of;
use crate::trusted;

/// The largest page: what offers more is asked anew each time.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The most pages. When one more is written the oldest go: an environment that is never the same twice must not fill a disk.
const MOST_PAGES: usize = 256;

/// How often in a row a server may fail to start before it is not believed any more that it is what it was.
const FAILED_STARTS: u8 = 3;

/// Where a page lies.
#[derive(Clone, Debug)]
pub(super) struct Page {
    path: PathBuf,
}

/// The file's text.
#[derive(Deserialize, Serialize)]
struct Text {
    era: Spelt,
    greeting: Box<RawValue>,
    lists: BTreeMap<Kind, Vec<Box<RawValue>>>,
    #[serde(default)]
    failed_starts: u8,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Spelt {
    Legacy,
    Modern,
}

impl Page {
    pub(super) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    fn read(&self) -> Option<Text> {
        let mut text = String::new();
        let file = match trusted::read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(file = %self.path.display(), %error, "cached server page ignored");
                return None;
            }
        };
        file.take(MOST_BYTES + 1).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// It is whole or not there: whoever reads it meanwhile reads the old one.
    fn write(&self, text: &Text) {
        let written = serde_json::to_vec(text).map_err(io::Error::from).and_then(|text| {
            if text.len() as u64 > MOST_BYTES {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large to cache"));
            }
            let draft = draft_of(&self.path);
            let renamed = trusted::create(&draft)
                .and_then(|mut file| file.write_all(&text))
                .and_then(|()| fs::rename(&draft, &self.path));
            renamed.inspect_err(|_| drop(fs::remove_file(&draft)))
        });
        if let Err(error) = written {
            // Nobody is worse off than without a memory, so nobody is woken for it; but an old page would be a wrong one.
            tracing::debug!(%error, "cannot write the server cache");
            let _ = fs::remove_file(&self.path);
        }
    }

    fn make_room(&self) {
        let pages = self.path.parent().map(pages).unwrap_or_default();
        let too_many = pages.len().saturating_sub(MOST_PAGES);
        for (_, path) in pages.into_iter().take(too_many) {
            let _ = fs::remove_file(path);
        }
    }
}

impl linetender::Page for Page {
    /// What is on it. A page that cannot be read is no page.
    fn recall(&self) -> Option<Remembered> {
        let Text { era, greeting, lists, .. } = self.read()?;
        let era = match era {
            Spelt::Legacy => Era::Legacy,
            Spelt::Modern => Era::Modern,
        };
        Remembered::new(era, greeting.get(), lists)
    }

    /// Writes this on it, in place of what was there.
    fn keep(&self, what: &Remembered) {
        let era = match what.era() {
            Era::Legacy => Spelt::Legacy,
            Era::Modern => Spelt::Modern,
        };
        let Ok(greeting) = RawValue::from_string(what.greeting().to_owned()) else { return };
        self.write(&Text { era, greeting, lists: what.lists(), failed_starts: 0 });
        self.make_room();
    }

    /// The server did not start. After a few times in a row the page goes.
    fn failed(&self) {
        let Some(text) = self.read() else { return };
        let failed_starts = text.failed_starts.saturating_add(1);
        if failed_starts >= FAILED_STARTS {
            self.forget();
        } else {
            self.write(&Text { failed_starts, ..text });
        }
    }

    /// The page goes.
    fn forget(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// All pages in a folder, and what drafts of dead writers lie about; the oldest first.
fn pages(folder: &Path) -> Vec<(std::time::SystemTime, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut pages: Vec<_> = entries
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json" || end == "draft"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    pages.sort();
    pages
}
