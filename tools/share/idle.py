"""The first call after an idle stop, beside the server's own start."""

import statistics
import sys
import time

from agent import Agent

linetender, server, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
ECHO = {"name": "echo", "arguments": {"message": "hello"}}


def direct():
    """From the start of the process to the answer of its first call, as an agent without linetender has it."""
    begun = time.perf_counter()
    agent = Agent([server])
    agent.greet()
    agent.ask("tools/call", ECHO)
    took = time.perf_counter() - begun
    agent.leave()
    return took


def stopped(flags):
    """The first call to a server that was stopped because nobody used it."""
    agent = Agent([linetender, "run", "--idle-stop", "200ms", *flags, "--", server])
    agent.greet()
    agent.ask("tools/list")
    agent.ask("tools/call", ECHO)
    # Stopped within a quarter of a second of silence, and its process has to be gone.
    time.sleep(1.5)
    begun = time.perf_counter()
    answer = agent.ask("tools/call", ECHO)
    took = time.perf_counter() - begun
    assert "result" in answer, answer
    agent.leave()
    return took


ways = {"direct": direct, "run": lambda: stopped([]), "share": lambda: stopped(["--share"])}
times = {name: [] for name in ways}
for _ in range(rounds):
    for name, way in ways.items():
        times[name].append(way())
own = statistics.median(times["direct"])
for name, all_times in times.items():
    quarters = statistics.quantiles(all_times, n=4)
    told = f"{name:8} median {quarters[1] * 1000:.0f} ms ({quarters[0] * 1000:.0f} … {quarters[2] * 1000:.0f})"
    print(told if name == "direct" else f"{told}, {quarters[1] / own:.2f} of the server's own start and first call")
