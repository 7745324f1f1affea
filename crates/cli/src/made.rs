//! `linetender completions` and `linetender man`: made of the same arguments that are parsed.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{self, Args};

pub(crate) fn completions(args: &args::Completions) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "linetender", &mut script);
    done(io::stdout().write_all(&script))
}

pub(crate) fn man(args: &args::Man) -> ExitCode {
    match &args.folder {
        None => done(clap_mangen::Man::new(Args::command()).render(&mut io::stdout())),
        Some(folder) => done(pages(folder)),
    }
}

fn pages(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Args::command(), folder)
}

fn done(written: io::Result<()>) -> ExitCode {
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linetender: cannot write: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

    use clap::{Command, CommandFactory as _, ValueEnum as _};
    use clap_complete::Shell;

    use super::{Args, pages};

    /// Every command that people see, with the words that lead to it.
    fn visible(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            let words = format!("{words}-{}", sub.get_name());
            found.push((words.clone(), sub.clone()));
            visible(sub, &words, found);
        }
    }

    fn all() -> Vec<(String, Command)> {
        let mut found = Vec::new();
        visible(&Args::command(), "linetender", &mut found);
        found
    }

    #[test]
    fn every_command_shows_an_example_and_its_exit_codes() {
        let lacks: Vec<_> = all()
            .into_iter()
            // What only developers of linetender run says so on the page of `drill`.
            .filter(|(words, _)| {
                !["drill-soak-", "drill-bench-", "drill-page"].iter().any(|of| words.contains(of))
            })
            // The words that only lead to other commands end in none.
            .filter(|(_, command)| !command.has_subcommands())
            .filter(|(_, command)| {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                !(help.contains("Example") && help.contains("Exit codes"))
            })
            .map(|(words, _)| words)
            .collect();
        assert!(lacks.is_empty(), "commands without an example or exit codes in their after_help: {lacks:?}");
    }

    #[test]
    fn every_command_has_a_man_page_and_is_completed_in_every_shell() {
        let folder = std::env::temp_dir().join(format!("linetender-man-{}", std::process::id()));
        pages(&folder).unwrap();
        let scripts: Vec<_> = Shell::value_variants()
            .iter()
            .map(|shell| {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut Args::command(), "linetender", &mut script);
                (shell, String::from_utf8(script).unwrap())
            })
            .collect();
        for (words, command) in all() {
            let page = std::fs::read_to_string(folder.join(format!("{words}.1"))).unwrap_or_default();
            assert!(page.contains(".SH SYNOPSIS"), "{words}: {page:?}");
            let name = command.get_name();
            for (shell, script) in &scripts {
                // clap_complete's script for fish ends at the second word; only `drill` has a third.
                let is_left_out = **shell == Shell::Fish && words.starts_with("linetender-drill-");
                assert!(is_left_out || script.contains(name), "{name} in {shell}");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn bash_completes_commands_and_flags() {
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut Args::command(), "linetender", &mut script);
        let script = String::from_utf8(script).unwrap();
        let complete = |words: &[&str]| {
            let listed = words.join(" ");
            let last = words.len() - 1;
            let ask = format!(
                "{script}\nCOMP_WORDS=({listed}); COMP_CWORD={last}; COMP_LINE='{listed}'; COMP_POINT=${{#COMP_LINE}}\n\
                 _linetender linetender '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
                words[last],
                words[last - 1]
            );
            match std::process::Command::new("bash").args(["--norc", "-c", &ask]).output() {
                Ok(done) => Some(String::from_utf8_lossy(&done.stdout).into_owned()),
                // There is no such shell here.
                Err(_) => None,
            }
        };
        let Some(commands) = complete(&["linetender", "doc"]) else { return };
        assert_eq!(commands.trim(), "doctor");
        assert_eq!(complete(&["linetender", "doctor", "--js"]).unwrap().trim(), "--json");
    }
}
