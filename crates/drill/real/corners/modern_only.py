"""Runs a server of both eras as one that has forgotten the old one: `initialize` is refused, everything else passes."""

import json
import subprocess
import sys
import threading

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
lock = threading.Lock()


def say(line: bytes) -> None:
    with lock:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def down() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if isinstance(message, dict) and message.get("method") == "initialize":
            error = {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode() + b"\n")
        else:
            server.stdin.write(line)
            server.stdin.flush()
    server.stdin.close()


threading.Thread(target=down, daemon=True).start()
for line in server.stdout:
    say(line)
sys.exit(server.wait() & 255)
