//! Where a program is, as whoever configured it would find it in a terminal: `npx` is `npx.cmd` somewhere on `PATH`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf, is_separator};

use crate::stdio::child::Program;

/// What can be run, by the end of its name. `PATHEXT` may name more (`.JS`, `.PY`), which only a shell can run.
const RUNNABLE: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// The order in which the ends of names are tried, where the environment does not say.
const ENDS: &str = ".COM;.EXE;.BAT;.CMD";

/// The program, if it is there. A name without a folder is looked for on the server's `PATH`, and not in the folder where somebody
/// happens to be.
pub(super) fn find(program: &Program) -> Option<PathBuf> {
    let name = Path::new(program.argv.first()?);
    let ends = program.env.get("PATHEXT").unwrap_or_else(|| ENDS.into());
    let ends = ends_of(&ends);
    // With a drive it is a path too: joined to a folder, `C:server` would be a file where somebody happens to be on that drive.
    if name.as_os_str().to_string_lossy().contains(|char| is_separator(char) || char == ':') {
        // As on other systems, a relative path begins where the server will run.
        let path = program.dir.as_ref().map_or_else(|| name.to_owned(), |dir| dir.join(name));
        return in_place(&std::path::absolute(path).ok()?, &ends, true);
    }
    let path = program.env.get("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.into_iter().find_map(|folder| in_place(&folder.join(name), &ends, false))
}

/// Whether it is a script for `cmd.exe`.
pub(super) fn is_batch(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("bat") || end.eq_ignore_ascii_case("cmd"))
}

fn ends_of(ends: &OsStr) -> Vec<OsString> {
    let ends = ends.to_string_lossy();
    let ends = ends.split(';').map(|end| end.trim().trim_start_matches('.'));
    ends.filter(|end| is_runnable(OsStr::new(end))).map(OsString::from).collect()
}

fn is_runnable(end: &OsStr) -> bool {
    RUNNABLE.iter().any(|runnable| end.eq_ignore_ascii_case(runnable))
}

/// The file of this name, or of this name and one of the ends. One without an end counts only if it was named by its path: beside
/// `npx.cmd` there is a script `npx` for other systems.
fn in_place(path: &Path, ends: &[OsString], by_path: bool) -> Option<PathBuf> {
    let has_end = path.extension().is_some_and(is_runnable);
    if has_end && path.is_file() {
        return Some(path.to_owned());
    }
    let with = |end: &OsString| {
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(end);
        PathBuf::from(name)
    };
    let found = ends.iter().map(with).find(|path| path.is_file());
    found.or_else(|| (by_path && path.is_file()).then(|| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{find, is_batch};
    use crate::stdio::child::{Env, Program};
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn folder(name: &str, files: &[&str]) -> Folder {
        let dir = std::env::temp_dir().join(format!("linetender {name} é {}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for file in files {
            std::fs::write(dir.join(file), "").unwrap();
        }
        Folder(dir)
    }

    fn program(name: &str, dir: &Folder, ends: &str) -> Program {
        let env = vec![("Path".into(), dir.0.clone().into_os_string()), ("PATHEXT".into(), ends.into())];
        Program { argv: vec![name.into()], dir: None, env: Env::Only(env) }
    }

    #[test]
    fn a_name_is_found_with_the_ends_that_the_environment_lists_and_only_with_those_that_run() {
        let dir =
            folder("ends", &["npx", "npx.cmd", "npx.ps1", "tool.js", "tool.1.exe", "both.exe", "both.cmd"]);
        let found = |name, ends| find(&program(name, &dir, ends));
        let npx = found("npx", ".COM;.EXE;.BAT;.CMD;.JS").unwrap();
        assert!(
            npx.to_string_lossy().eq_ignore_ascii_case(&dir.0.join("npx.cmd").to_string_lossy()),
            "{npx:?}"
        );
        assert!(is_batch(&npx));
        assert_eq!(found("npx", ".EXE"), None);
        assert_eq!(found("tool", ".JS"), None);
        assert!(found("tool.1", ".exe").is_some());
        assert_eq!(found("npx.cmd", ".EXE"), Some(dir.0.join("npx.cmd")));
        assert!(
            !is_batch(&found("both", ".EXE;.CMD").unwrap()) && is_batch(&found("both", ".CMD;.EXE").unwrap())
        );
    }

    #[test]
    fn a_relative_path_begins_where_the_server_runs() {
        let dir = folder("relative", &["server.exe", "plain"]);
        let mut program = program(r".\server", &dir, ".EXE");
        assert_eq!(find(&program), None);
        program.dir = Some(dir.0.clone());
        assert!(find(&program).is_some());
        program.argv = vec!["./plain".into()];
        assert!(find(&program).is_some(), "named by its path");
    }

    /// `C:server` is a path: a file in the folder where this process happens to be on that drive.
    #[test]
    fn a_name_with_a_drive_is_not_looked_for_on_the_path() {
        let dir = folder("drive", &["server.exe"]);
        let here = std::env::current_dir().unwrap();
        let drive = here.display().to_string().chars().next().unwrap();
        let beside = here.join(format!("linetender-here-{}.exe", std::process::id()));
        std::fs::write(&beside, "").unwrap();
        let name = beside.file_name().unwrap().to_str().unwrap();
        let found = find(&program(&format!("{drive}:{name}"), &dir, ".EXE"));
        std::fs::remove_file(&beside).unwrap();
        assert!(found.is_none_or(|path| path.is_absolute()));
    }
}
