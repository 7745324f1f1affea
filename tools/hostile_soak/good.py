"""The good agents: a process of their own, on connections that they keep. Commands come on stdin, reports go to stdout, as JSON.

`good.py PORT AGENTS SERVERS EVERY`. Each calls `echo` with a nonce of its own, and the answer has to carry it.
"""
import asyncio
import json
import sys
import time

import http1

# Longer than any bound of the gateway: what has no answer by then is lost.
PATIENCE = 60.0


class Phase:
    """What happened to the calls that began in it."""

    def __init__(self, name):
        self.name, self.open = name, 0
        self.latencies, self.lags, self.answered = [], [], []
        # An error for an answer is told apart from no answer: a gateway that ends owes each call one or the other.
        self.lost, self.wrong, self.errors = [], [], []

    def report(self):
        return {name: value for name, value in vars(self).items() if name != "open"}


class Agent:
    def __init__(self, port, number, servers, every):
        self.port, self.number, self.every = port, number, every
        server = f"good{number % servers + 1}"
        # Each server has a legacy and a modern agent; the address changes with every second server.
        self.modern = number >= servers
        at_all = (number + number // servers) % 2 == 0
        self.path, self.prefix = ("/mcp", f"{server}__") if at_all else (f"/mcp/{server}", "")
        self.name, self.calls = f"good-{number}", 0
        self.connection, self.session = None, []

    async def connect(self):
        self.connection = await http1.Connection.open(self.port)
        if not self.modern:
            self.session = await http1.greet(self.connection, self.path, self.name)

    def drop(self):
        if self.connection:
            self.connection.hang_up()
        self.connection, self.session = None, []

    async def call(self, tool, **arguments):
        """The answer to one call, as text; the nonce."""
        self.calls += 1
        nonce = f"{self.name}-{time.monotonic_ns()}-{self.calls}"
        async with asyncio.timeout(PATIENCE):
            return nonce, await self.exchange(tool, {"nonce": nonce, **arguments})

    async def exchange(self, tool, arguments):
        params = {"name": self.prefix + tool, "arguments": arguments}
        if self.modern:
            data = http1.modern(self.path, self.name, self.calls, "tools/call", params)
        else:
            data = http1.post(self.path, http1.request(self.calls, "tools/call", params), self.session)
        status, headers, body = await self.connection.ask(data)
        if status != 200:
            raise http1.Closed(f"status {status}: {body[:300]!r}")
        return http1.messages(headers, body)

    def judge(self, nonce, heard):
        """What the answer is if it is not its own, and in which words."""
        mine = [message for message in heard if message.get("id") == self.calls and "method" not in message]
        if len(mine) != 1 or len([one for one in heard if "method" not in one]) != 1:
            return "wrong", f"{self.name}: answers {json.dumps(heard)[:300]}"
        if "result" not in mine[0] or mine[0]["result"].get("isError"):
            return "errors", f"{self.name}: {json.dumps(mine[0])[:500]}"
        content = mine[0]["result"].get("content") or [{}]
        if json.loads(content[0].get("text") or "{}").get("nonce") != nonce:
            return "wrong", f"{self.name}: wanted {nonce}, got {json.dumps(mine[0])[:300]}"
        return None, None


class Crowd:
    def __init__(self, agents):
        self.agents, self.phase, self.running = agents, Phase("start"), asyncio.Event()
        self.resting = [asyncio.Event() for _ in agents]

    async def live(self, agent, resting):
        due = time.monotonic()
        while True:
            if not self.running.is_set():
                resting.set()
                await self.running.wait()
                resting.clear()
                due = time.monotonic()
            due = max(due + agent.every, time.monotonic() - agent.every)
            await asyncio.sleep(due - time.monotonic())
            phase = self.phase
            phase.lags.append(max(0.0, time.monotonic() - due))
            await self.once(agent, phase)

    async def once(self, agent, phase, tool="echo", **arguments):
        phase.open += 1
        begun = time.monotonic()
        nonce = None
        try:
            if agent.connection is None:
                async with asyncio.timeout(PATIENCE):
                    await agent.connect()
                begun = time.monotonic()
            nonce, heard = await agent.call(tool, **arguments)
            took = time.monotonic() - begun
            kind, what = agent.judge(nonce, heard)
            if kind is None:
                phase.latencies.append(took)
                phase.answered.append(nonce)
            else:
                getattr(phase, kind).append((time.monotonic(), what) if kind == "errors" else what)
        except (KeyError, TypeError, AttributeError) as error:
            phase.wrong.append(f"{agent.name} at {agent.path}: an answer of another shape: {error!r}")
        except (OSError, http1.Closed, asyncio.TimeoutError, ValueError, EOFError) as error:
            after = time.monotonic() - begun
            phase.lost.append(f"{agent.name} at {agent.path}: {error!r} after {after:.3f} s")
            agent.drop()
            # A gateway that is gone is not to be asked a thousand times.
            await asyncio.sleep(0.2)
        finally:
            phase.open -= 1

    async def turn(self, name):
        """The next phase begins; the report of the last one, when its calls are over."""
        old, self.phase = self.phase, Phase(name)
        while old.open:
            await asyncio.sleep(0.02)
        return old.report()

    async def rest(self):
        self.running.clear()
        for resting in self.resting:
            await resting.wait()

    async def slow_calls(self, ms):
        """One call of each that lasts, for a gateway that is told to end meanwhile."""
        phase = Phase("slow")
        await asyncio.gather(*(self.once(agent, phase, "sleep", ms=ms) for agent in self.agents))
        for agent in self.agents:
            agent.drop()
        return phase.report()


async def main(port, agents, servers, every):
    crowd = Crowd([Agent(port, number, servers, every) for number in range(agents)])
    for agent in crowd.agents:
        await agent.connect()
    lives = [asyncio.create_task(crowd.live(*pair)) for pair in zip(crowd.agents, crowd.resting)]
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        word, *words = line.split()
        report = {}
        if ended := [life for life in lives if life.done()]:
            raise SystemExit(f"a good agent ended: {ended}")
        if word == "run":
            crowd.running.set()
        elif word == "rest":
            await crowd.rest()
        elif word == "phase":
            report = await crowd.turn(words[0])
        elif word == "slow":
            report = await crowd.slow_calls(int(words[0]))
        print(json.dumps(report), flush=True)
    for life in lives:
        life.cancel()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
