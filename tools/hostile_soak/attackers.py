"""Hostile agents: several in one process. `attackers.py` reads one line of JSON with its agents, then commands, from stdin.

Each behaviour is a coroutine that plays one round; `kind` in tools/hostile.toml is its name, and the other keys are its words. What
the gateway answers is counted, so that a report can show that the attack took place.
"""
import asyncio
import collections
import json
import random
import sys

import http1

# No round takes longer: an attacker that waits for ever attacks nobody.
ROUND = 20.0
FILL = b"x" * 1_000_000


class Attacker:
    """One hostile agent: where it attacks, and the connections that it holds."""

    def __init__(self, words, number, servers, tally):
        self.words, self.number, self.servers, self.tally = words, number, servers, tally
        self.port, self.held, self.rounds = 0, [], 0
        self.random = random.Random(number)

    def count(self, what):
        self.tally[f"{self.words['kind']}: {what}"] += 1

    async def open(self, narrow=False):
        connection = await http1.Connection.open(self.port, narrow)
        self.held.append(connection)
        return connection

    def hang_up(self):
        for connection in self.held:
            connection.hang_up()
        self.held.clear()

    def server(self):
        at = self.words.get("at", "hostile")
        return self.random.choice(self.servers[at]) if at in self.servers else at

    async def ask(self, connection, data):
        status, headers, body = await connection.ask(data)
        self.count(status)
        return status, headers, body

    async def live(self):
        behave, port = BEHAVIOURS[self.words["kind"]], self.port
        while self.port == port:
            self.rounds += 1
            try:
                async with asyncio.timeout(ROUND):
                    await behave(self)
            except asyncio.TimeoutError:
                self.count("no answer in time")
            except (OSError, http1.Closed, ValueError, EOFError, asyncio.LimitOverrunError) as error:
                self.count(type(error).__name__)
            self.count("rounds")
            self.hang_up()
            await asyncio.sleep(self.words["pause"] * (0.5 + self.random.random()))


BEHAVIOURS = {}


def behaviour(play):
    BEHAVIOURS[play.__name__] = play
    return play


async def session(attacker, path="/mcp", narrow=False):
    connection = await attacker.open(narrow)
    return connection, await http1.greet(connection, path, f"hostile-{attacker.number}")


def called(number, tool, arguments=None, **more):
    return http1.request(number, "tools/call", {"name": tool, "arguments": arguments or {}, **more})


@behaviour
async def batch_and_hang_up(attacker):
    connection, named = await session(attacker)
    batch = [http1.request(number, "ping", {"_meta": {"progressToken": number}}) for number in range(attacker.words["size"])]
    await connection.send(http1.post("/mcp", batch, named))
    if attacker.rounds % 4 == 0:
        attacker.count((await connection.answer())[0])


@behaviour
async def initialize_flood(attacker):
    connection = await attacker.open()
    for _ in range(attacker.words["burst"]):
        path = attacker.random.choice(["/mcp", "/mcp/" + attacker.server(), "/mcp/" + attacker.random.choice(attacker.servers["good"])])
        await attacker.ask(connection, http1.post(path, http1.hello(f"flood-{attacker.random.random()}")))


@behaviour
async def ids_like_ours(attacker):
    server = attacker.server()
    connection, named = await session(attacker)
    for number in ["linetender:1", "linetender:x", -1, 2**63, "", "\u0000", 0, "0", 1e300, None, [1], {}]:
        await attacker.ask(connection, http1.post("/mcp", http1.request(number, "ping", {"_meta": {"progressToken": number}}), named))
    for name in [("Mcp-Session-Id", "linetender:1"), ("Mcp-Session-Id", "1"), ("Last-Event-ID", "1-0"), ("Mcp-Session-Id", "x" * 8000)]:
        await attacker.ask(connection, http1.post("/mcp", called("linetender:2", f"{server}__echo"), [name]))


@behaviour
async def doubled_names(attacker):
    server = attacker.random.choice(attacker.servers["good"])
    connection, named = await session(attacker)
    for second in ["name", "Name", "NAME", "n\\u0061me", "nam\\u0065"]:
        params = f'"name":"{server}__echo","{second}":"{server}__write","arguments":{{"x":1,"x":2}}'
        text = f'{{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call","Method":"ping","params":{{{params}}},"params":{{}}}}'
        await attacker.ask(connection, http1.post("/mcp", text.encode(), named))


@behaviour
async def unfinished_body(attacker):
    connection = await attacker.open()
    size = attacker.words["bytes"]
    await connection.send(http1.head("/mcp", length=size + 1_000_000))
    for _ in range(size // len(FILL)):
        await connection.send(FILL)
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def slow_headers(attacker):
    connections = [await attacker.open() for _ in range(attacker.words["connections"])]
    for byte in b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"s" * 40:
        for connection in connections:
            await connection.send(bytes([byte]))
        await asyncio.sleep(0.1)


@behaviour
async def slow_body(attacker):
    connections = [await attacker.open() for _ in range(attacker.words["connections"])]
    for connection in connections:
        await connection.send(http1.head("/mcp", length=10_000))
    for _ in range(80):
        for connection in connections:
            await connection.send(b'{"a":1,')
        await asyncio.sleep(0.1)


@behaviour
async def unread_answer(attacker):
    server = attacker.server()
    connection, named = await session(attacker, narrow=True)
    for number in range(3):
        await connection.send(http1.post("/mcp", called(number, f"{server}__big", {"bytes": attacker.words["bytes"]}), named))
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def unread_lists(attacker):
    """Pipelined: the answer to a small question can be megabytes of hostile tools."""
    connection, named = await session(attacker, narrow=True)
    data = b"".join(http1.post("/mcp", http1.request(number, "tools/list"), named) for number in range(attacker.words["requests"]))
    await connection.send(data)
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def idle_connections(attacker):
    for _ in range(attacker.words["connections"]):
        await attacker.open()
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def unread_streams(attacker):
    """Streams of a session that nobody reads, on a server that talks without end."""
    _, named = await session(attacker, "/mcp/chatty")
    for _ in range(attacker.words["streams"]):
        stream = await attacker.open(narrow=True)
        await stream.send(http1.head("/mcp/chatty", named, method="GET"))
    level = http1.request(1, "logging/setLevel", {"level": "debug"})
    attacker.count((await (await attacker.open()).ask(http1.post("/mcp/chatty", level, named)))[0])
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def slow_calls(attacker):
    server = attacker.server()
    connection, named = await session(attacker, f"/mcp/{server}")
    calls = [called(number, "sleep", {"ms": 1500}) for number in range(attacker.words["calls"])]
    await connection.send(http1.post(f"/mcp/{server}", calls, named))
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def slow_calls_of_many_names(attacker):
    """Each call of another agent, if one believes what it calls itself."""
    server = attacker.server()
    for number in range(attacker.words["calls"]):
        connection = await attacker.open()
        params = {"name": "sleep", "arguments": {"ms": 1500}}
        await connection.send(http1.modern(f"/mcp/{server}", f"name-{attacker.random.random()}", number, "tools/call", params))
    await asyncio.sleep(attacker.words["hold"])


@behaviour
async def cancel_everything(attacker):
    server = attacker.random.choice(attacker.servers["good"])
    path = f"/mcp/{server}"
    connection, named = await session(attacker, path)
    await connection.send(http1.post(path, [called(number, "sleep", {"ms": 500}) for number in range(attacker.words["calls"])], named))
    other = await attacker.open()
    for numbers in (range(1000), [f"linetender:{number}" for number in range(20)]):
        cancels = [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}} for number in numbers]
        await attacker.ask(other, http1.post(path, cancels, named))


@behaviour
async def random_bytes(attacker):
    connection = await attacker.open()
    data = attacker.random.randbytes(attacker.random.choice([10, 1000, 100_000]))
    choice = attacker.rounds % 4
    if choice == 0:
        await connection.send(data)
    elif choice == 1:
        await connection.send(http1.post("/mcp", data))
    elif choice == 2:
        await connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + data)
    else:
        await connection.send(http1.head("/mcp", [("Transfer-Encoding", "chunked"), ("X-Long", "h" * 10_000)]) + data)
    status, _ = await connection.head()
    attacker.count(status)


@behaviour
async def call_hostile_servers(attacker):
    connection, named = await session(attacker)
    for server in attacker.servers["hostile"]:
        tool = attacker.random.choice(["echo", "echo", "sleep", "nobody's", "t99999"])
        data = http1.post("/mcp", called(1, f"{server}__{tool}", {"ms": 10, "secret": "s" * 100}), named)
        try:
            async with asyncio.timeout(2.0):
                await attacker.ask(connection, data)
        except asyncio.TimeoutError:
            attacker.count("gave up a call")
            connection, named = await session(attacker)


@behaviour
async def million_keys(attacker):
    """Several large messages, all of which are complete at the same moment."""
    if "keys" not in MADE:
        keys = b",".join(b'"%d":0' % number for number in range(attacker.words["keys"]))
        siblings = b"".join(b',"k%d":0' % number for number in range(100_000))
        MADE["keys"] = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{%s}%s}}' % (keys, siblings)
    text, connections = MADE["keys"], []
    for _ in range(attacker.words["connections"]):
        connection, named = await session(attacker)
        await connection.send(http1.head("/mcp", named, len(text)))
        await connection.send(text[:-1])
        connections.append(connection)
    for connection in connections:
        await connection.send(text[-1:])
    for connection in connections:
        attacker.count((await connection.answer())[0])


@behaviour
async def deep_request(attacker):
    connection, named = await session(attacker)
    depth = attacker.words["depth"]
    await attacker.ask(connection, http1.post("/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * depth, named))


# What is large and always the same.
MADE = {}


async def main():
    given = json.loads(sys.stdin.readline())
    tally = collections.Counter()
    attackers = [Attacker(words, words["number"], given["servers"], tally) for words in given["agents"]]
    lives, loop = [], asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        for attacker in attackers:
            attacker.port = int(line)
        for life in lives:
            life.cancel()
        for end in await asyncio.gather(*lives, return_exceptions=True):
            if isinstance(end, Exception):
                tally[f"an attacker ended: {end!r}"] += 1
        for attacker in attackers:
            attacker.hang_up()
        print(json.dumps(tally), flush=True)
        tally.clear()
        lives = [asyncio.create_task(attacker.live()) for attacker in attackers] if int(line) else []
    for attacker in attackers:
        attacker.port = 0


asyncio.run(main())
