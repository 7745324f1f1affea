//! `linetender serve` as a person and a service manager see it.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

mod ends;
mod journal;
mod kit;
mod reload;

use kit::Home;

#[test]
fn a_broken_file_is_shown_with_its_place() {
    let home = Home::new("broken", "[servers.a]\n{bad}\nenv = { KEY = \"${NO_SUCH_VARIABLE}\" }\n");
    let output = home.serve(&[]).output().unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("NO_SUCH_VARIABLE is not set"), "{words}");
    assert!(words.contains("linetender.toml:4:"), "it says where: {words}");
}
