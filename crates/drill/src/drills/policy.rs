//! The times of our own targets: a tenth in a drill, or as they come.

use linetender::Settings;

/// The drill's own, as every door of ours reads it.
const DRILL: &str = include_str!("../../policies/drill.toml");

/// Where the shim finds it, and the one time that is no policy there.
const FLAGS: [&str; 4] = ["--policy", "{dir}/policy.toml", "--call-timeout", "3s"];

/// The times of our own targets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// A tenth of the defaults.
    #[default]
    Drill,
    /// As they come.
    Default,
}

impl Policy {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Drill => "drill",
            Self::Default => "default",
        }
    }

    /// As TOML.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Drill => DRILL,
            Self::Default => "",
        }
    }

    /// The flags by which the shim is told.
    pub(crate) fn flags(self) -> Vec<String> {
        match self {
            Self::Drill => FLAGS.map(str::to_owned).to_vec(),
            Self::Default => Vec::new(),
        }
    }

    /// As the library has it.
    pub(crate) fn own(self) -> linetender::Policy {
        let settings: Settings = toml::from_str(self.text()).unwrap_or_default();
        linetender::Policy::new(settings).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{DRILL, Policy, Settings};

    #[test]
    fn the_drills_policy_is_one() {
        let settings: Settings = toml::from_str(DRILL).unwrap();
        assert_eq!(*Policy::Drill.own().settings(), settings);
        assert_eq!(*Policy::Default.own().settings(), Settings::default());
        assert_ne!(settings, Settings::default());
    }
}
