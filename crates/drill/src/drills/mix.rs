//! The mix of a soak, written down: which scenarios, and how often each. A seed chooses the order.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::dice::Dice;
use crate::scenario::{Era, Scenario};

const FAULTS: &str = include_str!("../../mixes/faults.toml");

/// Faults of one scenario on one instance: what accumulates is what a soak is for.
const BLOCK: u32 = 20;

/// A mix.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Scenarios, each with its weight.
    pub rows: Vec<(Scenario, u32)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    weights: BTreeMap<String, u32>,
}

/// Faults of one scenario in one era, on one instance.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Block {
    /// Which row of the mix.
    pub(crate) row: usize,
    pub(crate) era: Era,
    pub(crate) faults: u32,
    /// What chance begins with in it.
    pub(crate) seed: u64,
}

impl Mix {
    /// The one in `mixes/faults.toml`.
    ///
    /// # Errors
    /// If it cannot be understood, which a test rules out.
    pub fn faults() -> Result<Self, String> {
        let file: File = toml::from_str(FAULTS).map_err(|error| format!("mixes/faults.toml: {error}"))?;
        let mut all: BTreeMap<_, _> =
            Scenario::all()?.into_iter().map(|one| (one.name.clone(), one)).collect();
        let mut rows = Vec::new();
        for (name, weight) in file.weights {
            let scenario =
                all.remove(&name).ok_or_else(|| format!("mixes/faults.toml: there is no scenario {name}"))?;
            rows.push((scenario, weight));
        }
        Ok(Self { rows })
    }

    /// The share of all faults that such scenarios have.
    pub fn share(&self, of: impl Fn(&Scenario) -> bool) -> f64 {
        let sum = |rows: &mut dyn Iterator<Item = &(Scenario, u32)>| {
            rows.map(|(_, weight)| f64::from(*weight)).sum::<f64>()
        };
        sum(&mut self.rows.iter().filter(|(scenario, _)| of(scenario))) / sum(&mut self.rows.iter())
    }

    /// So many faults, in blocks, in an order that the seed chooses. Each row gets what its weight says, to the fault.
    pub(crate) fn blocks(&self, faults: u32, seed: u64) -> Vec<Block> {
        let sum: u64 = self.rows.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let (mut blocks, mut through, mut dice) = (Vec::new(), 0_u64, Dice::new(seed));
        for (row, (scenario, weight)) in self.rows.iter().enumerate() {
            // Counted from both ends of its piece of the whole, so that all pieces together are the whole.
            let end = through + u64::from(*weight);
            let share = |part: u64| u32::try_from(u64::from(faults) * part / sum.max(1)).unwrap_or(u32::MAX);
            let mut left = share(end) - share(through);
            through = end;
            let eras = &scenario.server.eras;
            // A row with one block would have the same era in every pass if chance did not say which comes first.
            let mut era = usize::try_from(dice.below(eras.len() as u64)).unwrap_or(0);
            let most = if scenario.is_for_one_run() { 1 } else { BLOCK };
            while left > 0 {
                let faults = left.min(most);
                left -= faults;
                let block = Block { row, era: eras[era % eras.len()], faults, seed: dice.below(1 << 32) };
                blocks.push(block);
                era += 1;
            }
        }
        shuffle(&mut blocks, &mut dice);
        blocks
    }
}

fn shuffle<T>(all: &mut [T], dice: &mut Dice) {
    for last in (1..all.len()).rev() {
        all.swap(last, usize::try_from(dice.below(last as u64 + 1)).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Mix};
    use crate::scenario::{Kind, Who};

    #[test]
    fn the_mix_has_the_shares_that_it_promises() {
        let mix = Mix::faults().unwrap();
        for (scenario, _) in &mix.rows {
            let share = mix.share(|other| other.row == scenario.row);
            assert!(share <= 0.15, "{} has {share:.3} of all", scenario.row);
            let for_all =
                [Who::Line, Who::Shim, Who::Gateway].iter().all(|door| scenario.only.contains(door));
            assert!(scenario.skip.is_none() && (scenario.only.is_empty() || for_all), "{}", scenario.name);
        }
        let rows: std::collections::BTreeSet<_> =
            mix.rows.iter().map(|(scenario, _)| &scenario.row).collect();
        assert!(rows.len() >= 20, "{rows:?}");
        let in_flight = mix.share(crate::scenario::Scenario::is_in_flight);
        assert!(in_flight >= 0.30, "{in_flight:.2} with calls in flight");
        let real = mix.share(|scenario| scenario.server.kind != Kind::Bad);
        assert!(real >= 0.10, "{real:.2} on real servers");
    }

    #[test]
    fn over_some_passes_every_scenario_is_played_in_all_its_eras() {
        let mix = Mix::faults().unwrap();
        let blocks: Vec<_> = (0..16).flat_map(|pass| mix.blocks(1000, 7 + pass)).collect();
        for (row, (scenario, _)) in mix.rows.iter().enumerate() {
            for era in &scenario.server.eras {
                let played = |block: &Block| block.row == row && block.era == *era;
                assert!(blocks.iter().any(played), "{} in {era:?}", scenario.name);
            }
        }
    }

    #[test]
    fn a_seed_chooses_always_the_same_order_and_no_fault_is_lost() {
        let mix = Mix::faults().unwrap();
        let sum = |blocks: &[Block]| blocks.iter().map(|block| block.faults).sum::<u32>();
        for faults in [1, 100, 9_999, 10_000] {
            assert_eq!(sum(&mix.blocks(faults, 7)), faults);
        }
        assert_eq!(mix.blocks(1000, 7), mix.blocks(1000, 7));
        assert_ne!(mix.blocks(1000, 7), mix.blocks(1000, 8));
    }
}
