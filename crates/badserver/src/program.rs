//! Where a test finds a server to start: the binary of this build, or the program itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first argument by which a program that calls [`run_if_asked`] is a bad server.
pub const AS_SERVER: &str = "__badserver";

/// Runs the server, if the first argument of this program is [`AS_SERVER`]: a program that needs no other binary beside it.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    (args.next().as_deref() == Some(AS_SERVER)).then(|| crate::stdio::main(args))
}

/// The `badserver` binary in the target folder of this program: a test, an example or another binary. It is a reaper too.
///
/// Cargo builds it whenever this package's tests are built, so `--workspace` is enough. For the tests of one other package,
/// name this one as well: `-p linetender -p linetender-badserver`.
///
/// # Panics
/// If it has not been built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let this = std::env::current_exe().unwrap_or_default();
        let folder = this.parent().unwrap_or(Path::new(""));
        // Tests are in `deps` and examples in `examples`, one below the binaries.
        let below = folder.file_name().is_some_and(|name| name == "deps" || name == "examples");
        let name = format!("badserver{}", std::env::consts::EXE_SUFFIX);
        let path = if below { folder.with_file_name(name) } else { folder.join(name) };
        let built = if path.iter().any(|part| part == "release") { " --release" } else { "" };
        assert!(
            path.exists(),
            "{} is missing; build it with `cargo build{built} -p linetender-badserver`",
            path.display()
        );
        path
    })
}
