//! The variables that a server is given when nothing else is said: what a program needs to run at all, and nothing that could be a
//! secret.

#[cfg(not(windows))]
pub(super) const ALLOWED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
];

// By the names of other systems alone a program here would have `PATH`. Without `SystemRoot` none can open a socket, and node and Python
// get no random numbers and end at once; without `PATHEXT` and `ComSpec` a script finds no other; without `TEMP` files go to the
// system's own folder.
#[cfg(windows)]
pub(super) const ALLOWED: [&str; 28] = [
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ALLUSERSPROFILE",
    "ProgramFiles",
    "ProgramFiles(x86)",
    "ProgramW6432",
    "CommonProgramFiles",
    "PROCESSOR_ARCHITECTURE",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "HOME",
    "TERM",
    "LANG",
    "LC_ALL",
    "TZ",
];

#[cfg(all(test, windows))]
mod tests {
    use crate::Server;

    #[test]
    fn a_server_gets_what_a_program_of_this_system_cannot_run_without() {
        let server = Server::stdio("a", ["a"]);
        let given = server.own_env().unwrap();
        for needed in
            ["PATH", "PATHEXT", "SYSTEMROOT", "COMSPEC", "TEMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA"]
        {
            assert!(given.iter().any(|(name, _)| name.eq_ignore_ascii_case(needed)), "{needed}: {given:?}");
        }
        assert!(!given.iter().any(|(name, _)| name.eq_ignore_ascii_case("WINEPREFIX")), "{given:?}");
    }
}
