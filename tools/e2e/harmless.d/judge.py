"""Plays one script on one server in one way, and judges what came of it beside what came of it directly."""

import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

from agents import EOF, TIMEOUT, Http, Stdio
from processes import alive, children, send, started

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = ("direct", "run", "share", "serve")
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
HANDSHAKE = ("initialize", "notifications/initialized", "server/discover")
# What a text has to say so that its reader knows that the server's memory is gone, or that the server is.
LOSS = re.compile(
    r"replaced|restart|reconnect|in memory|state\b.{0,40}\blost|lost\b.{0,40}\bstate|is gone|killed by signal|process (ended|exited|died)|connection closed",
    re.I,
)
SAFE = re.compile(r"\b(retrying|repeating)\b[^.]{0,20}\bis safe\b|\bsafe to (retry|repeat)\b", re.I)
NEW = [("resultType", "complete")]  # what a server of 2026-07-28 adds; agents of 2025-06-18 pass it over
SELF = {"once", "idle"}  # these end with 0 by themselves: no context is lost with them


@dataclass
class Record:
    """What happened in one case."""

    results: list = field(default_factory=list)  # the last answer to each step, as it is compared
    reads: set = field(default_factory=set)  # steps that call a tool that is declared read-only
    told: list = field(default_factory=list)  # (time, step, text): linetender's, or the end of the connection
    greeting: str = ""
    journal: list = field(default_factory=list)
    killed: list = field(default_factory=list)
    user_ended: list = field(default_factory=list)
    left_over: list = field(default_factory=list)
    files: list = field(default_factory=list)
    refused: str = ""
    crash: str = ""
    took: float = 0.0

    def of(self, what):
        return [entry for entry in self.journal if entry["what"] == what]

    def starts(self):
        return len(self.of("start"))

    def asked(self):
        return collections.Counter(entry["method"] for entry in self.of("request"))


class Case:
    def __init__(self, server, way, kill, folder, setting):
        self.server, self.way, self.kill, self.folder, self.setting = server, way, kill, folder, setting
        self.gateway = self.agent = None
        self.record, self.spawned, self.doomed = Record(), set(), []

    def at(self, *parts):
        return os.path.join(self.folder, *parts)

    def fill(self, value):
        if isinstance(value, str):
            return (
                value.replace("{case}", self.folder)
                .replace("{state}", self.at("state"))
                .replace("{cache}", self.setting.cache)
                .replace("{web}", self.setting.web)
            )
        if isinstance(value, list):
            return [self.fill(own) for own in value]
        return {name: self.fill(own) for name, own in value.items()} if isinstance(value, dict) else value

    def play(self):
        began = time.monotonic()
        try:
            self.lay_out()
            for _ in range(self.server.agents):
                self.visit()
        except Exception as error:  # the judge's own fault: it is named in the table
            self.record.crash = f"{type(error).__name__}: {error}"
        finally:
            self.end()
        self.record.took = time.monotonic() - began
        return self.record

    def lay_out(self):
        for name in ("bin", "state", "home", "run", "tmp"):
            os.makedirs(self.at(name), mode=0o700)
        command = self.fill(self.server.command)
        with open(os.path.join(HERE, "launch.py")) as source, open(self.at("bin", command[0]), "w") as copy:
            copy.write(f"#!{sys.executable} -IS\n{source.read()}")
        os.chmod(self.at("bin", command[0]), 0o755)
        with open(self.at("launch.json"), "w") as file:
            json.dump({"argv": self.fill(self.server.argv), "env": self.fill(self.server.env)}, file)
        if self.server.prepare:
            self.server.prepare(self.at("state"))
        self.env = {
            "PATH": self.at("bin") + ":" + os.environ["PATH"],
            "HOME": self.at("home"),
            "XDG_RUNTIME_DIR": self.at("run"),
            "TMPDIR": self.at("tmp"),
            "LANG": "C.UTF-8",
            "USER": "user",
        }
        flags = [*self.server.flags, *self.setting.flags(self.server)]
        start = [self.setting.binary, "run", *(["--share"] if self.way == "share" else []), *flags, "--", *command]
        if self.way == "serve":
            self.serve(command)
            self.open = lambda: Http(self.port, "/mcp/it")
        else:
            self.open = lambda: Stdio(command if self.way == "direct" else start, self.at("state"), self.env, self.at("stderr"))

    def serve(self, command):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with open(self.at("linetender.toml"), "w") as file:
            file.write(
                f'[gateway]\nlisten = "127.0.0.1:{self.port}"\n\n[servers.it]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n'
            )
            file.write('tree = "server"\n' if self.setting.has_tree else "")
        with open(self.at("stderr"), "ab") as err:
            self.gateway = subprocess.Popen(
                [self.setting.binary, "serve", "--config", self.at("linetender.toml")],
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                cwd=self.at("state"),
                env=self.env,
            )
        until = time.monotonic() + 20
        while self.gateway.poll() is None and time.monotonic() < until:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"the gateway does not listen: {self.last_line()}")

    def last_line(self):
        with open(self.at("stderr"), errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1][:200] if lines else "no line on stderr"

    # One visit of an agent: greeting, lists, the script, the end.

    def visit(self):
        began, patience = time.monotonic(), self.server.patience
        self.agent = self.open()
        self.spawned.add(getattr(getattr(self.agent, "process", None), "pid", 0))
        greeting = self.agent.greet(self.server.linger if self.server.refuses else patience)
        if self.server.refuses or "result" not in greeting:
            self.record.greeting = text_of(greeting)
            if not self.server.refuses:
                if greeting is EOF and self.way != "direct":
                    self.record.refused = self.last_line()
                else:
                    raise RuntimeError(f"no handshake: {self.record.greeting[:200]} {self.last_line()}")
        else:
            tools = self.agent.request("tools/list", {}, patience).get("result", {}).get("tools", [])
            read_only = {tool["name"] for tool in tools if (tool.get("annotations") or {}).get("readOnlyHint")}
            self.record.reads = {
                number for number, step in enumerate(self.server.script) if step.tool in read_only or step.method != "tools/call"
            }
            self.script()
        time.sleep(max(0.0, (began if self.server.refuses else time.monotonic()) + self.server.linger - time.monotonic()))
        self.look("the agent still there")
        if any(step.unanswered for step in self.server.script):
            time.sleep(0.3)
        self.agent.close(self.server.ladder)
        time.sleep(self.settle())
        self.look("the agent gone")

    def script(self):
        steps, number = self.server.script, 0
        while number < len(steps):
            batch = [number]
            while steps[batch[-1]].together:
                batch.append(batch[-1] + 1)
            if self.kill and number == self.server.kill_at():
                self.kill_servers()
                time.sleep(self.server.after_kill)
                self.look("the server killed")
            time.sleep(steps[number].pause)
            self.record.results += self.make(batch)
            number = batch[-1] + 1

    def make(self, batch):
        """Makes calls as an agent does that reads: told of a loss, it sets up again what it needs, and calls again."""
        answers = dict(zip(batch, self.ask(batch)))
        for _ in range(int(4 * self.setting.slow)):
            again = [number for number in batch if self.is_told(number, answers[number])]
            if not again:
                break
            time.sleep(1.2)  # a batch is refused as a whole, for a second
            if any(answers[number] is EOF for number in again):
                self.agent.open() if isinstance(self.agent, Stdio) else setattr(self, "agent", self.open())
                self.agent.greet(self.server.patience)
            for number in range(batch[0]):
                if self.server.script[number].setup:
                    self.is_told(number, self.ask([number])[0])
            answers.update(zip(again, self.ask(again)))
        return [self.normal(answers[number]) for number in batch]

    def ask(self, batch):
        sent = []
        for number in batch:
            step = self.server.script[number]
            words = self.fill(step.words)
            sent.append(
                self.agent.post(step.method, {"name": step.tool, "arguments": words} if step.method == "tools/call" else words)
            )
        return [
            self.agent.wait(own, self.server.patience) if not self.server.script[number].unanswered else {}
            for own, number in zip(sent, batch)
        ]

    def is_told(self, number, answer):
        if answer is EOF:
            self.record.told.append((time.time(), number, "connection closed"))
            return True
        if ours(answer):
            self.record.told.append((time.time(), number, text_of(answer)))
        return ours(answer)

    def normal(self, answer):
        if answer in (EOF, TIMEOUT):
            return next(iter(answer))
        kept = {name: value for name, value in answer.items() if name in ("result", "error")}
        if isinstance(kept.get("result"), dict):
            kept["result"] = {name: value for name, value in kept["result"].items() if name != "_meta" and (name, value) not in NEW}
        text = json.dumps(kept, sort_keys=True, ensure_ascii=False).replace('\\"', '"')
        text = text.replace(self.folder, "CASE").replace(self.setting.web, "WEB")
        return re.sub(self.server.mask, "*", text) if self.server.mask else text

    # Processes: only those that the launcher and the fixtures declared, and those that this judge has started.

    def read_journal(self):
        entries = []
        if os.path.exists(self.at("journal")):
            with open(self.at("journal")) as file:
                entries = [json.loads(line) for line in file if line.endswith("\n")]
        return entries

    def servers(self, what=("start", "up")):
        return sorted({(entry["pid"], entry["started"]) for entry in self.read_journal() if entry["what"] in what})

    def kill_servers(self):
        for pid, since in self.servers(("start",)):
            if alive(pid, since):
                for child in children(pid) if self.server.starter else ():
                    send(child, signal.SIGKILL)
                send(pid, signal.SIGKILL)
                self.record.killed.append((time.time(), pid))
                until = time.monotonic() + 5
                while alive(pid, since) and time.monotonic() < until:
                    time.sleep(0.01)

    def users(self):
        """What is the user's: as the fixtures declare it, or as the server's own program names it."""
        found = {
            (entry["child"], entry["started"]): entry["name"]
            for entry in self.read_journal()
            if entry["what"] == "whose" and entry["owner"] == "user"
        }
        for pid in self.server.user_process(self.at("state")) if self.server.user_process else ():
            try:
                self.doomed.append((pid, started(pid)))
            except OSError:
                pass
        found.update({own: f"{self.server.name} server" for own in self.doomed})
        return found

    def look(self, when):
        named = {name for name, _ in self.record.user_ended}
        for (pid, since), name in self.users().items():
            if not alive(pid, since) and name not in named:
                self.record.user_ended.append((name, when))

    def settle(self):
        """How long to look at what an agent leaves behind."""
        patience = 1.5 if self.users() else 0.3
        until = time.monotonic() + 6
        if self.way in ("direct", "run"):  # the server's end is at hand: it may still save
            while time.monotonic() < until and any(alive(*own) for own in self.servers()):
                time.sleep(0.05)
        return patience

    def keepers(self):
        """The keeper of shared servers: linetender's uppermost process above a server, if no agent has started it. (Below it is its
        reaper: to end that is to kill the server.)"""
        found = set()
        for entry in self.read_journal() if self.way == "share" else ():
            above = [
                (pid, since) for pid, since, program in entry.get("above", ()) if os.path.realpath(program) == self.setting.binary
            ]
            if above and above[-1][0] not in self.spawned and alive(*above[-1]):
                found.add(above[-1])
        return found

    def end(self):
        own = getattr(self.agent, "process", None)
        if own and own.poll() is None:
            self.agent.close("sdk")
        if self.gateway and self.gateway.poll() is None:
            self.gateway.send_signal(signal.SIGTERM)
            try:
                self.gateway.wait(20)
            except subprocess.TimeoutExpired:
                self.gateway.kill()
                self.gateway.wait()
                self.record.crash = self.record.crash or "the gateway did not end within 20 s of SIGTERM"
        keepers = self.keepers()
        for pid, _ in keepers:
            send(pid, signal.SIGTERM)
        until = time.monotonic() + 15
        while any(alive(*keeper) for keeper in keepers) and time.monotonic() < until:
            time.sleep(0.05)
        until = time.monotonic() + 5
        while any(alive(*own) for own in self.servers()) and time.monotonic() < until:
            time.sleep(0.05)
        users = self.users()
        self.look("the service stopped" if self.way in ("share", "serve") else "at the end")
        self.record.journal = self.read_journal()
        self.record.left_over = [pid for pid, since in self.servers() if alive(pid, since)]
        self.record.files = sorted(os.listdir(self.at("state")))
        declared = {(entry["child"], entry["started"]) for entry in self.record.journal if entry["what"] == "whose"}
        for pid, since in {*keepers, *self.servers(), *users, *declared}:
            if alive(pid, since):
                send(pid, signal.SIGKILL)
        if not self.setting.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def ours(answer):
    """True if linetender says this, and not the server."""
    result, error = answer.get("result"), answer.get("error")
    meta = (result.get("_meta") or {}).get("linetender") if isinstance(result, dict) else None
    data = error.get("data") if isinstance(error, dict) else None
    return bool(meta and result.get("isError")) or isinstance(data, dict) and data.get("source") == "linetender"


def text_of(answer):
    if "error" in answer:
        return str(answer["error"].get("message"))
    content = answer.get("result", {}).get("content") if isinstance(answer.get("result"), dict) else None
    return " ".join(block.get("text", "") for block in content) if content else json.dumps(answer)[:300]


def short(text):
    found = re.findall(r'"text": "(.*?)"[,}]', text) or re.findall(r'"message": "(.*?)"', text)
    return re.sub(r"\s+", " ", (found[0] if found else text).replace("\\n", " "))[:70]


def contrast(got, wanted):
    """Two results, from shortly before the place where they differ."""
    equal = next((at for at, (one, two) in enumerate(zip(got, wanted)) if one != two), 0)
    if short(got) != short(wanted) or equal < 40:
        return f"{short(got)} instead of {short(wanted)}"
    cut = lambda text: re.sub(r"\s+", " ", text[equal - 30 : equal + 40].replace("\\n", " "))
    return f"…{cut(got)}… instead of …{cut(wanted)}…"


def judge(server, way, kill, record, base, same_kill):
    """The verdict and its reasons. `base`: directly, without a kill. `same_kill`: directly, with the kill that this case has."""
    if record.crash:
        return "LOST", [record.crash]
    if record.refused:
        return "refused", [record.refused]
    broken, notes = [], []
    for place, (got, wanted) in enumerate(zip(record.results, base.results)):
        number = place % len(server.script)
        step = server.script[number]
        if got == wanted:
            continue
        told = any(about == number for _, about, _ in record.told)
        agent = f"agent {1 + place // len(server.script)}: " * (server.agents > 1)
        what = f"{agent}`{step.tool or step.method}` → {contrast(got, wanted)}"
        if number in record.reads and not told and not server.stateful:
            notes.append(f"{what}: not told, declared read-only")
        else:
            broken.append(
                f"{what}: "
                + ("after the notice" if told else "not told" + (" (declared read-only)" if number in record.reads else ""))
            )
    broken += texts(server, record, base, way, kill) if way != "direct" else []
    broken += effects(server, record) if server.fixture else []
    for name, when in record.user_ended:
        if name not in {other for other, _ in same_kill.user_ended}:
            broken.append(f"the user's {name} was ended ({when})")
    broken += saves(record, same_kill)
    broken += counts(server, record, same_kill, way)
    if len(record.left_over) > len(same_kill.left_over):
        broken.append(f"{len(record.left_over)} process of the server left over")
    if "lock" in record.files and "lock" not in same_kill.files:
        broken.append("the child at work was killed: its lock is left behind")
    if broken:
        return "LOST", broken
    if record.told:
        return "told", [*notes, *dict.fromkeys(f"told: {text[:160]}" for _, _, text in record.told)]
    return ("read" if notes else "same"), notes


def texts(server, record, base, way, kill):
    broken = []
    for _, _, text in record.told:
        if text == "connection closed":
            broken.append("linetender closed the connection")
        elif not LOSS.search(text):
            broken.append(f"the text does not tell of the loss: {text[:90]}")
        elif kill and SAFE.search(text):
            broken.append(f"the text calls a retry safe: {text[:200]}")
        elif not kill and not base.told and not (way == "share" and server.asks_agent):
            broken.append(f"told of a loss where none was: {text[:90]}")
    return list(dict.fromkeys(broken))


def effects(server, record):
    """Nothing runs in a context that its agent was not told of, on another database than the agent chose, twice, or out of order."""
    broken, seen, keys = [], collections.Counter(), []
    for entry in record.of("effect"):
        if entry["on"] == "prod":
            broken.append(f"`{entry['tool']}` ran on prod, the agent had chosen test")
        seen[(entry["tool"], entry["key"])] += 1
        keys.append(entry["key"])
    broken += [f"`{tool} {key}` ran {times} times" for (tool, key), times in seen.items() if times > 1]
    if server.name == "order" and keys != sorted(keys):
        broken.append(f"arrived as {''.join(keys)}")
    calls = [entry for entry in record.of("request") if entry["method"] == "tools/call"]
    reads = {server.script[number].tool for number in record.reads}
    for before, after in zip(calls, calls[1:]):
        told = any(before["t"] < at < after["t"] for at, _, _ in record.told)
        if before["pid"] != after["pid"] and not told and after["tool"] not in reads and server.name not in SELF:
            broken.append(f"`{after['tool']}` ran in another process, not told")
    return list(dict.fromkeys(broken))


def saves(record, same_kill):
    """What the last process kept has to be saved, if it is saved directly."""
    last = lambda own: own.of("up")[-1]["pid"] if own.of("up") else 0
    has = lambda own, what: any(entry["pid"] == last(own) for entry in own.of(what))
    broken = []
    if has(same_kill, "saved") and not has(record, "saved"):
        broken.append("the save was lost (" + ("begun, killed" if has(record, "saving") else "never begun") + ")")
    if same_kill.of("done") and len(record.of("done")) < record.starts():
        broken.append(f"{record.starts() - len(record.of('done'))} of {record.starts()} starts killed in their migration")
    return broken


def counts(server, record, same_kill, way):
    """No start and no request that nobody used."""
    broken = []
    # After a kill the next call uses a start, also where directly what the killed program had started serves on. A gateway that gives
    # each agent a process of its own has one more, of which it knows the lists; the kill ends that one too.
    lists = 1 if way == "serve" and server.process_per_agent else 0
    # It is started to be shared, asks its agent something, and is started again for that agent alone.
    alone = 1 if way == "share" and server.asks_agent else 0
    if record.starts() > max(same_kill.starts(), 1 + len(record.killed)) + lists + alone:
        broken.append(f"{record.starts()} starts, directly {same_kill.starts()}")
    if len(record.of("login")) > len(same_kill.of("login")):
        broken.append(f"{len(record.of('login'))} logins, directly {len(same_kill.of('login'))}")
    asked, usual = record.asked(), same_kill.asked()
    for method, times in asked.items():
        # After a start each linetender process looks at each list once, to tell agents what changed: the window and the keeper.
        allowed = usual[method] + (record.starts() * (2 if way == "share" else 1) if method in LISTS else 0)
        if asked["notifications/cancelled"] and method in ("notifications/cancelled", "ping", *LISTS):
            continue  # the agent left during a call, or the server is busy: it is told, asked whether it hangs, and a list is asked for again
        if method not in HANDSHAKE and times > allowed:
            broken.append(f"{times} × `{method}`, directly {usual[method]}")
    return broken
