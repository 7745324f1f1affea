//! Following journals: the last entries, and then each as it is written.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use linetender_holder::journal::{Entry, Tail};

/// How often the files are looked at.
const AGAIN: Duration = Duration::from_millis(250);

/// Shows the last `most` entries that are wanted, and those that come, until `show` fails.
pub(crate) fn follow(
    places: &[PathBuf],
    most: usize,
    wanted: impl Fn(&Entry) -> bool,
    mut show: impl FnMut(&str, &Entry) -> io::Result<()>,
) -> io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut tails: Vec<Tail> = places.iter().map(Tail::new).collect();
    let mut is_first = true;
    let mut failed = vec![false; tails.len()];
    loop {
        let mut found: VecDeque<(String, Entry)> = VecDeque::new();
        for ((tail, place), failed) in tails.iter_mut().zip(places).zip(&mut failed) {
            let read = tail.poll(|line, entry| {
                if wanted(&entry) {
                    found.push_back((line, entry));
                }
                // Only the last of those that were there before are shown.
                if is_first && found.len() > most * places.len() {
                    found.pop_front();
                }
            });
            // It is said once; the file may be put right.
            if let Err(error) = read
                && !std::mem::replace(failed, true)
            {
                eprintln!("linetender: cannot read {}: {error}", place.display());
            }
        }
        // Times of one length and one zone sort as they are spelt.
        found.make_contiguous().sort_by(|(_, one), (_, other)| one.at.cmp(&other.at));
        let skipped = if is_first { found.len().saturating_sub(most) } else { 0 };
        for (line, entry) in found.iter().skip(skipped) {
            show(line, entry)?;
        }
        is_first = false;
        runtime.block_on(async { tokio::time::sleep(AGAIN).await });
    }
}
