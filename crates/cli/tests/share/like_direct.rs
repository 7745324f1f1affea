//! E09: what a server finds around itself, and its status, are what they are without linetender.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::kit::{House, eventually};

/// Writes down its limit and what it ignores; ends with status 3.
const SERVER: &str = r#"
import json, resource, sys
ignored = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("SigIgn"))
with open(sys.argv[1], "w") as out:
    out.write(json.dumps({"files": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "ignored": int(ignored, 16)}) + "\n")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        said = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": said}), flush=True)
sys.exit(3)
"#;

/// The soft limit of the agent, which linetender raises for itself.
const FILES: u64 = 300;

#[test]
fn e09_a_server_has_its_agents_limits_and_dispositions_and_run_has_its_status() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum: before.maximum }).unwrap();
    // A shared server goes on when its agent is gone.
    for (flags, status) in [(&["run"][..], 3), (&["run", "--share"], 0)] {
        let house = House::new();
        let out = house.path().join("out");
        let mut shim = house.linetender();
        shim.args(flags).args(["--no-memory", "--", "python3", "-c", SERVER]).arg(&out);
        let mut shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        writeln!(shim.stdin.as_mut().unwrap(), "{hello}").unwrap();
        let mut answer = String::new();
        BufReader::new(shim.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert!(answer.contains("2025-06-18"), "{answer}");
        drop(shim.stdin.take());
        assert_eq!(shim.wait().unwrap().code(), Some(status), "{flags:?}");
        let found: Value = eventually(|| serde_json::from_str(&std::fs::read_to_string(&out).ok()?).ok());
        assert_eq!(found["files"], FILES, "{flags:?}");
        // Numbers 32 and 33, which the C library has for itself.
        let reserved = found["ignored"].as_u64().unwrap() & (0b11 << 31);
        assert_eq!(reserved, 0, "{flags:?}: {found}");
    }
    setrlimit(Resource::Nofile, before).unwrap();
}
