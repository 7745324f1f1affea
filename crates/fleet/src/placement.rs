//! Who should have a line: each node has a weight for each line, and the heaviest one has it.
//!
//! So a node that comes or goes moves only its own share, and all that know the same nodes agree without a word (rendezvous hashing).

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// The node that should have this line, by its name, of those that live and have room.
pub fn owner<'a>(line: &str, nodes: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nodes.into_iter().max_by_key(|node| (weight(line, node), *node))
}

/// A number for these names: the same in every process of every version.
pub fn number(names: &[String]) -> u64 {
    let mut hash = SipHasher13::new_with_keys(0x6c69_6e65, 0x7465_6e64);
    for name in names {
        hash.write(&(name.len() as u64).to_le_bytes());
        hash.write(name.as_bytes());
    }
    hash.finish()
}

fn weight(line: &str, node: &str) -> u64 {
    // The same in every process of every version: the keys are part of the rule.
    let mut hash = SipHasher13::new_with_keys(0x6c69_6e65, 0x7465_6e64);
    hash.write(&(node.len() as u64).to_le_bytes());
    hash.write(node.as_bytes());
    hash.write(line.as_bytes());
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::owner;

    fn lines() -> Vec<String> {
        (0..3000).map(|number| format!("line-{number}")).collect()
    }

    #[test]
    fn each_of_three_nodes_has_about_a_third() {
        let nodes = ["ash", "birch", "cedar"];
        for node in nodes {
            let has = lines().iter().filter(|line| owner(line, nodes) == Some(node)).count();
            assert!((900..1100).contains(&has), "{node} has {has} of 3000");
        }
        assert_eq!(owner("line", []), None);
    }

    #[test]
    fn a_node_that_goes_moves_only_its_own_lines() {
        let three = ["ash", "birch", "cedar"];
        let two = ["cedar", "ash"];
        for line in lines() {
            let before = owner(&line, three).unwrap();
            if before != "birch" {
                assert_eq!(owner(&line, two), Some(before));
            }
        }
    }

    /// All nodes of a fleet must agree, also those of another version.
    #[test]
    fn the_rule_is_as_it_always_was() {
        let nodes = ["n1", "n2", "n3", "n4"];
        let owners: Vec<_> =
            ["a", "b", "c", "d", "files", "memory"].map(|line| owner(line, nodes).unwrap()).into();
        assert_eq!(owners, OWNERS);
    }

    const OWNERS: [&str; 6] = ["n4", "n1", "n1", "n1", "n4", "n2"];
}
