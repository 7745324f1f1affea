//! The states of a line as they look: a glyph that says it without colour, a colour, and how urgent it is.

use ratatui::style::Color;

/// Where a server stands.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Stand {
    // In the order of urgency, least first: this is how they are sorted.
    Closed,
    Idle,
    Up,
    Draining,
    Suspect,
    Dialing,
    Waiting,
    Ending,
    /// A state that this version does not know.
    Other,
    Parked,
    NeedsAuth,
    /// The linetender process does not answer.
    Silent,
}

impl Stand {
    pub(super) fn of(state: &str) -> Self {
        match state {
            "up" => Self::Up,
            "idle" => Self::Idle,
            "dialing" => Self::Dialing,
            "suspect" => Self::Suspect,
            "draining" => Self::Draining,
            "ending" => Self::Ending,
            "waiting" => Self::Waiting,
            "parked" => Self::Parked,
            "needs-auth" => Self::NeedsAuth,
            "closed" => Self::Closed,
            _ => Self::Other,
        }
    }

    /// One column wide; no two that mean different things to a reader are alike.
    pub(super) const fn glyph(self) -> char {
        match self {
            Self::Up => '▇',
            Self::Idle => '·',
            Self::Closed => '-',
            Self::Draining => '▄',
            Self::Suspect => '?',
            Self::Dialing => '▒',
            Self::Waiting => '░',
            Self::Ending => 'x',
            Self::Parked => 'P',
            Self::NeedsAuth => 'A',
            Self::Silent => '!',
            Self::Other => '*',
        }
    }

    pub(super) const fn colour(self) -> Color {
        match self {
            Self::Up => Color::Green,
            Self::Idle | Self::Closed => Color::DarkGray,
            Self::Draining | Self::Suspect | Self::Dialing | Self::Waiting => Color::Yellow,
            Self::Ending | Self::Parked | Self::Silent => Color::Red,
            Self::NeedsAuth => Color::Magenta,
            Self::Other => Color::Cyan,
        }
    }

    /// Whether a person has to do something.
    pub(super) const fn needs_somebody(self) -> bool {
        matches!(self, Self::Parked | Self::NeedsAuth | Self::Silent)
    }
}
