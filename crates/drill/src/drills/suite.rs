//! Which scenarios are played: a suite, and what is picked of it.

use crate::scenario::{Era, Scenario, Times};

/// Which scenarios.
#[derive(Clone, Copy, Debug)]
pub enum Suite {
    /// All of them.
    Promises,
    /// Those that any shim or gateway could pass.
    Board,
    /// Those of them in which the server hangs, at default times: they take minutes each, and almost no CPU.
    Hangs,
}

/// Which scenarios of a suite: all, where nothing is named.
#[derive(Clone, Debug, Default)]
pub struct Pick {
    /// Those of these rows, and those of these names.
    pub rows: Vec<String>,
    /// Those of these names, and no others of their row.
    pub scenarios: Vec<String>,
    /// Only in this era.
    pub era: Option<Era>,
}

impl Suite {
    /// The scenarios of it that are picked. What a suite leaves out stays out: a row that cannot be compared must not come into
    /// a board by its name.
    ///
    /// # Errors
    /// If it has no such row or scenario, or none in that era.
    pub fn scenarios(self, pick: &Pick) -> Result<Vec<Scenario>, String> {
        let mut all = Scenario::all()?;
        match self {
            Self::Promises => {}
            Self::Board | Self::Hangs => {
                let hangs = matches!(self, Self::Hangs);
                all.retain(|scenario| {
                    scenario.fair && scenario.skip.is_none() && (scenario.times == Times::Default) == hangs
                });
            }
        }
        let Pick { rows, scenarios, era } = pick;
        let is_named = |scenario: &Scenario, name: &String| scenario.name.eq_ignore_ascii_case(name);
        let is = |scenario: &Scenario, row: &String| {
            scenario.row.eq_ignore_ascii_case(row) || is_named(scenario, row)
        };
        let (of, list) = match self {
            Self::Promises => ("", ""),
            Self::Board => (" in the suite board", " --suite board"),
            Self::Hangs => (" in the suite hangs", " --suite hangs"),
        };
        let none = |what: &str| Err(format!("there is no {what}{of}: see `linetender drill list{list}`"));
        if let Some(row) = rows.iter().find(|row| !all.iter().any(|scenario| is(scenario, row))) {
            return none(&format!("row {row}"));
        }
        if let Some(name) = scenarios.iter().find(|name| !all.iter().any(|scenario| is_named(scenario, name)))
        {
            return none(&format!("scenario {name}"));
        }
        all.retain(|scenario| {
            (rows.is_empty() && scenarios.is_empty())
                || rows.iter().any(|row| is(scenario, row))
                || scenarios.iter().any(|name| is_named(scenario, name))
        });
        if let Some(era) = era {
            for scenario in &mut all {
                scenario.server.eras.retain(|own| own == era);
            }
            all.retain(|scenario| !scenario.server.eras.is_empty());
            if all.is_empty() {
                return none(&format!("such scenario in the {} era", era.word()));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::{Pick, Suite};
    use crate::scenario::Era;

    fn names(suite: Suite, rows: &[&str]) -> Result<Vec<String>, String> {
        let rows: Vec<_> = rows.iter().map(|row| (*row).to_owned()).collect();
        picked(suite, &Pick { rows, ..Pick::default() })
    }

    fn picked(suite: Suite, pick: &Pick) -> Result<Vec<String>, String> {
        Ok(suite.scenarios(pick)?.into_iter().map(|scenario| scenario.name).collect())
    }

    #[test]
    fn a_scenario_is_picked_alone_and_in_one_era() {
        let pick = |name: &str, era| Pick { scenarios: vec![name.to_owned()], era, ..Pick::default() };
        let all = Suite::Promises.scenarios(&pick("s05", Some(Era::Modern))).unwrap();
        assert!(all.len() == 1 && all[0].name == "S05" && all[0].server.eras == [Era::Modern], "{all:?}");
        let told = picked(Suite::Promises, &pick("S16", Some(Era::Modern))).unwrap_err();
        assert!(told.contains("in the modern era"), "{told}");
        assert!(
            picked(Suite::Board, &pick("S05-rush", None)).unwrap_err().contains("no scenario S05-rush in")
        );
    }

    #[test]
    fn a_row_brings_all_its_scenarios_but_only_those_of_the_suite() {
        assert!(names(Suite::Promises, &["s05"]).unwrap().contains(&"S05-rush".to_owned()));
        assert_eq!(names(Suite::Board, &["S05"]).unwrap(), ["S05"]);
    }

    #[test]
    fn a_row_that_the_suite_does_not_have_is_told() {
        assert!(
            names(Suite::Board, &["S05", "S05-rush"]).unwrap_err().contains("S05-rush in the suite board")
        );
        assert!(names(Suite::Promises, &["S99"]).unwrap_err().contains("no row S99:"));
    }
}
