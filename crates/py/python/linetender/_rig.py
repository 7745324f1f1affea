"""Several lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from . import _native
from ._line import Line
from ._loop import Loop
from ._server import Server, StrPath


@dataclass(frozen=True)
class RigChange:
    """What became of a rig's lines: names, in order."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


class Rig:
    """Lines that share a dial limit: no more than so many servers are started at once.

    >>> import asyncio, linetender
    >>> async def main():
    ...     async with linetender.Rig() as rig:
    ...         change = rig.set([linetender.Server.stdio(badserver, name=name) for name in ("one", "two")])
    ...         answer = await rig["two"].call_tool("echo", {"text": "hello"})
    ...         return change.added, answer.is_error
    >>> asyncio.run(main())
    (('one', 'two'), False)
    """

    def __init__(self, *, dials_at_once: int | None = None) -> None:
        self._native = _native.Rig(dials_at_once)

    @classmethod
    def from_config(cls, path: StrPath) -> Rig:
        """A rig that holds a line to each server of a config file."""
        rig = cls()
        rig.set(Server.all_from_config(path))
        return rig

    def open(self, server: Server, *, lazy: bool = False) -> Line:
        """A line that the rig does not hold: it ends with its last handle."""
        return Line._of(self._native.open(server._native, lazy))

    def set(self, servers: Iterable[Server]) -> RigChange:
        """Holds lines to these servers, and to no others.

        What is new is started; what is not among them any more, or is another server under the same name, is closed when its
        calls have ended; what is unchanged is not touched.
        """
        change = self._native.set([server._native for server in servers])
        return RigChange(**{key: tuple(names) for key, names in change.items()})

    def line(self, name: str) -> Line | None:
        """The line of this name, if the rig holds one."""
        native = self._native.line(name)
        return None if native is None else Line._of(native)

    def __getitem__(self, name: str) -> Line:
        line = self.line(name)
        if line is None:
            raise KeyError(name)
        return line

    def lines(self) -> list[Line]:
        """All lines that it holds, by name."""
        return [Line._of(native) for native in self._native.lines()]

    async def shutdown(self, timeout: float = 10.0) -> bool:
        """Closes every line that it holds, all at once. Whether nothing was left when the time was up."""
        loop = Loop.running()
        loop.use()
        try:
            return bool(await loop.run(self._native.shutdown, timeout))
        finally:
            loop.leave()

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()
