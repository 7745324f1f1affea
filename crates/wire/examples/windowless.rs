//! The same server, as a program that never has a console. Wine starts a process for each console, which holds the pipes of the one that
//! wanted it: what a server closes stays open then.

#![cfg_attr(windows, windows_subsystem = "windows")]

use std::process::ExitCode;

mod child;

fn main() -> ExitCode {
    child::main()
}
