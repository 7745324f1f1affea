"""Real agents on a server that fails under them, in both forms in which `linetender run` can tell of it.

    try.py LINETENDER AGENTS [--json] [--only NAME] [--keep FOLDER]

Each agent talks to a scripted model that calls a tool which kills its server, then one that works, then says its last
word. What the model was told in between is what this is about. AGENTS is where `tools/real-agents` put them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from kinds import KINDS, Place  # noqa: E402
from model import LAST_WORD, Model  # noqa: E402

AT_ONCE = 2  # most of the time is interpreters that start
LIMIT = 90  # seconds; an agent that takes longer hangs
STDERR = "fatal: the disk is full"  # what the server says before it dies
WORKS = "it works"  # what its other tool answers
END = 4000  # characters of what it wrote
PARTS = {"what happened": "The call to the MCP server", "whether it ran": "was executed", "next try": "next try", "stderr": STDERR}

SITUATIONS = {
    "result": "killed in mid-call, told as a result",
    "error": "killed in mid-call, told as an error",
    "list": "tools/list fails",
    "absent": "not there at start",
}


@dataclass
class Seen:
    """What one agent did in one situation."""

    agent: str
    situation: str
    status: int | None  # of its process; none, if it hung
    told: list[str]  # what its model was told of each tool
    asked: int  # how often its model was asked
    killed: int  # how often the tool that kills was run
    starts: int  # how often it started its server, which is linetender
    stdout: str
    stderr: str

    @property
    def ended_well(self) -> bool:
        return self.status == 0 and LAST_WORD in self.stdout

    def reads(self) -> str:
        """How much of our text the model got."""
        if not self.told:
            return "nothing"
        missing = [part for part, mark in PARTS.items() if mark not in self.told[0]]
        if len(missing) == len(PARTS):
            return f"only `{self.told[0][:80]}`"
        words = "all" if not missing else "all but " + ", ".join(missing)
        words += " and the fields" if "nextTry" in self.told[0] else ""
        return words + (", then \"try again\"" if "try again" in self.told[0] else "")

    def goes_on(self) -> str:
        if self.status is None:
            return "hangs"
        after = len(self.told) > 1 and WORKS in self.told[-1]
        words = "goes on" if after and self.ended_well else "goes on, tool gone" if self.ended_well else "run ends"
        words += f", tool repeated {self.killed - 1}×" if self.killed > 1 else ""
        return words + (f", restarts us {self.starts - 1}×" if self.starts > 1 else "")

    def says(self) -> str:
        """In a situation without tools: what came of the run."""
        if self.status is None:
            return "hangs"
        words = "runs without its tools" if self.ended_well else "run ends"
        words += f", started us {self.starts}×" if self.starts > 1 else ""
        return words + (", says why" if STDERR in self.stdout + self.stderr else "")


def server(situation: str, linetender: str, place: Place) -> list[str]:
    """The command that the agent is given as its server."""
    form = "error" if situation == "error" else "result"
    behind = ["python3", str(Path(__file__).parent / "server.py"), str(place.book)]
    if situation == "list":
        behind.append("no-list")
    if situation == "absent":
        behind = ["sh", "-c", f"echo '{STDERR}' >&2; exit 1"]
    counted = ["sh", "-c", 'echo >>"$0"; exec "$@"', str(place.starts)]
    return [*counted, linetender, "run", "--name", "bad", "--log", str(place.log), "--tool-errors", form, "--", *behind]


def attempt(agent: str, situation: str, args) -> Seen:
    with tempfile.TemporaryDirectory(prefix="linetender-agent-") as folder:
        home = Path(args.keep, agent, situation) if args.keep else Path(folder)
        place = Place(home.absolute(), Path(args.agents))
        place.make()
        model = Model()
        words, more = KINDS[agent](place, model.url, server(situation, args.linetender, place))
        # Nothing of our own environment but what any program needs: no proxy, no key, no setting of another agent.
        env = {"HOME": str(place.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb"} | more
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(words, cwd=place.home, env=env, text=True, start_new_session=True, **pipes)
        try:
            (stdout, stderr), status = process.communicate(timeout=LIMIT), process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            (stdout, stderr), status = process.communicate(), None
        model.shutdown()
        if args.keep:
            place.home.joinpath("heard.json").write_text(json.dumps(model.heard, indent=1))
            place.home.joinpath("stdout").write_text(stdout)
            place.home.joinpath("stderr").write_text(stderr)
        killed, starts = place.lines(place.book).count("kill"), len(place.lines(place.starts))
        ends = stdout[-END:], stderr[-END:]
        return Seen(agent, situation, status, model.told(), len(model.heard), killed, starts, *ends)


def table(seen: list[Seen]) -> str:
    by = {(one.agent, one.situation): one for one in seen}
    rows = [["agent", "result: its model reads", "then", "error: its model reads", "then", "tools/list fails", "not there at start"]]
    for agent in dict.fromkeys(one.agent for one in seen):
        result, error, list_, absent = (by[agent, situation] for situation in SITUATIONS)
        rows.append([agent, result.reads(), result.goes_on(), error.reads(), error.goes_on(), list_.says(), absent.says()])
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("linetender", type=os.path.abspath)
    parser.add_argument("agents", type=os.path.abspath)
    parser.add_argument("--json", action="store_true", help="everything that was seen, instead of the table")
    parser.add_argument("--only", action="append", help="this agent, and those that are named likewise")
    parser.add_argument("--keep", help="keeps what each agent read and wrote in this folder")
    args = parser.parse_args()
    tries = [(agent, situation) for agent in args.only or KINDS for situation in SITUATIONS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = list(pool.map(lambda one: attempt(*one, args), tries))
    print(json.dumps([asdict(one) for one in seen], indent=1) if args.json else table(seen))


main()
