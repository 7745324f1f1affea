//! What a drill of a fleet needs of the machine, and the namespaces that it runs in.
//!
//! The drill starts itself once more, as the first process of namespaces of its own (network, processes, mounts). Whatever happens to
//! it, the kernel ends everything that was started there, and its networks with it.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The folders in which programs are looked for.
const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Programs, and the packages of Debian that have them.
const PROGRAMS: [(&str, &str); 5] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("haproxy", "haproxy"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
];

/// Where Debian has the library that sets the clock of one process, and of a program that is not static.
const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

/// Everything that is missing, in one sentence.
///
/// # Errors
/// The sentence.
pub(super) fn check(nats: &Path) -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("the drill of a fleet makes network namespaces: run it as root".to_owned());
    }
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| find(program).is_none()).collect();
    if !missing.is_empty() {
        let names: Vec<_> =
            missing.iter().map(|(program, package)| format!("{program} ({package})")).collect();
        let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
        return Err(format!("not installed: {}; apt-get install {}", names.join(", "), packages.join(" ")));
    }
    if !nats.exists() {
        return Err(format!(
            "no nats-server at {}: tools/real-nats installs one, --nats names another",
            nats.display()
        ));
    }
    Ok(())
}

fn find(program: &str) -> Option<PathBuf> {
    PLACES.iter().map(|place| Path::new(place).join(program)).find(|path| path.exists())
}

/// The library that sets the clock of this program alone; or why there is none.
pub(super) fn faketime(program: &Path) -> Result<PathBuf, String> {
    // A program that the dynamic linker starts names it near its beginning.
    let beginning = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let beginning = &beginning[..beginning.len().min(4096)];
    if !beginning.windows(8).any(|bytes| bytes == b"ld-linux") {
        return Err("steps of the clock (the binary is static: libfaketime cannot set its clock)".to_owned());
    }
    let library = FAKETIME.iter().map(PathBuf::from).find(|path| path.exists());
    library.ok_or_else(|| "steps of the clock (not installed: libfaketime)".to_owned())
}

/// Runs this program again with these arguments, in namespaces of its own; they end with it, and it ends with us.
///
/// # Errors
/// If that cannot be.
pub(super) fn enclosed(program: &Path, arguments: &[String]) -> Result<ExitCode, String> {
    let mut inside = Command::new("unshare")
        .args(["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"])
        .arg(program)
        .args(arguments)
        // The end of this pipe is our end. An interrupt from the terminal is for us alone.
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("unshare: {error}"))?;
    let held = inside.stdin.take();
    let ended = inside.wait().map_err(|error| error.to_string())?;
    drop(held);
    Ok(ended.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Ends this process, and with it everything in its namespaces, when whoever started it is gone.
pub(super) fn ends_with_its_parent(folder: PathBuf) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = std::fs::remove_dir_all(&folder);
        #[expect(
            clippy::disallowed_methods,
            reason = "the kernel ends everything below the first process of a namespace"
        )]
        std::process::exit(1);
    });
}

/// Runs a command of the system, to its end.
///
/// # Errors
/// What it said, if it failed.
pub(super) fn run(words: &[&str]) -> Result<(), String> {
    let [program, args @ ..] = words else { return Ok(()) };
    let done = Command::new(program).args(args).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim()))
}
