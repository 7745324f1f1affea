"""Servers that run a call and then say that they did not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import mcp
import pytest
from conftest import runs

import linetender
from linetender import Line, Server

ERAS = ["legacy", "modern"]


def invites_nobody(text: str) -> None:
    """No model is told that it may call again what may have run."""
    assert "check for side effects before retrying it" in text
    assert not [wrong for wrong in ("safe", "was not executed", "proof", "proven") if wrong in text], text


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_ran_and_was_refused_runs_once_and_is_told_as_refused(
    webserver: Any, book: Path, era: str
) -> None:
    _, url = webserver("--era", era)
    async with Line.http(url, name="till") as line:
        for code, reason in [(429, "rate-limited"), (413, "too-large"), (405, "method-not-allowed")]:
            with pytest.raises(linetender.ServerRefused) as told:
                await line.call_tool("status", {"code": code, "run": True, "nonce": str(code)})
            for error in (told.value, pickle.loads(pickle.dumps(told.value))):
                assert (error.server, error.kind) == ("till", "server-refused")
                assert (error.delivery, error.reason, error.not_executed) == ("refused", reason, False)
                assert error.attempts == 1
            assert "linetender cannot check that" in told.value.for_model()
            invites_nobody(told.value.for_model())
            assert runs(book).count(str(code)) == 1
        with pytest.raises(linetender.OutcomeUnknown) as unknown:
            await line.call_tool("status", {"code": 503, "run": True, "nonce": "503"})
        assert (unknown.value.delivery, unknown.value.reason) == ("unknown", "connection-lost")
        assert runs(book).count("503") == 1


async def test_a_call_is_sent_again_after_429_where_that_is_permitted(webserver: Any, book: Path) -> None:
    _, url = webserver()
    async with Line(Server.http(url).with_settings(retry_on=["rate-limited"])) as line:
        with pytest.raises(linetender.ServerRefused):
            await line.call_tool("status", {"code": 429, "run": True, "nonce": "n"})
    assert runs(book).count("n") == 2


@pytest.mark.parametrize(("retry_on", "times"), [(None, 2), (["not-executed"], 1), ([], 1)])
async def test_a_lost_session_is_the_servers_word_too(webserver: Any, book: Path, retry_on: Any, times: int) -> None:
    _, url = webserver("--era", "legacy")
    async with Line(Server.http(url).with_settings(retry_on=retry_on)) as line:
        with pytest.raises(linetender.ServerRefused) as told:
            await line.call_tool("deny", {"nonce": "n"})
        assert told.value.reason == "session-lost"
        invites_nobody(told.value.for_model())
    assert runs(book).count("n") == times


@pytest.mark.parametrize("era", ERAS)
async def test_a_model_behind_the_sdk_reads_the_same(webserver: Any, book: Path, era: str) -> None:
    _, url = webserver("--era", era)
    async with linetender.session(url) as (read, write), mcp.ClientSession(read, write) as client:
        await client.initialize()
        told = await client.call_tool("status", {"code": 429, "run": True, "nonce": "n"})
        said = told.model_dump(by_alias=True)
        fields = said["_meta"]["linetender"]
        assert said["isError"] and (fields["delivery"], fields["reason"]) == ("refused", "rate-limited")
        invites_nobody(said["content"][0]["text"])
    assert runs(book).count("n") == 1
