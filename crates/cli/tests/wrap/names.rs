//! No entry and no message names a package that the public registries do not have from us yet.

use std::fs;

use super::{CONFIG, Home, LINETENDER};

#[test]
fn no_entry_names_a_package_that_anybody_may_register() {
    for runner in ["uvx", "npx"] {
        let home = Home::new(&format!("via-{runner}"));
        let file = home.file("mcp.json", CONFIG);
        for words in [&["mcp.json", "--via", runner][..], &["--all", "--check", "--via", runner]] {
            let (code, shown, said) = home.wrap(words);
            assert_eq!((code, &*shown), (2, ""), "{said}");
            let told = ["whoever registers its name first", "leave out --via"];
            assert!(told.iter().all(|told| said.contains(told)), "{said}");
        }
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), home.names()),
            (CONFIG, vec!["mcp.json".to_owned()])
        );
    }
}

/// As `uvx` and `npx` start it.
#[test]
fn a_program_in_the_cache_of_a_package_runner_writes_its_own_path_and_warns() {
    for (runner, place) in [
        ("uvx", ".cache/uv/archive-v0/x1Y/bin"),
        ("npx", ".npm/_npx/9a/node_modules/linetender-linux-x64/bin"),
    ] {
        let home = Home::new(&format!("cache-{runner}"));
        let file = home.file("mcp.json", CONFIG);
        let program = home.file(&format!("{place}/linetender"), "");
        fs::remove_file(&program).unwrap();
        fs::hard_link(LINETENDER, &program).unwrap();
        let path = program.display().to_string();
        let (code, _, said) = home.wrap_by(&program, &["mcp.json"]);
        assert_eq!(code, 0, "{said}");
        let wrapped = fs::read_to_string(&file).unwrap();
        assert_eq!(
            wrapped.matches(&format!("\"command\": \"{path}\", \"args\": [\"run\"")).count(),
            2,
            "{wrapped}"
        );
        assert!(said.contains(&format!("which {runner} may delete at any time")), "{said}");
        assert!(said.contains(&format!("to revert: {path} wrap 'mcp.json' --undo")), "{said}");
        let (code, _, said) = home.wrap_by(&program, &["mcp.json", "--undo"]);
        assert_eq!((code, fs::read_to_string(&file).unwrap().as_str()), (0, CONFIG), "{said}");
        // What is installed stays, so it is written, and there is nothing to warn of.
        home.file("bin/linetender", "");
        let (code, _, said) = home.wrap_by(&program, &["mcp.json"]);
        let wrapped = fs::read_to_string(&file).unwrap();
        assert_eq!((code, wrapped.matches("\"command\": \"linetender\"").count()), (0, 2), "{wrapped}");
        assert!(!said.contains("warning"), "{said}");
    }
}
