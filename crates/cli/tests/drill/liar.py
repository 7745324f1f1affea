"""A target that does what no target may, so that the drill can be seen to notice. Speaks on its pipes.

`twice` gives every call to the server twice; `swallow` says nothing when the server dies; `lie` says then that what was
under way did not run, `mute` says it without a word, and both go; `hasty` kills its server as soon as it has begun to start, and
starts another; `listless` answers every `tools/list` with an error, and goes with its server; `panic` goes the
same way, and says on stderr what a program in Rust would; `late` swallows what was under way, refuses the next call, and has another
server for those after it.
"""

import json
import os
import subprocess
import sys
import threading

how, command = sys.argv[1], sys.argv[2:]
lock = threading.Lock()
under_way = {}
refuses = []
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if how == "hasty":
    book = command[command.index("--book") + 1]
    while not os.path.exists(book) or not os.path.getsize(book):
        pass
    server.kill()
    server.wait()
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def say(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answers():
    global server
    for line in server.stdout:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if message.get("id") == "again":
            continue
        under_way.pop(message.get("id"), None)
        say(message)
    for id in list(under_way):
        if how == "lie":
            fields = {
                "source": "linetender",
                "server": "bad",
                "phase": "at the server",
                "cause": "it died",
                "delivery": "not executed",
                "nextTry": "never",
            }
            say({"jsonrpc": "2.0", "id": id, "error": {"code": 7005, "message": "it died", "data": fields}})
        elif how == "mute":
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": ""}})
    if how == "late" and under_way:
        refuses.append(True)
        under_way.clear()
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return answers()
    if how == "panic":
        print("thread 'main' panicked at src/main.rs:1:1:", file=sys.stderr, flush=True)
    if how in ("lie", "mute", "listless", "panic"):
        os._exit(0)


reader = threading.Thread(target=answers, daemon=True)
reader.start()
for line in sys.stdin:
    message = json.loads(line)
    if how == "listless" and message.get("method") == "tools/list":
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "no list today"}})
        continue
    if refuses and message.get("method") == "tools/call":
        refuses.pop()
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "not yet"}})
        continue
    if message.get("method") == "tools/call":
        under_way[message["id"]] = True
    try:
        server.stdin.write(line.encode())
        if how == "twice" and message.get("method") == "tools/call":
            server.stdin.write((json.dumps({**message, "id": "again"}) + "\n").encode())
        server.stdin.flush()
    except BrokenPipeError:
        pass
if how == "twice":
    server.stdin.close()
    server.wait()
server.kill()
