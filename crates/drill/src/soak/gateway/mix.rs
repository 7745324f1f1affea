//! The mix of faults, written down: what happens, to which servers, and how often. A seed chooses from it.

use crate::dice::Dice;

/// Which servers a fault can happen to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum On {
    /// Every process that is ours to harm, real servers included.
    Pipes,
    /// Processes whose tools are faults.
    Bad,
    /// Servers at an address.
    Webs,
}

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Act {
    /// SIGKILL to the process that was started.
    Kill,
    /// SIGKILL to the last process below it: for `npx` that is the server itself.
    KillLast,
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Stop(u64),
    /// A call of this tool with these arguments, which is the fault.
    Tool(&'static str, &'static str),
    /// The next so many calls meet this tool of the web server, with these arguments, instead of an answer.
    Meet(u32, &'static str, &'static str),
    /// Every session is forgotten.
    Forget,
    /// Every connection is reset.
    Reset,
    /// Stopped and started again on the same port.
    Restart,
    /// Nothing is read or written for so many milliseconds.
    Silence(u64),
}

/// One row of the mix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// Of a hundred.
    pub(super) weight: u64,
    pub(super) on: On,
    pub(super) act: Act,
}

const fn row(name: &'static str, weight: u64, on: On, act: Act) -> Fault {
    Fault { name, weight, on, act }
}

/// The mix. A stop of three seconds is shorter than a call may take, one of twelve is longer.
pub(super) const MIX: &[Fault] = &[
    row("kill -9", 10, On::Pipes, Act::Kill),
    row("kill -9 of the last process of its tree", 4, On::Pipes, Act::KillLast),
    row("stopped for 3 s", 6, On::Pipes, Act::Stop(3_000)),
    row("stopped for 12 s", 4, On::Pipes, Act::Stop(12_000)),
    row("exits in mid-call", 5, On::Bad, Act::Tool("exit", r#"{"status":3}"#)),
    row("closes its output", 6, On::Bad, Act::Tool("close_stdout", "{}")),
    row("half a line, and exits", 6, On::Bad, Act::Tool("half", "{}")),
    row("noise around its answer", 4, On::Bad, Act::Tool("noise", "{}")),
    row("takes two seconds", 5, On::Bad, Act::Tool("sleep", r#"{"ms":2000}"#)),
    row("1 MB on stderr", 4, On::Bad, Act::Tool("flood_stderr", r#"{"bytes":1000000}"#)),
    row("answers twice", 3, On::Bad, Act::Tool("twice", "{}")),
    row("an answer that is too large", 4, On::Bad, Act::Tool("big", r#"{"bytes":2000000}"#)),
    row("500 for five calls", 6, On::Webs, Act::Meet(5, "status", r#"{"code":500}"#)),
    row(
        "503 with Retry-After for five calls",
        5,
        On::Webs,
        Act::Meet(5, "status", r#"{"code":503,"retry_after":1}"#),
    ),
    row("half a body for three calls", 3, On::Webs, Act::Meet(3, "half_body", "{}")),
    row("its sessions are lost (404)", 7, On::Webs, Act::Forget),
    row("every connection reset", 7, On::Webs, Act::Reset),
    row("restarted on its port", 7, On::Webs, Act::Restart),
    row("silent for 3 s", 4, On::Webs, Act::Silence(3_000)),
];

/// One of them, as often as its weight says.
pub(super) fn draw(dice: &mut Dice) -> &'static Fault {
    let mut left = dice.below(MIX.iter().map(|fault| fault.weight).sum());
    for fault in MIX {
        match left.checked_sub(fault.weight) {
            Some(rest) => left = rest,
            None => return fault,
        }
    }
    &MIX[0]
}

#[cfg(test)]
mod tests {
    use super::{MIX, draw};
    use crate::dice::Dice;

    #[test]
    fn weights_are_of_a_hundred_and_no_fault_outweighs_the_others() {
        assert_eq!(MIX.iter().map(|fault| fault.weight).sum::<u64>(), 100);
        assert!(MIX.iter().all(|fault| (1..=15).contains(&fault.weight)));
    }

    #[test]
    fn a_seed_chooses_always_the_same_and_leaves_nothing_out() {
        let drawn = |seed| -> Vec<_> {
            let mut dice = Dice::new(seed);
            (0..1000).map(|_| draw(&mut dice).name).collect()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert!(MIX.iter().all(|fault| drawn(7).contains(&fault.name)));
    }
}
