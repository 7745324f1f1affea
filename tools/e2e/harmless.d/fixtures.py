"""Servers that have what test servers lack: a context, a slow save, daemons, a login, work in children. `fixtures.py KIND JOURNAL
[OPTION]`. Each writes down what it was asked, what that did to which context, and whose each process is: the judge's oracle."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

kind, journal = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
option = sys.argv[3] if len(sys.argv) > 3 else ""
folder = os.getcwd()
said = threading.Lock()


def note(what, **fields):
    os.write(journal, json.dumps({"t": time.time(), "pid": os.getpid(), "what": what, **fields}).encode() + b"\n")


def say(message):
    with said:
        try:
            os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except OSError:
            os._exit(0)


def started(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


def whose(pid, owner, name):
    note("whose", child=pid, started=started(pid), owner=owner, name=name)


class Database:
    """A selected database, in the memory of the process. It begins with the one of the configuration: production."""

    tools = {"use": False, "insert": False, "drop_all": False, "which": True}

    def __init__(self):
        self.selected = "prod"

    def call(self, tool, words):
        if tool == "use":
            self.selected = words["db"]
            return f"using {self.selected}"
        if tool == "which":
            return self.selected
        note("effect", tool=tool, on=self.selected, key=words.get("key"))
        if tool == "insert":
            return f"inserted {words['key']} into {self.selected}"
        return f"dropped all tables of {self.selected}"


class Saver:
    """Keeps what it was told in memory, and writes it down at its end, which takes `option` seconds."""

    tools = {"remember": False, "slow": False}

    def __init__(self):
        self.saving = False
        signal.signal(signal.SIGTERM, lambda *_: self.save("SIGTERM"))
        signal.signal(signal.SIGINT, lambda *_: self.save("SIGINT"))

    def call(self, tool, words):
        return None if tool == "slow" else f"kept {words['key']}"

    def save(self, why):
        if self.saving:
            return
        self.saving = True
        note("saving", why=why)
        until = time.monotonic() + float(option)
        while time.monotonic() < until:
            time.sleep(max(0.0, until - time.monotonic()))
        note("saved")
        os._exit(0)

    def end(self):
        self.save("EOF")


class Daemons:
    """Starts what its user wants to keep: a development server, left behind as people do, and a tmux server."""

    tools = {"dev_server": False, "tmux": False, "count": False}

    def __init__(self):
        self.counted = 0

    def call(self, tool, _words):
        if tool == "count":
            self.counted += 1
            return str(self.counted)
        if tool == "dev_server":
            shell = subprocess.run(
                "nohup setsid sleep 600 >/dev/null 2>&1 & echo $!",
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
            )
            time.sleep(0.1)
            whose(int(shell.stdout), "user", "dev server (nohup setsid)")
            return "started"
        tmux = ["tmux", "-S", os.path.join(folder, "tmux"), "-f", "/dev/null"]
        subprocess.run(
            [*tmux, "new-session", "-d", "-s", "work", "sleep 600"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        shown = subprocess.run([*tmux, "display", "-p", "#{pid}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        whose(int(shown.stdout), "user", "tmux server")
        return "started"


class Once:
    """Answers one call and ends with 0, as wrappers of command lines do."""

    tools = {"convert": False}

    def call(self, _tool, words):
        note("effect", tool="convert", on="-", key=words.get("key"))
        return f"converted {words['key']}"

    def after(self):
        os._exit(0)


class Idler:
    """Ends with 0 when nobody has called it for a second."""

    tools = {"echo": False}

    def __init__(self):
        self.used = time.monotonic()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while time.monotonic() < self.used + 1:
            time.sleep(0.05)
        note("idle")
        os._exit(0)

    def call(self, _tool, words):
        self.used = time.monotonic()
        return words["key"]


class Login:
    """Logs in when it starts; the other side counts, and locks the account after five wrong passwords."""

    tools = {"whoami": True, "send": False}

    def __init__(self):
        note("login", accepted=option == "right")
        if option != "right":
            sys.stderr.write("FATAL: login failed for user alice: wrong password\n")
            sys.exit(1)

    def call(self, tool, words):
        if tool == "send":
            note("effect", tool=tool, on="alice", key=words.get("key"))
        return "alice"


class Migration:
    """Migrates its data when it starts, and must not be interrupted."""

    tools = {"query": True}

    def __init__(self):
        note("begun")
        time.sleep(float(option))
        note("done")

    def call(self, _tool, _words):
        return "rows"


class Worker:
    """A child works under a lock, which it gives back when it is told to end (SIGTERM), as git and terraform do."""

    tools = {"apply": False, "locked": False}

    def call(self, tool, _words):
        lock = os.path.join(folder, "lock")
        if tool == "locked":
            return str(os.path.exists(lock))
        work = f"trap 'rm -f {lock}; exit 1' TERM; touch {lock}; sleep 1.5 & wait; rm -f {lock}; touch {lock}.applied"
        child = subprocess.Popen(["sh", "-c", work], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whose(child.pid, "server", "child at work")
        while not os.path.exists(lock):
            time.sleep(0.02)
        threading.Thread(target=child.wait, daemon=True).start()
        return "begun"


class Order:
    """What it is told goes into a log, so the order counts."""

    tools = {"append": False}

    def call(self, _tool, words):
        note("effect", tool="append", on="-", key=words.get("key"))
        return f"appended {words['key']}"


class Busy:
    """A synchronous tool that computes: nothing else is answered meanwhile, no ping either."""

    tools = {"train": False}

    def call(self, _tool, words):
        until = time.monotonic() + words["seconds"]
        while time.monotonic() < until:
            pass
        note("trained")
        return "trained"


note("up", started=started(os.getpid()))
server = {
    "database": Database,
    "saver": Saver,
    "daemons": Daemons,
    "once": Once,
    "idler": Idler,
    "login": Login,
    "migration": Migration,
    "worker": Worker,
    "order": Order,
    "busy": Busy,
}[kind]()
for line in iter(sys.stdin.readline, ""):
    message = json.loads(line)
    method, number, words = message.get("method"), message.get("id"), message.get("params") or {}
    note("request", method=method, tool=words.get("name"))
    if number is None or method is None:
        continue
    if method == "initialize":
        say(
            {
                "id": number,
                "result": {
                    "protocolVersion": words["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": kind, "version": "1"},
                },
            }
        )
    elif method == "tools/list":
        say(
            {
                "id": number,
                "result": {
                    "tools": [
                        {"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": read}}
                        for name, read in server.tools.items()
                    ]
                },
            }
        )
    elif method == "tools/call":
        answer = server.call(words["name"], words.get("arguments") or {})
        if answer is not None:
            say({"id": number, "result": {"content": [{"type": "text", "text": answer}]}})
        if hasattr(server, "after"):
            server.after()
    elif method == "ping":
        say({"id": number, "result": {}})
    else:
        say({"id": number, "error": {"code": -32601, "message": "Method not found"}})
if hasattr(server, "end"):
    server.end()
