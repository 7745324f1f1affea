//! What is made of these arguments for other programs.

use std::path::PathBuf;

use clap_complete::Shell;

/// Print a script that completes linetender's commands and flags in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender completions bash > ~/.local/share/bash-completion/completions/linetender
  linetender completions zsh > ~/.zfunc/_linetender      with fpath+=~/.zfunc before compinit
  linetender completions fish > ~/.config/fish/completions/linetender.fish

Exit codes:
  0  the script was printed
  1  it could not be written
  2  there is no such shell")]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// Print linetender's man page, or write those of all commands into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linetender man | man -l -
  linetender man ~/.local/share/man/man1      then: man linetender-serve

Exit codes:
  0  the pages were written
  1  they could not be written")]
pub(crate) struct Man {
    /// Folder for the pages of all commands; made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}
