"""A session that never dies, for code that holds the official SDK.

The tasks that carry messages are tasks of the loop, not of an anyio task group: frameworks enter a transport in one task and
leave it in another, and a task group must not be left that way.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from . import _native
from ._line import Line
from ._rig import Rig
from ._server import Server, StrPath

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from ._sdk import Codec


class ServerParameters(Protocol):
    """What the SDK's ``StdioServerParameters`` has."""

    @property
    def command(self) -> str: ...
    @property
    def args(self) -> Sequence[str]: ...
    @property
    def env(self) -> Mapping[str, str] | None: ...
    @property
    def cwd(self) -> StrPath | None: ...


def session(
    target: Server | Line | ServerParameters | str,
    args: Sequence[StrPath] = (),
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: StrPath | None = None,
    headers: Mapping[str, str] | None = None,
    safe_tools: Sequence[str] = (),
    rig: Rig | None = None,
) -> Session:
    """A transport for ``mcp.ClientSession`` that outlives its server.

    One line of a program changes: ``linetender.session(...)`` stands where ``stdio_client(...)`` or the SDK's HTTP client
    stood. The server behind it may die as often as it likes; each call gets its answer, or an error that says what happened
    and whether the call may have run. It works under asyncio and under trio, with version 1 and version 2 of the SDK.

    ``target`` is the SDK's ``StdioServerParameters``, a command (with ``args``), an ``http://`` or ``https://`` address, a
    :class:`Server`, or a :class:`Line`, which several sessions may share and which lives on when they end.

    >>> import asyncio, linetender, mcp
    >>> async def main():
    ...     async with linetender.session(badserver) as (read, write):
    ...         async with mcp.ClientSession(read, write) as client:
    ...             await client.initialize()
    ...             result = await client.call_tool("echo", {"text": "hello"})
    ...             return result.content[0].type
    >>> asyncio.run(main())
    'text'
    """
    if isinstance(target, Line):
        native = target._native
        return Session(lambda: _native.Session.join(native), target.name)
    if isinstance(target, Server):
        server = target
    elif not isinstance(target, str):
        server = Server.stdio(
            target.command,
            target.args,
            name=name,
            env=target.env,
            cwd=target.cwd,
            safe_tools=safe_tools,
        )
    elif target.startswith(("http://", "https://")):
        server = Server.http(target, name=name, headers=headers, safe_tools=safe_tools)
    else:
        server = Server.stdio(target, args, name=name, env=env, cwd=cwd, safe_tools=safe_tools)
    on = None if rig is None else rig._native
    return Session(lambda: _native.Session.open(server._native, on), server.name)


class Session:
    """What :func:`session` returns: an asynchronous context manager that yields a pair of streams, once."""

    def __init__(self, opened: Callable[[], _native.Session], name: str) -> None:
        self._open = opened
        self._name = name
        self._carriers: list[object] = []

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]:
        from ._sdk import codec

        self._codec: Codec = codec()  # first: it says what to install
        import anyio

        self._native = self._open()
        self._room = anyio.Event()
        self._over = anyio.Event()
        self._to_client, self._read = anyio.create_memory_object_stream[Any](0)
        self._write, self._from_client = anyio.create_memory_object_stream[Any](0)
        # Whoever is cancelled before its first step has no `finally`.
        self._carriers = [_spawn(self._carry_up, self._end), _spawn(self._carry_down, None)]
        return self._read, self._write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import anyio

        self._native.close()
        # Whoever is sending stops: nobody reads any more.
        self._read.close()
        self._write.close()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    async def _carry_up(self) -> None:
        """From the server to the client, until nothing of the session is left."""
        import anyio

        fileno, closed, heard = self._native.fileno(), False, True
        try:
            while not closed:
                await anyio.wait_readable(fileno)
                messages, room, closed = self._native.take()
                if room:
                    self._room.set()
                for text in messages:
                    heard = heard and await self._hear(text)
        finally:
            self._end()

    def _end(self, _: object = None) -> None:
        self._native.close()
        self._over.set()
        self._room.set()
        self._to_client.close()
        self._from_client.close()

    async def _hear(self, text: bytes) -> bool:
        return await self._tell(*self._codec.read(text, self._name))

    async def _tell(self, message: Any, refusal: bytes | None) -> bool:
        """Tells the client, or the server. Whether the client still listens."""
        import anyio

        if refusal is not None:
            self._native.send(refusal)
        if message is None:
            return True
        try:
            await self._to_client.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    async def _carry_down(self) -> None:
        """From the client to the server."""
        import anyio

        try:
            async for message in self._from_client:
                try:
                    text = self._codec.write(message)
                except Exception as error:  # whatever the program put into it
                    await self._tell(*self._codec.unspelt(message, self._name, error))
                    continue
                while not self._over.is_set():
                    self._room = anyio.Event()
                    if self._native.send(text):
                        break
                    await self._room.wait()
        except anyio.ClosedResourceError:
            pass


def _spawn(work: Callable[[], Coroutine[Any, Any, None]], ended: Callable[[object], None] | None) -> object:
    """A task of the loop's, and what is called when it has ended. Whoever holds what this returns keeps it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")
        if trio is None:
            raise
        return trio.lowlevel.spawn_system_task(work)
    task = asyncio.ensure_future(work())
    if ended is not None:
        task.add_done_callback(ended)
    return task
