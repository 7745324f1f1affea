"""What the package does to the process that it is in: nothing that lasts.

Each test is a program of its own, because what it looks at belongs to a whole process.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

#: What the programs begin with.
KIT = '''
import asyncio, gc, os, resource, select, signal, sys, time, ctypes, json
BADSERVER = os.environ["LINETENDER_BADSERVER"]

def threads():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                found.append(name.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended
    return found

def descriptors():
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
        except FileNotFoundError:
            pass  # the one that lists
    return sorted(found.values())

def children():
    """Of all threads: a process belongs to the one that started it."""
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as listed:
                found += listed.read().split()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it ended
    return found

def until(what, look, limit=20):
    """Nothing tells that a thread is gone: it is looked for, and not for long."""
    end = time.monotonic() + limit
    while not (seen := look()):
        assert time.monotonic() < end, (what, threads(), descriptors(), children())
        select.select([], [], [], 0.002)
    return seen

def gone(pid):
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([pidfd], [], [], 20)[0], f"{pid} lives on"
    os.close(pidfd)

async def pid_of(line):
    return int((await line.call_tool("pid")).text)
'''


def run(program: str, *args: str, env: dict[str, str] | None = None) -> str:
    """Runs a program to its end, and returns what it printed."""
    source = KIT + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", source, *args],
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr, done.stderr
    return done.stdout


LOOK = """
def read(path):
    with open(path) as file:
        return file.read()

libc = ctypes.CDLL(None, use_errno=True)

def look():
    status = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines())
    kept = ["Umask", "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "SigCgt", "CapEff", "CapPrm", "CoreDumping"]
    def prctl(option):
        value = ctypes.c_int(-1)
        assert libc.prctl(option, ctypes.byref(value), 0, 0, 0) == 0
        return value.value
    return {
        "status": {name: status.get(name) for name in kept},
        "dumpable": libc.prctl(3, 0, 0, 0, 0),
        "subreaper": prctl(37),
        "death signal": prctl(2),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
        "handlers": {n: str(signal.getsignal(n)) for n in signal.valid_signals()},
        "wakeup": signal.set_wakeup_fd(-1),
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "name": read("/proc/self/comm"),
        "session": (os.getsid(0), os.getpgid(0)),
        "stdio": [os.get_blocking(n) for n in range(3)],
        "hooks": (sys.excepthook.__name__, sys.getswitchinterval()),
        "oom": read("/proc/self/oom_score_adj"),
        "policy": type(asyncio.get_event_loop_policy()).__name__,
    }
"""


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("", id="as it is"),
        pytest.param(
            "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
            id="SIGCHLD ignored",
            marks=pytest.mark.xfail(strict=True, reason="the wire sets an ignored SIGCHLD back to its default"),
        ),
    ],
)
def test_using_it_changes_nothing_about_the_process(before: str) -> None:
    run(
        LOOK
        + before
        + """
# The C library keeps a signal of its own for programs with threads, from the first thread on.
import threading
first = threading.Thread(target=int)
first.start()
first.join()
before = look()
import linetender
assert look() == before
assert len(threads()) == 1

async def main():
    async with linetender.Line.stdio(BADSERVER) as line:
        os.kill(await pid_of(line), signal.SIGKILL)
        events = line.events()
        await line.redial()
        await line.call_tool("echo")
        now = look()
        now["wakeup"] = before["wakeup"]  # asyncio's own
        now["handlers"][signal.SIGINT] = before["handlers"][signal.SIGINT]
        assert now == before, {key: (now[key], before[key]) for key in now if now[key] != before[key]}
    async with linetender.Line.http("http://127.0.0.1:9/mcp") as line:
        try:
            await line.call_tool("echo", timeout=0.1)
        except linetender.LinetenderError:
            pass

asyncio.run(main())
after = look()
assert after == before, {key: (after[key], before[key]) for key in after if after[key] != before[key]}
""",
    )


def test_closing_leaves_no_thread_descriptor_or_process() -> None:
    run(
        """
        import linetender
        def once():
            async def main():
                async with linetender.Line.stdio(BADSERVER, ["--grandchild"]) as line:
                    await line.call_tool("echo")
                    assert len(children()) == 1 and "linetender" in threads()
                assert not children(), children()
                del line
                gc.collect()
                # Also while the loop goes on.
                until("the thread is gone", lambda: len(threads()) == 1)
            asyncio.run(main())
        bare = descriptors()
        once()
        first = descriptors()
        # tokio keeps one pair of sockets for signals, once per process.
        assert sorted(first) == sorted(bare + ["socket", "socket"]), (bare, first)
        for _ in range(5):
            once()
        assert descriptors() == first
        """
    )


def test_dropping_leaves_no_thread_descriptor_or_process() -> None:
    run(
        """
        import linetender
        async def main():
            line = linetender.Line.stdio(BADSERVER, ["--escapee"])
            events = line.events()
            server = await pid_of(line)
            before = len(descriptors())
            del line, events
            gc.collect()
            gone(server)
            until("the thread is gone", lambda: len(threads()) == 1)
            assert not children()
            return descriptors()
        asyncio.run(main())
        first = descriptors()
        asyncio.run(main())
        assert descriptors() == first
        """
    )


def test_a_session_that_is_left_or_dropped_leaves_nothing() -> None:
    run(
        """
        import linetender, mcp
        async def talk(read, write):
            async with mcp.ClientSession(read, write) as client:
                await client.initialize()
                return int((await client.call_tool("pid", {})).content[0].text)
        async def left():
            async with linetender.session(BADSERVER) as (read, write):
                server = await talk(read, write)
            assert not os.path.exists(f"/proc/{server}") and not children()
        async def dropped():
            session = linetender.session(BADSERVER)
            return await talk(*await session.__aenter__())
        asyncio.run(left())
        until("the thread is gone", lambda: len(threads()) == 1)
        first = descriptors()
        server = asyncio.run(dropped())
        gc.collect()
        gone(server)
        until("the thread is gone", lambda: len(threads()) == 1)
        assert descriptors() == first, (first, descriptors())
        """
    )


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "signal.raise_signal(signal.SIGTERM)"])
def test_a_program_that_ends_without_closing_leaves_no_server(end: str) -> None:
    program = (
        KIT
        + f"""
import linetender
async def main():
    line = linetender.Line.stdio(BADSERVER, ["--ignore-eof", "--escapee"])
    print(await pid_of(line), flush=True)
    {end}
asyncio.run(main())
"""
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    server = int(process.stdout.readline())
    try:
        pidfd = os.pidfd_open(server)
    except ProcessLookupError:
        pidfd = -1
    if pidfd >= 0:
        assert select.select([pidfd], [], [], 20)[0], "the server lives on"
        os.close(pidfd)
    process.stdout.close()
    process.wait()


def test_no_program_but_the_reaper_is_ever_started(tmp_path: Path) -> None:
    """Whatever is on PATH, and whatever the program itself is: neither is taken for a reaper."""
    started = tmp_path / "started"
    for name in ("linetender", "linetender-reaper"):
        trap = tmp_path / name
        trap.write_text(f"#!/bin/sh\necho {name} >> {started}\n")
        trap.chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text(
        KIT
        + f"""
open({str(started)!r}, "a").write("program\\n")
import linetender
async def main():
    async with linetender.Line(linetender.Server.stdio(BADSERVER).with_settings(state="none")) as line:
        for _ in range(3):
            server = await pid_of(line)
            reaper, = [pid for pid in children()]
            assert os.readlink(f"/proc/{{reaper}}/exe").endswith("/linetender/_bin/linetender-reaper")
            await line.redial()
asyncio.run(main())
"""
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run([sys.executable, str(program)], env={**os.environ, "PATH": path}, check=True, timeout=60)
    assert started.read_text().split() == ["program"]


def test_without_its_reaper_it_starts_nothing() -> None:
    run(
        """
        import linetender, linetender._reaper as reaper
        reaper.__file__ = "/nowhere/_reaper.py"
        try:
            linetender.Server.stdio(BADSERVER)
        except RuntimeError as error:
            assert "install linetender from a wheel" in str(error)
        else:
            raise SystemExit("it went on without")
        """
    )


def test_a_forked_child_disturbs_nobody() -> None:
    run(
        """
        import warnings
        warnings.simplefilter("ignore")
        import linetender
        async def child():
            async with linetender.Line.stdio(BADSERVER) as own:
                assert await own.call_tool("echo")
        async def main():
            async with linetender.Line.stdio(BADSERVER) as line:
                server = await pid_of(line)
                waits = asyncio.ensure_future(line.call_tool("sleep", {"ms": 200}))
                for way in range(3):
                    pid = os.fork()
                    if pid == 0:
                        asyncio.events._set_running_loop(None)
                        try:
                            line.state
                        except RuntimeError as error:
                            assert "belongs to the parent process" in str(error)
                        else:
                            os._exit(2)
                        if way == 1:
                            asyncio.run(child())
                        if way == 2:
                            # All of the parent's objects go, as at the end of a child that ends by itself.
                            waits = None
                            del line
                            gc.collect()
                        os._exit(0)
                    assert os.waitpid(pid, 0)[1] == 0
                    assert await pid_of(line) == server
                assert await waits
                assert line.status.generation == 1
                began = time.monotonic()
            assert time.monotonic() - began < 2
        asyncio.run(main())
        """
    )


def test_multiprocessing_with_fork() -> None:
    run(
        """
        import warnings, multiprocessing
        warnings.simplefilter("ignore")
        import linetender
        async def call():
            async with linetender.Line.stdio(BADSERVER) as line:
                return json.loads((await line.call_tool("echo", {"n": 1})).text)["n"]
        def work(n):
            return asyncio.run(call()) + n
        asyncio.run(call())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(4)) == [1, 2, 3, 4]
        assert asyncio.run(call()) == 1
        """
    )
