//! The policy of our own targets: times that are a tenth in a drill, or as they come, and after what calls are sent again.

use linetender::Settings;
use linetender_badserver::{BELIEVED, BELIEVED_AT_MOST};

/// The drill's own, as every door of ours reads it.
const DRILL: &str = include_str!("../../policies/drill.toml");

/// The same times. Only what linetender counted as not executed is sent again.
const STRICT: &str =
    concat!(include_str!("../../policies/drill.toml"), include_str!("../../policies/strict.toml"));

/// The same times. Everything is sent again that can be.
const LOOSE: &str =
    concat!(include_str!("../../policies/drill.toml"), include_str!("../../policies/loose.toml"));

/// The drill's servers keep nothing in memory.
const STATELESS: &str = "state = \"none\"\n";

/// Where the shim finds it, and the one time that is no policy there.
const FLAGS: [&str; 4] = ["--policy", "{dir}/policy.toml", "--call-timeout", "3s"];

/// The policy of our own targets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policy {
    /// A tenth of the defaults.
    #[default]
    Drill,
    /// The same times, and no word of a server permits a re-send.
    Strict,
    /// The same times, and every refusal that can permit a re-send does.
    Loose,
    /// The times as they come.
    Default,
}

impl Policy {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Drill => "drill",
            Self::Strict => "strict",
            Self::Loose => "loose",
            Self::Default => "default",
        }
    }

    /// As TOML.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Drill => DRILL,
            Self::Strict => STRICT,
            Self::Loose => LOOSE,
            Self::Default => STATELESS,
        }
    }

    /// The flags by which the shim is told.
    pub(crate) fn flags(self) -> Vec<String> {
        match self {
            Self::Drill | Self::Strict | Self::Loose => FLAGS.map(str::to_owned).to_vec(),
            Self::Default => vec!["--stateless".to_owned()],
        }
    }

    /// True if its times are the drill's.
    pub(crate) const fn hurries(self) -> bool {
        !matches!(self, Self::Default)
    }

    /// The refusals after which calls are sent again.
    pub(crate) const fn believed(self) -> &'static [&'static str] {
        match self {
            Self::Drill | Self::Default => BELIEVED,
            Self::Strict => &[],
            Self::Loose => BELIEVED_AT_MOST,
        }
    }

    /// As the library has it.
    pub(crate) fn read(text: &str) -> linetender::Policy {
        let settings: Settings = toml::from_str(text).unwrap_or_default();
        linetender::Policy::new(settings).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use linetender::{RetryOn, RetryReason, ServerState};

    use super::{DRILL, Policy, Settings};

    fn own(policy: Policy) -> linetender::Policy {
        Policy::read(policy.text())
    }

    #[test]
    fn the_drills_policy_is_one() {
        let settings: Settings = toml::from_str(DRILL).unwrap();
        assert_eq!(*own(Policy::Drill).settings(), settings);
        let mut default = Settings::default();
        default.state = ServerState::None;
        assert_eq!(*own(Policy::Default).settings(), default);
        assert_ne!(settings, default);
        let mut strict = settings;
        strict.retry_on = RetryOn::NOT_EXECUTED;
        assert_eq!(*own(Policy::Strict).settings(), strict);
        let loose = own(Policy::Loose).settings().retry_on;
        assert!(RetryReason::SETTABLE.into_iter().all(|reason| loose.contains(reason)), "{loose:?}");
    }
}
