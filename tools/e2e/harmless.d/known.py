"""Evidence for the lists of known servers: each real server is killed between two calls, ten times, and started again by its agent,
without linetender. Results equal to the run without a kill: it keeps nothing in memory that these calls show."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import judge
from servers import place

ROUNDS = 10


class Knowing(judge.Case):
    """Kills before one step of the script, whichever it is, and sets nothing up again: what is gone shall show."""

    def __init__(self, server, gap, folder, setting):
        super().__init__(server, "direct", gap is not None, folder, setting)
        self.gap = gap

    def script(self):
        for number in range(len(self.server.script)):
            if number == self.gap:
                self.kill_servers()
                self.agent.open()
                self.agent.greet(self.server.patience)
            self.record.results.append(self.normal(self.ask([number])[0]))


def version(server, cache):
    kind, package, folder = place(server, cache)
    if kind == "npm":
        with open(os.path.join(folder, "node_modules", package, "package.json")) as file:
            return json.load(file)["version"]
    shown = subprocess.run(
        [os.path.join(folder, "bin", "pip"), "--disable-pip-version-check", "show", package], capture_output=True, text=True
    ).stdout
    return next((line.split(": ")[1] for line in shown.splitlines() if line.startswith("Version")), "?")


def finding(server, setting, root):
    """The row of a server. It is also said at once: the whole takes long."""
    try:
        row, surprise = compared(server, setting, root)
    except Exception as error:  # one server is not to cost the others their rows
        row, surprise = [server.name, server.name, "?", f"the judge's fault: {type(error).__name__}: {error}"], True
    print("| " + " | ".join(row) + " |", file=sys.stderr)
    return row, surprise


def compared(server, setting, root):
    steps = server.script
    gaps = [1 + number % (len(steps) - 1) for number in range(ROUNDS)]
    run = lambda number, gap: Knowing(server, gap, os.path.join(root, f"{server.name.replace(' ', '')}-{number}"), setting).play()
    base, twice = run("a", None), run("b", None)
    what = f"{server.install[1]} {version(server, setting.cache)}" if server.install else f"{server.name} (an example)"
    words = ", ".join(dict.fromkeys(f"`{step.tool or step.method}`" for step in steps))
    fault = base.crash or twice.crash or ("two runs differ" if base.results != twice.results else "")
    if fault:
        return [what, server.name, "?", f"the judge's fault: {fault}"], True
    shown, equal, failed = [], 0, []
    for number, gap in enumerate(gaps):
        record = run(number, gap)
        if record.crash:
            failed.append(record.crash)  # this round says nothing about the server
            continue
        differ = [at for at, (one, two) in enumerate(zip(base.results, record.results)) if one != two]
        equal += not differ
        for at in differ:
            told = judge.contrast(record.results[at], base.results[at])
            read = " (declared read-only)" * (at in base.reads)
            shown.append(f"killed before step {gap + 1}: `{steps[at].tool or steps[at].method}` → {told}{read}")
    made = ROUNDS - len(failed)
    missing = f"; {len(failed)} rounds failed: {failed[0]}" if failed else ""
    if shown:
        seen = "; ".join(list(dict.fromkeys(shown))[:2])
        return [what, server.name, "**no**", f"{equal} of {made} equal{missing}; {seen}"], not server.stateful
    if failed:
        return [what, server.name, "?", f"not proven: {equal} of {made} equal{missing}"], True
    return [what, server.name, "yes", f"{equal} of {made} equal; calls: {words}"], server.stateful


def table(asked, setting, chosen, out):
    root = tempfile.mkdtemp(prefix="hk")
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        found = list(pool.map(lambda server: finding(server, setting, root), chosen))
    if not asked.keep:
        shutil.rmtree(root, ignore_errors=True)
    lines = [
        f"Each server was started directly, killed (SIGKILL) between two calls and started again, {ROUNDS} times, in turn before each step; its results are compared with a run without a kill.",
        "",
        "| package | server | stateless | evidence |",
        "|---|---|---|---|",
    ]
    for row, surprise in found:
        lines.append(
            "| "
            + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row)
            + " |"
            + (" ← not what tools/e2e/harmless.d/servers.py says" if surprise else "")
        )
    lines += ["", "Left out: " + "; ".join(f"{name} ({why})" for name, why in out.items()) + "."] if out else []
    return lines, any(surprise for _, surprise in found)
