"""Agents on real servers, each agent with all of them: processes and memory below linetender, without and with --share."""

import os
import subprocess
import sys
import time

from agent import Agent

linetender, real, agents = sys.argv[1], sys.argv[2], int(sys.argv[3])
node, python = f"{real}/node_modules/.bin", f"{real}/python/bin"
folder = os.path.join(os.environ["XDG_CACHE_HOME"], "work")
os.makedirs(folder, exist_ok=True)
subprocess.run(["git", "init", "-q", folder], check=True)
SERVERS = {
    "everything": [f"{node}/mcp-server-everything"],
    "memory": [f"{node}/mcp-server-memory"],
    "filesystem": [f"{node}/mcp-server-filesystem", folder],
    "thinking": [f"{node}/mcp-server-sequential-thinking"],
    "everything-npx": ["npx", "--prefix", real, "mcp-server-everything"],
    "memory-npx": ["npx", "--prefix", real, "mcp-server-memory"],
    "filesystem-npx": ["npx", "--prefix", real, "mcp-server-filesystem", folder],
    "thinking-npx": ["npx", "--prefix", real, "mcp-server-sequential-thinking"],
    "time": [f"{python}/mcp-server-time"],
    "git": [f"{python}/mcp-server-git", "--repository", folder],
    "fetch": [f"{python}/mcp-server-fetch"],
    "time-utc": [f"{python}/mcp-server-time", "--local-timezone", "Etc/UTC"],
}


def processes():
    """By number: the parent, and the command line."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{name}/stat").read().rsplit(") ", 1)[1].split()
            line = open(f"/proc/{name}/cmdline").read().replace("\0", " ")
        except OSError:
            continue
        found[int(name)] = (int(stat[1]), line)
    return found


def pss(pid):
    try:
        lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def below(roots):
    all_processes = processes()
    wanted, grew = set(roots), True
    while grew:
        more = {pid for pid, (parent, _) in all_processes.items() if parent in wanted} - wanted
        wanted |= more
        grew = bool(more)
    return {pid: all_processes[pid][1] for pid in wanted if pid in all_processes}


def measure(flags):
    begun = time.perf_counter()
    held = []
    for _ in range(agents):
        # An agent starts all of its servers, and then greets them.
        window = [Agent([linetender, "run", *flags, "--name", name, "--", *command], cwd=folder) for name, command in SERVERS.items()]
        for agent in window:
            agent.greet()
        held += window
    for number, agent in enumerate(held):
        answer = agent.ask("tools/list")
        assert "result" in answer, f"{list(SERVERS)[number % len(SERVERS)]}: {answer}"
    took = time.perf_counter() - begun
    keepers = [pid for pid, (_, line) in processes().items() if "keeper" in line and os.environ["XDG_RUNTIME_DIR"] in line]
    found = below([agent.program.pid for agent in held] + keepers)
    ours = {pid for pid, line in found.items() if line.startswith((linetender, "/proc/self/exe"))}
    servers = set(found) - ours
    weights = {pid: pss(pid) / 1024 for pid in found}
    total, of_servers = sum(weights.values()), sum(weights[pid] for pid in servers)
    print(
        f"{' '.join(flags) or 'run':8} {len(found):5} processes ({len(servers)} of servers, {len(ours)} of linetender), "
        f"{total:.0f} MiB ({of_servers:.0f} of servers, {total - of_servers:.0f} of linetender), {took:.1f} s to start"
    )
    for agent in held:
        agent.leave()
    for pid in keepers:
        os.kill(pid, 9)
    return len(found), total


without, shared = measure([]), measure(["--share"])
print(f"with --share: {shared[0] / without[0]:.2f} of the processes, {shared[1] / without[1]:.2f} of the memory")
