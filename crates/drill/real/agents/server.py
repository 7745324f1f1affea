"""A server with one tool that works and one that kills it, and nothing that an agent's own reading could stumble over.

    server.py BOOK [no-list]

Each run of a tool is a line of the book. With `no-list` it dies whenever it is asked for its tools.
"""

import json
import os
import signal
import sys

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bad", "version": "1"}}
NOTHING = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "echo", "description": "Answers.", "inputSchema": NOTHING},
    {"name": "kill", "description": "Kills the server before it answers.", "inputSchema": NOTHING},
]
LAST_WORDS = "fatal: the disk is full"


def call(tool: str) -> dict:
    with open(sys.argv[1], "a") as book:
        book.write(tool + "\n")
    if tool == "kill":
        print(LAST_WORDS, file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"content": [{"type": "text", "text": "it works"}]}


def answer(method: str, params: dict) -> dict | None:
    match method:
        case "initialize":
            return HELLO
        case "ping":
            return {}
        case "tools/list" if "no-list" in sys.argv:
            sys.exit(LAST_WORDS)
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(params["name"])


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        result = answer(asked["method"], asked.get("params") or {})
        told = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | told), flush=True)


main()
