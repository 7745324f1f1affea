//! What a resource is part of. Whoever subscribed to a resource hears of its parts too.
// MCP, `notifications/resources/updated`: the URI "might be a sub-resource of the one that the client actually subscribed to".

/// So many levels are looked at: a server decides how many there are.
const LEVELS: usize = 64;

/// An address, and those that it may be a part of, the nearest first.
pub(crate) fn with_wholes(uri: &str) -> impl Iterator<Item = &str> {
    let cuts = uri.rmatch_indices(['/', '?', '#']).take(LEVELS);
    // A folder is spelt with its slash or without.
    let wholes = cuts.flat_map(|(at, cut)| [&uri[..at + cut.len()], &uri[..at]]);
    std::iter::once(uri).chain(wholes.filter(|whole| whole.len() < uri.len()))
}

#[cfg(test)]
mod tests {
    use super::{LEVELS, with_wholes};

    #[test]
    fn an_address_is_part_of_what_it_begins_with_up_to_a_cut() {
        let all: Vec<_> = with_wholes("file:///a/b#c").collect();
        assert_eq!(all[..5], ["file:///a/b#c", "file:///a/b#", "file:///a/b", "file:///a/", "file:///a"]);
        assert!(!all.contains(&"file:///a/b#c/") && !all.contains(&"file:///a/bb"));
        assert_eq!(with_wholes("x:y").collect::<Vec<_>>(), ["x:y"]);
        assert_eq!(with_wholes("a/").collect::<Vec<_>>(), ["a/", "a"]);
        assert!(with_wholes(&"/".repeat(10_000)).count() <= 2 * LEVELS + 1);
    }
}
