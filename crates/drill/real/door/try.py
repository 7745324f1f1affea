"""Tries the shim as a new user would: a configuration with three real servers is wrapped, real clients call through it while
each server is killed, stopped, restarted and made to flap, and the configuration is put back.

    try.py LINETENDER REAL HERE      in the home folder that is the new user's
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LINETENDER, REAL, HERE = sys.argv[1:]
HOME = Path.home()
CONFIG = HOME / "project" / ".mcp.json"
LIMIT = 60

# What a person has to find in a failed call's text.
TEXT = re.compile(
    r'The call to the MCP server "[^"]+" failed: .+\. '
    r"(The call was not executed|It is unknown whether the call was executed|The server processed the call).+"
)


def say(text: str = "") -> None:
    # A transcript is read elsewhere: where this machine keeps its things means nothing there.
    for place, name in ((str(HOME), "~"), (HERE, "/opt/drill"), (REAL, "/opt/real")):
        text = text.replace(place, name)
    print(text, flush=True)


def shown(*words: str, ok: tuple[int, ...] = (0,)) -> str:
    """Runs linetender as it would be typed, and shows both."""
    say(f"$ linetender {' '.join(words)}")
    done = subprocess.run([LINETENDER, *words], capture_output=True, text=True, cwd=CONFIG.parent)
    say((done.stdout + done.stderr).rstrip() + "\n")
    assert done.returncode in ok, done.returncode
    return done.stdout


def until(what: str, so) -> None:
    start = time.monotonic()
    while not so():
        assert time.monotonic() - start < LIMIT, f"never: {what}"
        time.sleep(0.01)


def lines() -> dict[str, dict]:
    """This user's lines, by their servers' names."""
    text = subprocess.run([LINETENDER, "status", "--json"], capture_output=True, text=True).stdout
    reports = [holder["report"] for holder in json.loads(text)["holders"] if "report" in holder]
    return {line["server"]: line for report in reports for line in report["lines"]}


def leaf(pid: int) -> int:
    """The process at the end of a tree: npx starts a shell, and that starts the server."""
    while True:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not listed:
            return pid
        pid = int(listed[0])


class Child:
    """A server that its shim starts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def pid(self) -> int:
        found = []
        def up() -> bool:
            line = lines().get(self.name)
            if line is None or line["state"] != "up" or not line.get("pid"):
                return False
            try:
                found[:] = [leaf(line["pid"])]
            except OSError:
                return False
            return True
        until(f"{self.name} is up", up)
        return found[0]

    def kill(self) -> None:
        os.kill(self.pid(), signal.SIGKILL)

    def stop(self) -> None:
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(pid, signal.SIGCONT)

    def restart(self) -> None:
        os.kill(self.pid(), signal.SIGTERM)

    def flap(self) -> None:
        """Killed as soon as it has a process, until it is parked; then it is left alone, and the next call wakes it. Before it
        is up, since a server that answers ten calls between its deaths earns its restarts, however slow this machine is."""
        killed = set()
        def parked() -> bool:
            line = lines()[self.name]
            try:
                pid = leaf(line["pid"]) if line.get("pid") else None
                if pid and pid not in killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended meanwhile
            return line["state"] == "parked"
        until(f"{self.name} is parked", parked)

    def is_back(self, after: int | None) -> bool:
        line = lines()[self.name]
        return line["state"] == "up" and (after is None or line["generation"] > after)

    def end(self) -> None:
        pass


class Remote(Child):
    """A server that somebody else runs, at an address."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name)
        self.port = port
        self.start()

    def start(self) -> None:
        command = [f"{REAL}/py2/bin/python", f"{HERE}/server_mcp.py", "--http", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        until("the server listens", listens)

    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.start()

    def restart(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.start()

    def flap(self) -> None:
        for _ in range(4):
            self.kill()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configure(port: int) -> bytes:
    """A file as people have them: comments and odd spacing are for another test."""
    config = {
        "mcpServers": {
            "notes": {"command": f"{REAL}/py1/bin/python", "args": [f"{HERE}/server_mcp.py"], "env": {"NOTES_TOKEN": "secret"}},
            "everything": {"command": "npx", "args": ["--prefix", f"{REAL}/node", "mcp-server-everything", "stdio"]},
            "remote": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer secret"}},
        }
    }
    CONFIG.parent.mkdir()
    CONFIG.write_text(json.dumps(config, indent=2) + "\n")
    return CONFIG.read_bytes()


def drill(kind: str, command: list[str], servers: list[Child]) -> None:
    """One client per server, all faults, and what the clients saw."""
    stop = HOME / f"stop-{kind}"
    agents = {
        server.name: subprocess.Popen(
            [*command, str(CONFIG), server.name, str(stop)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for server in servers
    }
    until("all are up", lambda: sum(line["state"] == "up" for line in lines().values()) == len(servers))
    begun = lines()
    for fault in ("kill", "stop", "restart", "flap"):
        for server in servers:
            before = lines()[server.name]["generation"]
            getattr(server, fault)()
            # A stopped one is the same when it goes on. One over HTTP is too, unless its session went with it.
            same = fault == "stop" or isinstance(server, Remote)
            until(f"{server.name} is back", lambda: server.is_back(None if same else before))
    if kind == "python":
        shown("status")
    for name, line in lines().items():
        assert line["generation"] > begun[name]["generation"], f"nothing happened to {name}"
    stop.touch()
    for name, agent in agents.items():
        out, err = agent.communicate(timeout=LIMIT)
        assert agent.returncode == 0, f"{kind} on {name}: {err[-2000:]}"
        seen = json.loads(out)
        assert not seen["closed"], f"{kind}: the connection to {name} was closed"
        for text in seen["texts"]:
            assert TEXT.match(text), f"nobody understands this: {text}"
        say(f"{kind:<10} {name:<11} {seen['answered']:>5} answered, {seen['failed']:>3} failed with a reason, never closed")
        # Over HTTP calls wait for a server that restarts: that none was under way when it was killed is a matter of luck.
        assert seen["failed"] > 0 or name == "remote", f"nothing that happened to {name} was ever seen"
        if kind == "python":
            TEXTS.extend(seen["texts"][:1])


def inspect(servers: list[Child]) -> None:
    """The inspector connects anew for each call: its server is killed while it does."""
    for server in servers:
        command = ["npx", "--prefix", f"{REAL}/node", "mcp-inspector", "--cli", "--config", str(CONFIG), "--server", server.name]
        call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"]
        before = set(lines())
        agent = subprocess.Popen([*command, *call], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=f"{REAL}/node")
        assert server.name not in before
        if type(server) is Child:
            until("it is starting", lambda: server.name in lines() or agent.poll() is not None)
            line = lines().get(server.name)
            if line and line.get("pid"):
                os.kill(line["pid"], signal.SIGKILL)
        out, err = agent.communicate(timeout=LIMIT)
        content = json.loads(out)["content"][0]["text"] if out.strip() else err
        assert content == "Echo: hello" or TEXT.match(content), content
        say(f"{'inspector':<10} {server.name:<11} reads: {content.splitlines()[0][:90]}")


TEXTS: list[str] = []


def main() -> None:
    port = free_port()
    before = configure(port)
    shown("wrap", str(CONFIG))
    assert shown("wrap", str(CONFIG), "--check").strip() == ""
    servers = [Child("notes"), Child("everything"), Remote("remote", port)]
    try:
        drill("python", [f"{REAL}/py1/bin/python", f"{HERE}/door/agent.py"], servers)
        drill("typescript", ["node", f"{HOME}/agent.mjs"], servers)
        inspect(servers)
    finally:
        for server in servers:
            server.end()
    say("\nWhat a model reads, one text of each server that failed a call:\n")
    for text in TEXTS:
        say(text + "\n")
    until("no shim is left", lambda: not lines())
    shown("journal", "--last", "6")
    shown("wrap", str(CONFIG), "--undo")
    assert CONFIG.read_bytes() == before, "the file is not what it was"
    say("the file is what it was, to the byte")


main()
