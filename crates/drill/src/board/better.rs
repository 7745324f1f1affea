//! Where somebody else is better than linetender. A board that hides this is an advertisement.

use super::digest::{Side, lost};
use super::matrix::{Played, Verdict, matrix};
use super::times::Times;
use super::words::{moment, percent};
use crate::results::Row;

/// A difference that is smaller than this share, or than this many milliseconds, is noise.
const NOISE: f64 = 0.1;
const NOISE_MS: f64 = 2.0;

/// What is better in the peer's row than in ours: how, by what factor, and in words.
struct Lead {
    row: String,
    factor: f64,
    words: String,
}

/// One sentence for each thing at which a peer beats one of ours, on one side.
pub(super) fn better(side: &Side) -> Vec<String> {
    let rows = matrix(side);
    let ours = || side.digests.iter().enumerate().filter(|(_, own)| own.target.ours);
    let peers = side.digests.iter().enumerate().filter(|(_, own)| !own.target.ours);
    let mut told = Vec::new();
    for (peer_at, peer) in peers {
        for (our_at, our) in ours() {
            let names = (peer.target.name.as_str(), our.target.name.as_str());
            let pairs: Vec<_> =
                rows.iter().map(|line| (line, &line.verdicts[peer_at], &line.verdicts[our_at])).collect();
            told.extend(pairs.iter().filter_map(|(line, peer, our)| kept(names, line, peer, our)));
            let both =
                || pairs.iter().filter_map(|(line, peer, our)| Some((*line, peer.played()?, our.played()?)));
            let of_all = both().count();
            let soon = both().filter_map(|(line, peer, our)| sooner(line, peer, our)).collect();
            told.extend(most(names, "was back sooner than", soon, of_all));
            let fewer = both().filter_map(|(line, peer, our)| fewer_lost(line, peer, our)).collect();
            told.extend(most(names, "lost fewer calls than", fewer, of_all));
        }
    }
    told
}

fn kept((peer, our): (&str, &str), line: &Played, by_peer: &Verdict, by_us: &Verdict) -> Option<String> {
    let (Verdict::Kept(_), Verdict::Broken(broken)) = (by_peer, by_us) else { return None };
    let finding = broken.findings.first().map_or_else(String::new, |finding| format!(": {finding}"));
    Some(format!("{peer} kept {}, and {our} did not{finding}", name(line.row)))
}

fn sooner(line: &Played, peer: &Row, our: &Row) -> Option<Lead> {
    let [theirs, own] = [peer, our].map(|row| Times::of(row.back_ms.iter().copied()).at(0.5));
    let (short, long) = (theirs.length()?, own.length()?);
    (short < long * (1.0 - NOISE) && long - short > NOISE_MS).then(|| Lead {
        row: name(line.row),
        factor: long / short.max(f64::MIN_POSITIVE),
        words: format!("{} against {} (p50)", moment(theirs), moment(own)),
    })
}

fn fewer_lost(line: &Played, peer: &Row, our: &Row) -> Option<Lead> {
    let [theirs, own] = [peer, our].map(|row| lost(&row.calls));
    (theirs < own * (1.0 - NOISE)).then(|| Lead {
        row: name(line.row),
        factor: own / theirs.max(f64::MIN_POSITIVE),
        words: format!("{} against {}", percent(theirs), percent(own)),
    })
}

/// All leads of one kind in one sentence, with the widest as the example.
fn most((peer, our): (&str, &str), verb: &str, leads: Vec<Lead>, of_all: usize) -> Option<String> {
    let number = leads.len();
    let widest = leads.into_iter().max_by(|one, other| one.factor.total_cmp(&other.factor))?;
    Some(format!(
        "{peer} {verb} {our} in {number} of {of_all} rows; most so in {}: {}",
        widest.row, widest.words
    ))
}

/// A row, so that it cannot be mistaken for its neighbour.
pub(super) fn name(row: &Row) -> String {
    format!("{} ({}, {} server, {})", row.row, row.title, row.server, row.era)
}
