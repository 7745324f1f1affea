//! Programs that let another supervisor, or another machine, run the server: which ones they are, and how a container is
//! started by its command line. Whoever has to know one of them asks here.

use std::ffi::{OsStr, OsString};

/// The clients that are known. What such a program started does not end with its process.
const CLIENTS: [&str; 5] = ["docker", "podman", "kubectl", "ssh", "wsl"];

/// Flags of `docker`, and below them those of `podman`, that stand before `run` and have a value of their own, unless it follows
/// an `=`.
const GLOBAL_VALUES: [&str; 34] = [
    "-c",
    "--config",
    "--context",
    "-H",
    "--host",
    "-l",
    "--log-level",
    "--tlscacert",
    "--tlscert",
    "--tlskey",
    "--cdi-spec-dir",
    "--cgroup-manager",
    "--conmon",
    "--connection",
    "--db-backend",
    "--events-backend",
    "--hooks-dir",
    "--identity",
    "--imagestore",
    "--module",
    "--namespace",
    "--network-cmd-path",
    "--network-config-dir",
    "--out",
    "--root",
    "--runroot",
    "--runtime",
    "--runtime-flag",
    "--ssh",
    "--storage-driver",
    "--storage-opt",
    "--tmpdir",
    "--url",
    "--volumepath",
];

/// Flags of `run` that have no value of their own. Every other flag has one.
const RUN_SWITCHES: [&str; 24] = [
    "--detach",
    "--disable-content-trust",
    "--env-host",
    "--help",
    "--http-proxy",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--no-hostname",
    "--no-hosts",
    "--oom-kill-disable",
    "--passwd",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--read-only-tmpfs",
    "--replace",
    "--rm",
    "--rmi",
    "--sig-proxy",
    "--tls-verify",
    "--tty",
    "--use-api-socket",
];

/// The letters of such flags: `-it`.
const RUN_LETTERS: [char; 5] = ['d', 'i', 'P', 'q', 't'];

/// The client that a program is, by the name of its file: `/usr/bin/docker`, `wsl.exe`.
pub fn client(program: &OsStr) -> Option<&'static str> {
    let program = program.to_string_lossy();
    let file = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = file.strip_suffix(".exe").unwrap_or(&file);
    CLIENTS.into_iter().find(|client| *client == name)
}

/// The client that a command is, if what it starts is ended by nobody: it may outlive the client.
pub fn far_side(argv: &[OsString]) -> Option<&'static str> {
    let client = client(argv.first()?)?;
    ContainerRun::of(argv).is_none().then_some(client)
}

/// What is known of a plain `docker run` or `podman run`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ContainerRun {
    /// The place of `run` among the words.
    run: usize,
    /// True if the container is to be removed when it has ended (`--rm`).
    pub(super) removes: bool,
}

impl ContainerRun {
    /// Reads a command line. `None` if it is no plain one: another program or command, a container in the background, or one
    /// whose id the user has written to a file of their own.
    pub(super) fn of(argv: &[OsString]) -> Option<Self> {
        client(argv.first()?).filter(|client| is_container_client(client))?;
        let words: Vec<&str> = argv.iter().map(|word| word.to_str().unwrap_or("?")).collect();
        let run = command_at(&words).filter(|at| words[*at] == "run")?;
        if words.iter().any(|word| *word == "--cidfile" || word.starts_with("--cidfile=")) {
            return None;
        }
        let flags = RunFlags::read(&words[run + 1..]);
        (flags.has_image && !flags.detaches).then_some(Self { run, removes: flags.removes })
    }

    /// The same command line, which writes the container's id to this file.
    pub(super) fn with_cidfile(self, argv: &[OsString], cidfile: &OsStr) -> Vec<OsString> {
        let (before, after) = argv.split_at(self.run + 1);
        let ours = [OsString::from("--cidfile"), cidfile.to_owned()];
        before.iter().chain(&ours).chain(after).cloned().collect()
    }

    /// The client with its own flags: all that stands before `run`.
    pub(super) fn client(self, argv: &[OsString]) -> &[OsString] {
        &argv[..self.run]
    }
}

/// True for clients that run containers of images.
pub(super) fn is_container_client(client: &str) -> bool {
    matches!(client, "docker" | "podman")
}

/// The place of the first word that is no flag of the client's, nor the value of one.
fn command_at(words: &[&str]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') {
            return Some(at);
        }
        at += if GLOBAL_VALUES.contains(word) { 2 } else { 1 };
    }
    None
}

/// The flags between `run` and the image.
#[derive(Default)]
struct RunFlags {
    detaches: bool,
    removes: bool,
    has_image: bool,
}

impl RunFlags {
    fn read(words: &[&str]) -> Self {
        let mut flags = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let has_value_behind = if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty())
            {
                let (name, value) = long.split_once('=').unzip();
                let (name, is_on) = (name.unwrap_or(long), value != Some("false"));
                flags.detaches |= name == "detach" && is_on;
                flags.removes |= name == "rm" && is_on;
                let is_switch = RUN_SWITCHES.iter().any(|flag| flag[2..] == *name);
                value.is_none() && !is_switch
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
                let switches: Vec<char> =
                    letters.chars().take_while(|letter| RUN_LETTERS.contains(letter)).collect();
                flags.detaches |= switches.contains(&'d');
                // `-e NAME`, and not `-eNAME`: the flag is the last letter.
                letters.chars().count() == switches.len() + 1
            } else {
                flags.has_image = *word != "--" || words.next().is_some();
                return flags;
            };
            if has_value_behind {
                words.next();
            }
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};

    use super::{ContainerRun, client, far_side};

    fn argv(command: &str) -> Vec<OsString> {
        command.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_plain_run_gets_a_cidfile_and_its_client_keeps_its_own_flags() {
        for (command, changed, kills, removes) in [
            ("docker run -i img", "docker run --cidfile F -i img", "docker", false),
            (
                "/usr/bin/docker run -i --rm img",
                "/usr/bin/docker run --cidfile F -i --rm img",
                "/usr/bin/docker",
                true,
            ),
            (
                "podman --storage-driver vfs run -i img",
                "podman --storage-driver vfs run --cidfile F -i img",
                "podman --storage-driver vfs",
                false,
            ),
            (
                "docker -H tcp://h:1 --tls run --rm=false -i img",
                "docker -H tcp://h:1 --tls run --cidfile F --rm=false -i img",
                "docker -H tcp://h:1 --tls",
                false,
            ),
            // What stands behind the image is the server's.
            (
                "docker run -i -e NAME img -d --rm",
                "docker run --cidfile F -i -e NAME img -d --rm",
                "docker",
                false,
            ),
            ("docker run -e -d -i img", "docker run --cidfile F -e -d -i img", "docker", false),
            (
                "docker run -eA=d -itv /d:/d --name mcp --rm img",
                "docker run --cidfile F -eA=d -itv /d:/d --name mcp --rm img",
                "docker",
                true,
            ),
            ("docker.exe run -i -- img", "docker.exe run --cidfile F -i -- img", "docker.exe", false),
        ] {
            let words = argv(command);
            let run = ContainerRun::of(&words).unwrap_or_else(|| panic!("{command}"));
            assert_eq!(run.with_cidfile(&words, OsStr::new("F")), argv(changed), "{command}");
            assert_eq!((run.client(&words), run.removes), (&argv(kills)[..], removes), "{command}");
            assert_eq!(far_side(&words), None, "{command}");
        }
    }

    #[test]
    fn anything_else_is_left_as_it_is() {
        for (command, far) in [
            ("docker run -d img", Some("docker")),
            ("docker run -id img", Some("docker")),
            ("docker run --detach -i img", Some("docker")),
            ("docker run --detach=true img", Some("docker")),
            ("docker run --cidfile /tmp/c -i img", Some("docker")),
            ("docker run -i --cidfile=/tmp/c img", Some("docker")),
            ("docker run", Some("docker")),
            ("docker run -i", Some("docker")),
            ("docker exec -i mcp server", Some("docker")),
            ("docker compose run mcp", Some("docker")),
            ("docker --context run start -ai mcp", Some("docker")),
            ("kubectl exec -i pod -- server", Some("kubectl")),
            ("kubectl run -i pod", Some("kubectl")),
            ("ssh host server", Some("ssh")),
            (r"C:\Windows\System32\WSL.EXE -e server", Some("wsl")),
            ("npx server", None),
            ("sudo docker run -i img", None),
            ("dockerd run", None),
        ] {
            let words = argv(command);
            assert_eq!(ContainerRun::of(&words), None, "{command}");
            assert_eq!(far_side(&words), far, "{command}");
        }
        assert_eq!(client(OsStr::new("")), None);
        assert_eq!(far_side(&[]), None);
    }
}
