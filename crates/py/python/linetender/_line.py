"""The handle that programs hold."""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from . import _native
from ._loop import Loop, ProgressCallback
from ._server import Server, StrPath
from ._spelling import loads

State = Literal[
    "idle", "dialing", "up", "suspect", "draining", "ending", "waiting", "parked", "needs-auth", "closed"
]


@dataclass(frozen=True)
class Status:
    """Where a line stands."""

    state: State
    #: The newest generation's number: one per start of the server.
    generation: int
    #: Why the last generation ended, or why calls wait for this one.
    cause: str | None
    #: The last lines of the server's stderr, if they explain something.
    stderr: str | None
    #: Whether that end was wanted.
    planned: bool
    #: When the server is tried next, in words; ``None`` while it serves.
    next_try: str | None
    #: The same in seconds, if it is a matter of time.
    next_try_in: float | None


@dataclass(frozen=True)
class StateChanged:
    """The line's state changed."""

    status: Status


@dataclass(frozen=True)
class ListChanged:
    """One of the server's lists changed: names that are new, gone, or mean something else now."""

    list: Literal["tools", "prompts", "resources", "resource_templates"]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True)
class EventsMissed:
    """Whoever reads these events was too slow, and this many are lost. ``Line.status`` is the newest."""

    count: int


Event = StateChanged | ListChanged | EventsMissed


class Answer:
    """A result, as the server spelt it. It is parsed when somebody looks."""

    __slots__ = ("_parsed", "raw")

    def __init__(self, raw: str) -> None:
        #: The result, as JSON.
        self.raw = raw
        self._parsed: Any = None

    @property
    def result(self) -> dict[str, Any]:
        """The result: for a tool, its ``content`` and what else the server said."""
        if self._parsed is None:
            parsed = loads(self.raw)
            self._parsed = parsed if isinstance(parsed, dict) else {}
        return self._parsed  # type: ignore[no-any-return]

    @property
    def content(self) -> list[dict[str, Any]]:
        """A tool's content, as MCP has it."""
        content = self.result.get("content")
        return content if isinstance(content, list) else []

    @property
    def structured(self) -> Any:
        """A tool's structured content, if it gave any."""
        return self.result.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether it is the result of a tool that ran and failed."""
        return self.result.get("isError") is True

    @property
    def text(self) -> str:
        """A tool's text contents, one per line. Pictures, sounds and resources are left out."""
        items = (item.get("text") for item in self.content if isinstance(item, dict))
        return "\n".join(text for text in items if isinstance(text, str))

    def __repr__(self) -> str:
        return f"Answer({self.raw!r})"


class Line:
    """A supervised connection to one server, for as long as you need it.

    When the server dies or hangs, the line ends the calls that were under way with an error that says why, starts the server
    again, and never runs a call twice without permission. It may be used from several event loops, in several threads.

    The server is started at once, unless ``lazy``. Leaving the ``async with`` block closes the line; so does dropping it.

    >>> import asyncio, linetender
    >>> async def main():
    ...     async with linetender.Line.stdio(badserver) as line:
    ...         answer = await line.call_tool("echo", {"text": "hello"})
    ...         return [tool["name"] for tool in await line.list_tools()][:1], line.state
    >>> asyncio.run(main())
    (['echo'], 'up')
    """

    __slots__ = ("__weakref__", "_loops", "_native")

    def __init__(self, server: Server, *, lazy: bool = False) -> None:
        self._loops: weakref.WeakSet[Loop] = weakref.WeakSet()
        self._native = _native.Line(server._native, lazy)

    @classmethod
    def _of(cls, native: _native.Line) -> Line:
        line = cls.__new__(cls)
        line._loops = weakref.WeakSet()
        line._native = native
        return line

    @classmethod
    def stdio(
        cls,
        command: StrPath,
        args: Sequence[StrPath] = (),
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: StrPath | None = None,
        inherit_env: bool = False,
        stderr: Literal["off", "log", "pass"] = "off",
        safe_tools: Sequence[str] = (),
        lazy: bool = False,
    ) -> Line:
        """A line to a program: see :meth:`Server.stdio`."""
        server = Server.stdio(
            command,
            args,
            name=name,
            env=env,
            cwd=cwd,
            inherit_env=inherit_env,
            stderr=stderr,
            safe_tools=safe_tools,
        )
        return cls(server, lazy=lazy)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        safe_tools: Sequence[str] = (),
        lazy: bool = False,
    ) -> Line:
        """A line to an address: see :meth:`Server.http`."""
        return cls(Server.http(url, name=name, headers=headers, safe_tools=safe_tools), lazy=lazy)

    @classmethod
    def from_config(cls, path: StrPath, name: str, *, lazy: bool = False) -> Line:
        """A line to a server of a config file: an agent's ``mcp.json``, or linetender's TOML."""
        return cls(Server.from_config(path, name), lazy=lazy)

    @property
    def name(self) -> str:
        """The server's name."""
        return self._native.name

    @property
    def state(self) -> State:
        """Where it stands now, in a word."""
        return self._native.state  # type: ignore[return-value]

    @property
    def status(self) -> Status:
        """Where it stands now."""
        return Status(**self._native.status())

    @property
    def pid(self) -> int | None:
        """The server's process, if it is one, and is known to run: that may be a moment after the line is up."""
        return self._native.pid

    async def ready(self) -> None:
        """Waits for the server to be up, as a call would."""
        await self._loop().run(self._native.ready)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        quiet_timeout: float | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Answer:
        """Calls a tool.

        A tool that ran and says that it failed is an answer: see :attr:`Answer.is_error`. ``timeout`` is how long the call
        may take in all; with ``quiet_timeout``, how long the server may be silent about it, which each notification of
        progress begins anew. Without either, the server's policy holds.

        Cancelling the task cancels the call at the server, and nothing else.

        Raises a :class:`LinetenderError` if there is no answer.
        """
        raw = await self._loop().run(
            self._native.call_tool,
            name,
            _json(arguments if arguments is not None else {}),
            quiet_timeout,
            timeout,
            on_progress is not None,
            progress=on_progress,
        )
        return Answer(raw)

    async def read_resource(self, uri: str) -> Answer:
        """Reads a resource."""
        return Answer(await self._loop().run(self._native.read_resource, str(uri)))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Answer:
        """Gets a prompt."""
        return Answer(await self._loop().run(self._native.get_prompt, name, _json(arguments or {})))

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        quiet_timeout: float | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Answer:
        """Makes any request."""
        raw = await self._loop().run(
            self._native.request,
            method,
            _json(params),
            quiet_timeout,
            timeout,
            on_progress is not None,
            progress=on_progress,
        )
        return Answer(raw)

    async def list_tools(self) -> list[dict[str, Any]]:
        """The tools, as last read. A server that is down keeps its tools listed."""
        return await self._list("tools")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """The prompts, as last read."""
        return await self._list("prompts")

    async def list_resources(self) -> list[dict[str, Any]]:
        """The resources, as last read."""
        return await self._list("resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """The templates of resources, as last read."""
        return await self._list("resource_templates")

    async def _list(self, kind: str) -> list[dict[str, Any]]:
        return [loads(entry) for entry in await self._loop().run(self._native.list, kind)]

    async def redial(self) -> int:
        """Replaces the server by a fresh one, and says which generation that is."""
        return int(await self._loop().run(self._native.redial))

    def events(self) -> AsyncIterator[Event]:
        """What happens to the line from now on. Ends with the line.

        >>> import asyncio, linetender
        >>> async def main():
        ...     async with linetender.Line.stdio(badserver, lazy=True) as line:
        ...         events = line.events()
        ...         await line.ready()
        ...         async for event in events:
        ...             if isinstance(event, linetender.StateChanged) and event.status.state == "up":
        ...                 return event.status.generation
        >>> asyncio.run(main())
        1
        """
        return _Events(self, self._native.events())

    async def close(self) -> None:
        """Ends it. Nothing of the server is left when this returns."""
        await self._loop().run(self._native.close)
        self._leave()

    async def __aenter__(self) -> Line:
        self._loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _loop(self) -> Loop:
        loop = Loop.running()
        if loop not in self._loops:
            self._loops.add(loop)
            loop.use()
        return loop

    def _leave(self) -> None:
        for loop in list(self._loops):
            self._loops.discard(loop)
            loop.leave()

    def __del__(self) -> None:
        # An interpreter that ends takes everything with it.
        if getattr(self, "_loops", None) is not None and Loop is not None:
            self._leave()

    def __repr__(self) -> str:
        return f"<linetender.Line {self.name!r} {self.state}>"


class _Events:
    """The events of a line. It keeps the line."""

    __slots__ = ("_line", "_native")

    def __init__(self, line: Line, native: _native.Events) -> None:
        self._line = line
        self._native = native

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> Event:
        while (event := self._native.take()) is None:
            if not await self._line._loop().run(self._native.wait):
                raise StopAsyncIteration
        return _event(event)


def _event(said: dict[str, Any]) -> Event:
    kind = said.pop("event")
    if kind == "state":
        return StateChanged(Status(**said["status"]))
    if kind == "changed":
        return ListChanged(said["list"], *(tuple(said[key]) for key in ("added", "removed", "changed")))
    return EventsMissed(said.get("count", 0))


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
