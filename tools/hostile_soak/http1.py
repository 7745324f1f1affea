"""HTTP/1.1 by hand: enough of it to keep a connection, and to break the rules."""
import asyncio
import json
import socket

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
# Answers are read up to this size; attackers ask for 10 MB and more.
LARGEST = 64 * 1024 * 1024


class Closed(Exception):
    """The gateway closed the connection before its answer was complete."""


class Connection:
    """One connection to the gateway."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port, narrow=False):
        """`narrow`: the kernel takes little of an answer that is not read, so that the gateway has to keep it."""
        made = socket.socket()
        try:
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if narrow:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
            return cls(*await asyncio.open_connection(sock=made, limit=64 * 1024))
        except BaseException:
            made.close()
            raise

    def hang_up(self):
        self.writer.transport.abort()

    async def send(self, data):
        """Everything, in pieces: asyncio would keep a copy of what the gateway does not take."""
        view = memoryview(data)
        for start in range(0, len(view), 256 * 1024):
            self.writer.write(view[start:start + 256 * 1024])
            await self.writer.drain()

    async def ask(self, data):
        """Sends a whole request; returns status, headers and body of its answer."""
        await self.send(data)
        return await self.answer()

    async def answer(self):
        try:
            status, headers = await self.head()
            return status, headers, await self.body(status, headers)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Closed(str(error)) from error

    async def head(self):
        first = await self.reader.readuntil(b"\r\n")
        headers = {}
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    async def body(self, status, headers):
        if "chunked" in headers.get("transfer-encoding", ""):
            pieces, size = [], 0
            while length := int(await self.reader.readuntil(b"\r\n"), 16):
                pieces.append(await self.reader.readexactly(length))
                size += length
                if size > LARGEST:
                    raise Closed("an answer without end")
                await self.reader.readexactly(2)
            await self.reader.readuntil(b"\r\n")
            return b"".join(pieces)
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        return b"" if status in (202, 204, 304) else await self.reader.read(LARGEST)


def post(path, body, headers=(), length=None):
    """The bytes of a request. `length` may lie."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return head(path, headers, len(body) if length is None else length) + body


def head(path, headers=(), length=0, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Accept: application/json, text/event-stream"]
    if method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def request(number, method, params=None):
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else {**message, "params": params}


def hello(name):
    return request(0, "initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                     "clientInfo": {"name": name, "version": "1"}})


def modern(path, name, number, method, params):
    """A request of the modern revision, which has no session."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
    headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)]
    if "name" in params:
        headers.append(("Mcp-Name", params["name"]))
    return post(path, request(number, method, {**params, "_meta": meta}), headers)


async def greet(connection, path, name):
    """A legacy session; the header that names it."""
    status, headers, body = await connection.ask(post(path, hello(name)))
    if status != 200 or "mcp-session-id" not in headers:
        raise Closed(f"initialize: {status} {body[:200]!r}")
    session = [("Mcp-Session-Id", headers["mcp-session-id"])]
    await connection.ask(post(path, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session))
    return session


def messages(headers, body):
    """The JSON-RPC messages of an answer, be it a document or a stream."""
    if "text/event-stream" not in headers.get("content-type", ""):
        return [json.loads(body)]
    lines = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return [json.loads(line) for line in lines if line]
