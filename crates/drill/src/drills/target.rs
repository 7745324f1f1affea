//! Who is drilled: our library in this process, or anything that an adapter describes.

use linetender_badserver::BELIEVED;

use super::policy::Policy;
use crate::adapter::{Adapter, Language};
use crate::results;
use crate::scenario::{Era, Scenario, Who};

/// Who is drilled.
#[derive(Clone, Debug)]
pub enum Target {
    /// The library, in this process.
    Line,
    /// A program.
    Outside(Box<Adapter>),
}

impl Target {
    /// `line`, `shim`, `shared`, `gateway`, or the path of an adapter's file.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be understood.
    pub fn find(name: &str) -> Result<Self, String> {
        if name == "line" {
            Ok(Self::Line)
        } else {
            Adapter::find(name).map(|adapter| Self::Outside(Box::new(adapter)))
        }
    }

    /// Whether it is one of linetender's own.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Line => true,
            Self::Outside(adapter) => adapter.ours,
        }
    }

    /// Whether the servers of a soak may have habits: it is told what they are. A shared server has several agents.
    pub(crate) fn keeps_habits(&self) -> bool {
        match self {
            Self::Line => true,
            Self::Outside(adapter) => adapter.ours && !adapter.detached,
        }
    }

    /// The refusals after which it may send a call again. Others than ours have no such setting: what MCP promises is believed.
    pub(crate) fn believes(&self, policy: Policy) -> &'static [&'static str] {
        if self.is_ours() { policy.believed() } else { BELIEVED }
    }

    /// What scenarios call it in `only`.
    fn who(&self) -> Who {
        match self {
            Self::Line => Who::Line,
            Self::Outside(adapter) if !adapter.ours => Who::Other,
            Self::Outside(adapter) if is_spoken_to_on_pipes(adapter) => Who::Shim,
            Self::Outside(_) => Who::Gateway,
        }
    }

    /// Why this scenario is not for it.
    pub(crate) fn skips(&self, scenario: &Scenario, era: Era) -> Option<String> {
        if !scenario.only.is_empty() && !scenario.only.contains(&self.who()) {
            let only: Vec<_> = scenario.only.iter().map(|who| who.word()).collect();
            return Some(format!("only for {}", only.join(", ")));
        }
        match self {
            Self::Line => None,
            Self::Outside(adapter) if adapter.way(scenario.server.over.word()).is_none() => {
                Some(format!("not for servers over {}", scenario.server.over.word()))
            }
            Self::Outside(adapter) if !adapter.eras.contains(&era) => {
                Some(format!("does not speak to agents of the {} era", era.word()))
            }
            Self::Outside(_) => None,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Line => "linetender (library)",
            Self::Outside(adapter) => &adapter.name,
        }
    }

    /// Its page of the results, without rows.
    pub(crate) fn page(&self, policy: Policy) -> results::Target {
        let (version, settings, speaks) = match self {
            Self::Line => (env!("CARGO_PKG_VERSION").to_owned(), "as it comes".to_owned(), "library"),
            Self::Outside(adapter) => {
                let speaks = match adapter.speaks {
                    Language::Openapi => "openapi",
                    Language::Mcp if is_spoken_to_on_pipes(adapter) => "stdio",
                    Language::Mcp => "http",
                };
                (adapter.version.clone(), adapter.settings.clone(), speaks)
            }
        };
        let settings = match policy {
            policy if self.is_ours() && policy.hurries() => format!("{settings}, with the drill's times"),
            _ => settings,
        };
        results::Target {
            name: self.name().to_owned(),
            version,
            settings,
            speaks: speaks.to_owned(),
            ours: self.is_ours(),
            ..results::Target::default()
        }
    }
}

fn is_spoken_to_on_pipes(adapter: &Adapter) -> bool {
    [&adapter.stdio, &adapter.http].into_iter().flatten().all(|way| way.url.is_none())
}
