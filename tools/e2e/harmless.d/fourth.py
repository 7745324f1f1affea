"""The scripts of an attack, each played directly and behind linetender: a table script → direct → result."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

# In place of linetender: starts the server itself. `status` and the like say nothing.
DIRECT = '#!/bin/sh\n[ "$1" = run ] || exit 0\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
SECONDS = 330


def lines_with(output, word):
    return [line for line in output.splitlines() if word in line]


def state(output):
    found = re.findall(r"pwd after kill -9: (.*)", output)
    return found and (f"pwd: {found[0][:230]}", found[0].strip() == "/tmp/build" or told(found[0]))


def thoughts(output):
    last = output.strip().splitlines()[-1:]
    return last and (last[0][:230], '"thoughtHistoryLength": 4' in last[0] or told(last[0]))


def tree(output):
    found = re.findall(r"(agent closes|server crashes)\s+(\{.*?\})", output)
    return found and (
        "; ".join(f"{how}: {', '.join(re.findall(r': .(alive|KILLED)', what))}" for how, what in found[-2:]),
        "KILLED" not in str(found[-2:]),
    )


def saves(output):
    found = lines_with(output, "->") or [line for line in output.splitlines() if "SAVED" in line or "LOST" in line]
    mine = [line for line in found if line.startswith(("linetender", "KILL linetender"))]
    lost = [re.sub(r"\s+", " ", line.split("->")[0])[:110] for line in mine if re.search(r"\bLOST\b", line)]
    return mine and (f"{len(mine) - len(lost)} of {len(mine)} saved" + ("; lost: " + "; ".join(lost) if lost else ""), lost)


def once(output):
    found = re.search(r"(\d+) of 40", output)
    return found and (output.strip().splitlines()[-1][:200], found[1] == "40")


def short(output):
    found = re.findall(r"linetender begun (\d+) done (\d+)", output)
    return found and (f"{found[0][1]} of {found[0][0]} migrations finished", found[0][0] == found[0][1])


def busy(output):
    found = [line for line in output.splitlines() if re.match(r"\d+s ", line)]
    return found and (found[0][:200], "trained" in found[0])


def child(output):
    found = lines_with(output, "linetender applied:")
    return found and (found[0][:200], "lock left behind: False" in found[0])


def browser(output):
    found = re.findall(r"linetender browser before (\d+) after the agent closed (\d+)", output)
    return found and (f"browsers before {found[0][0]}, after {found[0][1]}", found[0][0] == found[0][1])


def login(output):
    found = re.findall(r"(\d+) attempts at (\[.*?\])", output)
    return found and (f"{found[0][0]} logins at {found[0][1]}", int(found[0][0]) <= 3)


def docker(output):
    found = re.findall(r"(no name|\[.*?\]) after \d+s: starts (\d+), containers alive (\d+)", output)
    after = re.findall(r"after the agent left: containers alive (\d+)", output)
    return found and (
        "; ".join(f"{name}: {starts} starts, {living} containers at once" for name, starts, living in found)
        + f"; left: {', '.join(after)}",
        all(int(living) <= 1 for _, _, living in found) and set(after) == {"0"},
    )


def told(text):
    from judge import LOSS, SAFE

    return text.startswith(("ERR", "{")) and bool(LOSS.search(text)) and not SAFE.search(text) or "EOF" in text


def closed(output):
    """The script's agent writes into a pipe whose server is gone: directly it is told in this way."""
    return ("connection closed", True) if output.strip().endswith("BrokenPipeError: [Errno 32] Broken pipe") else None


# Script, row of the catalogue, what to read from its output (text, and whether that is well).
SCRIPTS = [
    ("t3_state.py", "S53", state),
    ("t3b_seq.py", "S53", thoughts),
    ("t5_tree.py", "S55", tree),
    ("t44_child.py", "S55", child),
    ("t45_browser.py", "S55", browser),
    ("t9_signals.py", "S57", saves),
    ("t9b.py", "S57", saves),
    ("t18_oneshot.py", "S60", once),
    ("t30_short.py", "S61", short),
    ("t31_busy.py", "S54", busy),
    ("t6_login.py", "S58", login),
    ("t16_docker.py", "S56", docker),
]


def copy(folder, scratch, binary, sequential, number):
    """The attack's scripts with their places filled in. Names that are the same for every run of a script get this run's number, so
    that no process of another run is taken for one of this."""
    shutil.copytree(folder, scratch)
    os.mkdir(os.path.join(scratch, "home"))
    os.makedirs(os.path.join(scratch, "npm"))
    if sequential:
        os.symlink(sequential, os.path.join(scratch, "npm", "seq"))
    for name in os.listdir(scratch):
        path = os.path.join(scratch, name)
        if not name.endswith((".py", ".js")):
            continue
        os.chmod(path, 0o644)
        with open(path) as file:
            text = file.read()
        text = text.replace("'-L','axioms'", f"'-L','axioms{number}'").replace("tmux -L axioms ", f"tmux -L axioms{number} ")
        text = text.replace("sleep 3000", f"sleep 3000{number}").replace("firefox-main 3000", f"firefox-main 3000{number}")
        text = (
            text.replace("'npm/seq/node_modules", "'@HERE@/npm/seq/node_modules")
            .replace("time.time()+900", "time.time()+75")
            .replace("time.sleep(30)", "time.sleep(5)")
        )
        for place, value in {"@TS@": f"{scratch}/npm/seq", "@LT@": binary, "@PY@": sys.executable, "@HERE@": scratch}.items():
            text = text.replace(place, value)
        with open(path, "w") as file:
            file.write(text)


def play(folder, root, script, binary, sequential, number, slow):
    scratch = os.path.join(root, f"{number}")
    copy(folder, scratch, binary, sequential, number)
    env = {**os.environ, "HOME": os.path.join(scratch, "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("XDG_RUNTIME_DIR", None)
    path = os.path.join(root, f"{number}.out")  # no pipe: what a script leaves behind would hold it open
    with open(path, "w") as file:
        process = subprocess.Popen(
            [sys.executable, script], cwd=scratch, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        process.wait(SECONDS * slow)
        end = ""
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        end = f"\nnot done after {SECONDS * slow:.0f} s"
    with open(path, errors="replace") as file:
        return file.read() + end


def table(asked, setting):
    root = tempfile.mkdtemp(prefix="hf")
    shim = os.path.join(root, "direct")
    with open(shim, "w") as file:
        file.write(DIRECT)
    os.chmod(shim, 0o755)
    sequential = os.path.join(setting.cache, "npm", "sequential-thinking")
    sequential = sequential if os.path.exists(sequential) else ""
    wanted = [
        own
        for own in SCRIPTS
        if os.path.exists(os.path.join(asked.fourth, own[0]))
        and (not asked.only or any(own[0].startswith(name) for name in asked.only.split(",")))
    ]
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for number, (script, _, _) in enumerate(wanted):
            jobs.append(
                [
                    pool.submit(play, asked.fourth, root, script, binary, sequential, f"{os.getpid()}{number * 2 + at:02}", asked.slow)
                    for at, binary in enumerate((shim, setting.binary))
                ]
            )
        outputs = [[job.result() for job in pair] for pair in jobs]
    lines, broken = ["| script | row | directly | behind linetender | |", "|---|---|---|---|---|"], False
    for (script, row, reading), pair in zip(wanted, outputs):
        shown = [reading(output) or closed(output) for output in pair]
        texts = [
            (found[0] if found else f"no verdict: {(output.strip().splitlines() or ['no output'])[-1][:160]}")
            for found, output in zip(shown, pair)
        ]
        if reading is saves and all(shown):
            # Here each ladder is played with both: well is what loses nothing that is saved directly.
            well = set(shown[1][1]) <= set(shown[0][1])
        else:
            well = bool(shown[1] and shown[1][1])
        broken |= not well
        lines.append(
            f"| {script} | {row} | "
            + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts)
            + f" | {'well' if well else '**broken**'} |"
        )
        if asked.keep:
            for name, output in zip(("direct", "behind"), pair):
                with open(os.path.join(root, f"{script}.{name}"), "w") as file:
                    file.write(output)
    if asked.keep:
        print(root, file=sys.stderr)
    else:
        shutil.rmtree(root, ignore_errors=True)
    return lines, broken
