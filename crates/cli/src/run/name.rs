//! What people would call a server that was given no name. It is shown everywhere, so no argument may get into it that could
//! be a secret: only what stands where a program's own name stands.

use std::ffi::OsString;
use std::path::Path;

use linetender::Redacted;
use linetender::package::{package, stem};

/// The longest name.
const LONGEST: usize = 60;

pub(crate) fn of(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    Redacted::head(&stem(package(&words)), LONGEST).to_string()
}

/// Of a server at `unix:/run/x.sock:/mcp/NAME`: its name there, else the socket's.
pub(super) fn of_socket(url: &str) -> &str {
    let (socket, path) =
        url.split_once(":/").and_then(|(_, rest)| rest.split_once(":/")).unwrap_or((url, ""));
    let named = path.strip_prefix("mcp/").filter(|name| !name.is_empty());
    let stem = || Path::new(socket).file_stem().and_then(|stem| stem.to_str());
    named.or_else(stem).unwrap_or("gateway")
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_socket_is_called_after_the_server_behind_it() {
        for (url, name) in [
            ("unix:/run/gateway.sock", "gateway"),
            ("unix:/run/gateway.sock:/mcp", "gateway"),
            ("unix:/run/gateway.sock:/mcp/git", "git"),
        ] {
            assert_eq!(super::of_socket(url), name);
        }
    }

    #[test]
    fn a_server_is_called_what_people_would_call_it_and_never_by_a_secret() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-github@2.1", "server-github"),
            ("npx --prefix /opt/x mcp-server-everything stdio", "mcp-server-everything"),
            ("uvx mcp-server-git --repository /r", "mcp-server-git"),
            ("uv tool run --from pkg mcp-server-time", "mcp-server-time"),
            ("/usr/bin/python3.11 -m mcp_server", "mcp_server"),
            ("python3 /home/me/notes.py --api-key hunter2", "notes"),
            ("node dist/index.js", "index"),
            ("docker run -i --rm -e TOKEN=hunter2 -e OTHER image:latest", "image:latest"),
            ("env -i DB_PASS=hunter2 srv", "srv"),
            ("srv --api-key hunter2", "srv"),
            ("/opt/my.server hunter2", "my.server"),
            ("npx --api-key hunter2", "npx"),
            ("sh -c hunter2", "sh"),
            ("uvx mcp-server-git==1.2", "mcp-server-git==1.2"),
            ("cmd /c npx -y @modelcontextprotocol/server-github", "server-github"),
            (r"C:\nodejs\npx.cmd -y server-github", "server-github"),
            ("python3 -c hunter2", "python3"),
        ] {
            let words: Vec<_> = command.split(' ').map(Into::into).collect();
            assert_eq!(of(&words), name, "{command}");
        }
    }
}
