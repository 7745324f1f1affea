"""What is configured."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from . import _native
from ._errors import ConfigError
from ._reaper import reaper

StrPath = str | os.PathLike[str]
Time = float | timedelta | str


def _millis(time: Time | None) -> str | int | None:
    if isinstance(time, timedelta):
        time = time.total_seconds()
    if time is None or isinstance(time, str):
        return time
    if not math.isfinite(time):
        raise ConfigError(f"{time} is no time")
    return round(time * 1000)


T = TypeVar("T")


def _several(name: str, given: Sequence[T]) -> list[T]:
    """A text is a sequence of letters, and never meant as one."""
    if isinstance(given, (str, bytes)):
        raise ConfigError(f"{name} is a list of texts, not one text: {given!r}")
    return list(given)


class Server:
    """A server: its name, and how it is reached. It starts nothing.

    >>> from linetender import Server
    >>> Server.stdio("mcp-server-git", ["--repository", "."]).name
    'mcp-server-git'
    >>> Server.http("https://mcp.example.com/mcp").name
    'mcp.example.com'
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Server) -> None:
        self._native = native

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
    ) -> Server:
        """A program that speaks MCP on its standard input and output.

        It gets the variables that a program needs to run, and ``env``; all of this process's with ``inherit_env``. A tool
        in ``safe_tools`` may be run again when its outcome is unknown.
        """
        command = os.fspath(command)
        argv = [command, *(os.fspath(argument) for argument in _several("args", args))]
        env = dict(env or {})
        texts = {"an argument": argv, "env": [*env, *env.values()], "cwd": [os.fspath(cwd or "")]}
        for what, given in texts.items():
            if any("\0" in text for text in given):
                raise ConfigError(f"{what} contains a NUL character")
        return cls(
            _native.Server.stdio(
                name or os.path.basename(command) or command,
                argv,
                reaper=reaper(),
                env=env,
                cwd=cwd,
                inherit_env=inherit_env,
                stderr=stderr,
                safe_tools=_several("safe_tools", safe_tools),
            )
        )

    @classmethod
    def http(
        cls,
        url: str,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        safe_tools: Sequence[str] = (),
    ) -> Server:
        """A server at an address: Streamable HTTP, or HTTP+SSE if it knows only that.

        The values of ``headers`` are printed nowhere.
        """
        return cls(
            _native.Server.http(
                name or urlsplit(url).hostname or url,
                url,
                headers=dict(headers or {}),
                safe_tools=_several("safe_tools", safe_tools),
            )
        )

    @classmethod
    def from_config(cls, path: StrPath, name: str) -> Server:
        """A server of a config file: an agent's ``mcp.json``, or linetender's TOML."""
        os.stat(path)  # a file that is not there is Python's own error
        try:
            return cls(_native.Server.from_config(path, name, reaper=reaper()))
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @classmethod
    def all_from_config(cls, path: StrPath) -> list[Server]:
        """All servers of a config file that are not disabled, in its order."""
        os.stat(path)
        try:
            return [cls(native) for native in _native.Server.load(path, reaper=reaper())]
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def with_settings(
        self,
        *,
        call_timeout: Time | None = None,
        quiet_limit: Time | None = None,
        hang_after: Time | None = None,
        abandoned_after: Time | None = None,
        wait: Time | None = None,
        start_timeout: Time | None = None,
        handshake_timeout: Time | None = None,
        keepalive: Time | None = None,
        tree: str | None = None,
        crash_grace: Time | None = None,
        close_timeout: Time | None = None,
        max_message: int | str | None = None,
        in_flight: int | None = None,
        state: Literal["none", "unknown", "process"] | None = None,
        trust_annotations: bool | None = None,
        retry_on: Sequence[str] | None = None,
    ) -> Server:
        """The same server with these settings, and the defaults for all others, also for those of a config file.

        Names and meanings are those of a server in ``linetender.toml``. A time is in seconds, a ``timedelta``, or a text
        such as ``"90s"``; a size is in bytes, or a text such as ``"16MiB"``. With ``retry_on=["not-executed"]`` a call is sent
        again only if linetender counted that it did not run.

        >>> from linetender import Server
        >>> Server.stdio("mcp-server-git").with_settings(call_timeout=60, abandoned_after="15s").name
        'mcp-server-git'
        """
        times = {
            "call_timeout": call_timeout,
            "quiet_limit": quiet_limit,
            "hang_after": hang_after,
            "abandoned_after": abandoned_after,
            "wait": wait,
            "start_timeout": start_timeout,
            "handshake_timeout": handshake_timeout,
            "keepalive": keepalive,
            "crash_grace": crash_grace,
            "close_timeout": close_timeout,
        }
        given: dict[str, str | int | bool | list[str] | None] = {name: _millis(time) for name, time in times.items()}
        given |= {
            "tree": tree,
            "max_message": max_message,
            "in_flight": in_flight,
            "state": state,
            "trust_annotations": trust_annotations,
            "retry_on": None if retry_on is None else _several("retry_on", retry_on),
        }
        # What JSON writes for texts, numbers, truth values and lists of them, TOML reads.
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items() if value is not None]
        try:
            return type(self)(self._native.with_settings("\n".join(lines)))
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @property
    def name(self) -> str:
        """The server's name."""
        return self._native.name

    def __repr__(self) -> str:
        return f"<linetender.Server {self.name!r}>"
