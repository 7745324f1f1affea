"""Agents that have nothing to say: sessions, and streams that stay open."""
import asyncio
import json

VERSION = "2025-11-25"
MODERN = "2026-07-28"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "scale", "version": "1"}}}
GREETED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "scale", "version": "1"}}
LISTEN = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}, "_meta": META}}
AT_ONCE = 32  # agents that connect at the same time


class Agents:
    """Many agents of one gateway."""

    def __init__(self, port):
        self.port, self.sessions, self.streams = int(port), [], []

    async def request(self, connection, method, path, body=None, headers=()):
        """Sends it, and returns status and headers; the body is still to be read."""
        reader, writer = connection
        text = json.dumps(body).encode() if body is not None else b""
        head = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Content-Type: application/json",
                "Accept: application/json, text/event-stream", f"Content-Length: {len(text)}", *headers, "", ""]
        writer.write("\r\n".join(head).encode() + text)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        status = int(head[0].split()[1])
        if status not in (200, 202):
            raise RuntimeError(f"{method} {path}: {head[0]}: {(await reader.read(500)).decode()}")
        return named

    async def body(self, reader, headers):
        if headers.get("transfer-encoding") != "chunked":
            return await reader.readexactly(int(headers.get("content-length", 0)))
        text = b""
        while length := int(await reader.readline(), 16):
            text += await reader.readexactly(length)
            await reader.readline()
        await reader.readline()
        return text

    async def greet(self, connection, path):
        headers = await self.request(connection, "POST", path, HELLO)
        session = headers["mcp-session-id"]
        await self.body(connection[0], headers)
        ours = (f"Mcp-Session-Id: {session}", f"Mcp-Protocol-Version: {VERSION}")
        headers = await self.request(connection, "POST", path, GREETED, ours)
        await self.body(connection[0], headers)
        return path, ours

    async def each(self, count, work, told):
        """So many times, some at once; each worker has a connection that it may use."""
        numbers, done = iter(range(count)), 0

        async def worker():
            nonlocal done
            connection = await asyncio.open_connection("127.0.0.1", self.port)
            for number in numbers:
                await work(number, connection)
                done += 1
                told(done)
            connection[1].close()
        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

    async def begin_sessions(self, paths, told):
        """A session at each of these paths. Their agents are not connected then."""
        async def begin(number, connection):
            self.sessions.append(await self.greet(connection, paths[number]))
        await self.each(len(paths), begin, told)

    async def open_streams(self, count, told):
        """The own stream of so many of these sessions."""
        async def open_one(number, _):
            path, ours = self.sessions[number]
            connection = await asyncio.open_connection("127.0.0.1", self.port)
            await self.request(connection, "GET", path, headers=ours)
            self.streams.append(connection)
        await self.each(count, open_one, told)

    async def listen(self, paths, told):
        """Modern agents, which have a stream and no session."""
        async def open_one(number, _):
            connection = await asyncio.open_connection("127.0.0.1", self.port)
            headers = (f"Mcp-Protocol-Version: {MODERN}", "Mcp-Method: subscriptions/listen")
            await self.request(connection, "POST", paths[number], LISTEN, headers)
            self.streams.append(connection)
        await self.each(len(paths), open_one, told)

    def hang_up(self):
        for _, writer in self.streams:
            writer.close()
        self.streams = []
