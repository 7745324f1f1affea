//! The core is what it says it is: `no_std`, no dependency, no clock.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::Command;

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_core_is_no_std_and_std_is_for_tests_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(src.join("lib.rs")).unwrap();
    assert!(lib.lines().any(|line| line == "#![no_std]"));
    let lines: Vec<_> = lib.lines().collect();
    let at = lines.iter().position(|line| *line == "extern crate std;").unwrap();
    assert_eq!(lines[at - 1], "#[cfg(test)]");
    assert!(!lib.contains("extern crate alloc"));

    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 15);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // What stands before the tests of a file may not name std.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let is_test = file.ends_with("tests.rs");
        let named = code.lines().any(|line| line.contains("std::") && !line.trim_start().starts_with("//"));
        assert!(is_test || !named, "{} names std", file.display());
    }
}

/// It asks cargo, which a program under wine cannot start.
#[cfg(unix)]
#[test]
fn the_core_depends_on_nothing_but_serde_and_that_only_if_asked() {
    let tree = |features: &[&str]| {
        let cargo = env!("CARGO");
        let output = Command::new(cargo)
            .args(["tree", "-p", "linetender-core", "-e", "normal", "--prefix", "none", "--offline"])
            .args(features)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        tree.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tree(&[]), ["linetender-core"]);
    let with_serde = tree(&["--features", "serde"]);
    assert!(with_serde.iter().all(|name| {
        name == "linetender-core"
            || name.starts_with("serde")
            // What serde's derive is made of, at build time.
            || ["proc-macro2", "quote", "syn", "unicode-ident"].contains(&name.as_str())
    }));
}
