"""Settings of a server: those of the config file, as arguments."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import mcp
import pytest

import linetender
from linetender import Line, Server


@pytest.mark.parametrize("limit", [0.3, timedelta(milliseconds=300), "300ms"])
async def test_a_call_ends_at_its_time(badserver: str, limit: Any) -> None:
    async with Line(Server.stdio(badserver).with_settings(call_timeout=limit)) as line:
        began = time.monotonic()
        with pytest.raises(linetender.CallTimeout) as caught:
            await line.call_tool("hang", {})
        assert time.monotonic() - began < 10
        assert "300 ms" in str(caught.value)


async def test_a_call_of_a_session_ends_at_its_time(badserver: str) -> None:
    """A session leaves the time to the client; a limit of the server's settings holds all the same."""
    server = Server.stdio(badserver).with_settings(call_timeout=0.3)
    async with linetender.session(server) as (read, write), mcp.ClientSession(read, write) as client:
        await client.initialize()
        told = await client.call_tool("hang", {})
        assert "300 ms" in told.content[0].text
        assert (await client.call_tool("echo", {"text": "a"})).content


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"call_timeout": -1}, "call_timeout"),
        ({"call_timeout": 0}, "longer than zero"),
        ({"call_timeout": "soon"}, "soon"),
        ({"call_timeout": 'a" \n[servers.y]\ncommand = "z'}, "call_timeout"),
        ({"in_flight": 0}, "in_flight"),
        ({"max_message": "much"}, "much"),
        ({"hang_after": 1}, "hang_after must be no shorter than quiet_limit"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], says: str) -> None:
    for server in (Server.stdio("x"), Server.http("http://localhost:1/mcp")):
        with pytest.raises(linetender.ConfigError, match=says.replace("[", r"\[")):
            server.with_settings(**settings)


WORDS = ["not-executed", "session-lost", "auth", "protocol", "goaway", "rate-limited", "refused-stream", "reads"]


@pytest.mark.parametrize("wrong", [["soon"], ["auth", "list"], ["not executed"], [""], "auth"])
def test_a_reason_that_there_is_not_is_refused_with_those_that_there_are(wrong: Any) -> None:
    for server in (Server.stdio("x"), Server.http("http://localhost:1/mcp")):
        with pytest.raises(ValueError) as caught:
            server.with_settings(retry_on=wrong)
        assert isinstance(wrong, str) or all(f'"{word}"' in str(caught.value) for word in WORDS)
        for permitted in (WORDS, [], ("not-executed",)):
            server.with_settings(retry_on=permitted)


def test_a_name_and_a_program_stay() -> None:
    assert Server.stdio("x", name="n").with_settings(state="process", in_flight=3, max_message="1MiB").name == "n"
