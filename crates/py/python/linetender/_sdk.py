"""The messages of the official SDK, in the versions of it that there are."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

from ._native import BAD_ANSWER, UNREADABLE
from ._spelling import loads


class Codec(NamedTuple):
    """How one version of the SDK spells messages."""

    parse: Callable[[bytes], Any]
    write: Callable[[Any], bytes]

    def read(self, text: bytes, server: str) -> tuple[Any, bytes | None]:
        """The message, or what to tell the server instead.

        What the SDK cannot read must not be lost: somebody waits for an answer, on one side or the other.
        """
        try:
            return self.parse(text), None
        except ValueError as error:
            return self._unread(text, server, error)

    def _unread(self, text: bytes, server: str, error: ValueError) -> tuple[Any, bytes | None]:
        try:
            said = loads(text)
            number = said.get("id") if isinstance(said, dict) else None
        except ValueError:
            return None, None
        if number is None:
            return None, None
        method = said.get("method")
        what = f"request {method!r}" if method is not None else "response"
        delivery = "not executed" if method is not None else "answered"
        cause = f"the MCP SDK cannot parse the server's {what}: {_words(error)}"
        told = _error(number, BAD_ANSWER, server, cause, delivery)
        if method is not None:
            return None, told
        return self.parse(told), None

    def unspelt(self, message: Any, server: str, error: Exception) -> tuple[Any, bytes | None]:
        """For a message that cannot be written: what to tell the client, and what to tell the server. One of them waits."""
        said = getattr(message.message, "root", message.message)
        number = getattr(said, "id", None)
        if number is None:
            return None, None
        is_request = hasattr(said, "method")
        cause = f"the client's {'request' if is_request else 'response'} cannot be written as JSON: {_words(error)}"
        told = _error(number, UNREADABLE, server, cause, "not executed")
        return (self.parse(told), None) if is_request else (None, told)


def _words(error: Exception) -> str:
    # Whatever could not be read or spelt may be quoted in it.
    return " ".join(ascii(str(error))[1:-1].split())[:200]


def _error(number: object, code: int, server: str, cause: str, delivery: str) -> bytes:
    """An error, as linetender spells them."""
    data = {
        "source": "linetender",
        "server": server,
        "phase": "in linetender",
        "cause": cause,
        "delivery": delivery,
        "nextTry": "now",
    }
    if delivery == "not executed":
        data["reason"] = "not-sent"
    message = f"{server}: {cause} (in linetender; {delivery}; next try: now)"
    told = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message, "data": data}}
    return json.dumps(told).encode()


@cache
def codec() -> Codec:
    """That of the SDK that is installed."""
    try:
        messages: Any = import_module("mcp.shared.message")
    except ImportError as error:
        raise ImportError(
            "linetender.session needs the official MCP SDK, 1.8 or later: pip install 'mcp>=1.8'"
        ) from error
    wrap = messages.SessionMessage
    # By name: the two versions do not have the same types, and whoever checks this has one of them.
    if int(version("mcp").split(".")[0]) >= 2:
        two: Any = import_module("mcp_types")
        validate = two.jsonrpc_message_adapter.validate_json
        return Codec(
            lambda text: wrap(validate(text, by_name=False)),
            lambda message: message.message.model_dump_json(by_alias=True, exclude_unset=True).encode(),
        )
    one: Any = import_module("mcp.types")
    parse = one.JSONRPCMessage.model_validate_json
    return Codec(
        lambda text: wrap(parse(text)),
        lambda message: message.message.model_dump_json(by_alias=True, exclude_none=True).encode(),
    )
