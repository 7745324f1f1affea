"""A line, from asyncio."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest import pid_of, runs

import linetender
from linetender import Line, ListChanged, Server, StateChanged


async def test_a_tool_is_called(badserver: str) -> None:
    async with Line.stdio(badserver) as line:
        answer = await line.call_tool("echo", {"text": "grüße \U0001f600", "n": [1, 2.5, None, True]})
        assert json.loads(answer.text) == {"text": "grüße \U0001f600", "n": [1, 2.5, None, True]}
        assert not answer.is_error
        assert (await line.call_tool("tool_error")).is_error
        assert line.state == "up"
        assert line.name == "badserver"
    assert line.state == "closed"


async def test_lists_resources_prompts_and_requests(badserver: str) -> None:
    async with Line.stdio(badserver, ["--full"]) as line:
        assert "echo" in [tool["name"] for tool in await line.list_tools()]
        prompts, resources = await line.list_prompts(), await line.list_resources()
        assert await line.list_resource_templates() is not None
        assert prompts and resources
        assert (await line.get_prompt(prompts[0]["name"])).result["messages"]
        assert (await line.read_resource(resources[0]["uri"])).result["contents"]
        assert (await line.request("tools/list")).result["tools"]
        with pytest.raises(linetender.ErrorAnswer) as told:
            await line.request("no/such/method")
        assert told.value.code == -32601
        assert told.value.delivery == "answered"


async def test_a_server_that_is_killed_comes_back(badserver: str) -> None:
    async with Line(linetender.Server.stdio(badserver).with_settings(state="none")) as line:
        await line.ready()
        for _ in range(3):
            before, events = line.status.generation, line.events()
            os.kill(await pid_of(line), signal.SIGKILL)
            # A call that the dying server has read may have run. This one is made when the death is known.
            await anext(events)
            answer = await line.call_tool("echo")
            assert answer.text and line.status.generation == before + 1


async def test_a_call_that_may_have_run_is_not_repeated(badserver: str, book: Path) -> None:
    async with Line.stdio(badserver, ["--book", str(book)], name="clock") as line:
        with pytest.raises(linetender.OutcomeUnknown) as told:
            await line.call_tool("kill", {"nonce": "once"})
        error = told.value
        assert (error.server, error.delivery, error.kind) == ("clock", "unknown", "lost")
        assert "SIGKILL" in error.cause or "signal" in error.cause
        assert error.next_try
        assert "unknown whether the call was executed" in error.for_model()
        assert not error.not_executed
        await line.call_tool("echo", {"nonce": "after"})
    assert runs(book).count("once") <= 1
    assert runs(book).count("after") == 1


async def test_a_safe_tool_is_repeated(badserver: str, book: Path) -> None:
    server = Server.stdio(badserver, ["--book", str(book), "--die-on-call", "1"], safe_tools=["echo"])
    async with Line(server) as line:
        # Each process dies at its first call, so that even the repeated one is lost: it was tried twice.
        with pytest.raises(linetender.OutcomeUnknown):
            await line.call_tool("echo", {"nonce": "again"})
    reads = [text for text in book.read_text().splitlines() if text.split()[0] == "read"]
    assert len(reads) > 1


async def test_a_call_has_a_deadline(badserver: str) -> None:
    async with Line.stdio(badserver) as line:
        with pytest.raises(linetender.CallTimeout) as told:
            await line.call_tool("hang", timeout=0.2)
        assert isinstance(told.value, TimeoutError)
        assert told.value.delivery == "unknown"
        with pytest.raises(ValueError):
            await line.call_tool("echo", timeout=-1.0)


async def test_progress_is_heard_before_the_answer(badserver: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    slowly: list[float] = []

    async def slow(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        slowly.append(progress)

    async with Line.stdio(badserver) as line:
        call = line.call_tool("progress", {"times": 5, "ms": 1}, on_progress=lambda *said: heard.append(said))
        await call
        assert len(heard) == 5
        await line.call_tool("progress", {"times": 3, "ms": 1}, on_progress=slow)
        assert len(slowly) == 3


async def test_a_progress_callback_that_fails_does_not_fail_the_call(badserver: str) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    def fails(progress: float, total: float | None, message: str | None) -> None:
        raise RuntimeError("mine")

    async def fails_later(progress: float, total: float | None, message: str | None) -> None:
        raise RuntimeError("mine too")

    async with Line.stdio(badserver) as line:
        assert await line.call_tool("progress", {"times": 2, "ms": 1}, on_progress=fails)
        assert await line.call_tool("progress", {"times": 3, "ms": 1}, on_progress=fails_later)
    assert len(complaints) == 5


async def test_an_argument_with_a_nul_is_refused_and_one_with_a_backslash_is_not() -> None:
    with pytest.raises(linetender.ConfigError):
        linetender.Server.stdio("program", ["a\0b"])
    linetender.Server.stdio("program", [r"a\0b"])


async def test_looking_for_a_line_of_a_rig_again_and_again_keeps_nothing(badserver: str) -> None:
    def kilobytes() -> int:
        with open("/proc/self/statm", encoding="ascii") as memory:
            return int(memory.read().split()[1]) * 4

    async with linetender.Rig() as rig:
        rig.set([linetender.Server.stdio(badserver, name="one")])
        for _ in range(10_000):
            rig.line("one")
        before = kilobytes()
        for _ in range(100_000):
            rig.line("one")
        assert kilobytes() - before < 8_000


async def test_events_tell_what_happens(badserver: str) -> None:
    async with Line.stdio(badserver, lazy=True) as line:
        assert line.state == "idle"
        events = line.events()
        await line.ready()
        states = []
        async for event in events:
            if isinstance(event, StateChanged):
                states.append(event.status.state)
                if event.status.state == "up":
                    break
        assert states == ["dialing", "up"]
        os.kill(await pid_of(line), signal.SIGKILL)
        causes = []
        async for event in events:
            if isinstance(event, StateChanged):
                causes.append(event.status.cause)
                if (event.status.state, event.status.generation) == ("up", 2):
                    break
        assert any(causes), "nothing says why"
    # They end with the line.
    assert [event.status.state async for event in events if isinstance(event, StateChanged)][-1] == "closed"


async def test_waiting_for_an_event_can_be_given_up_without_losing_it(badserver: str) -> None:
    async with Line.stdio(badserver, lazy=True) as line:
        events = line.events()
        for _ in range(20):
            waits = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        await line.ready()
        first = await anext(events)
        assert isinstance(first, StateChanged) and first.status.state == "dialing"


async def test_a_changed_list_is_told(badserver: str, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.write_text("one")
    async with Line.stdio(badserver, ["--changing", str(extra)]) as line:
        assert "one" in [tool["name"] for tool in await line.list_tools()]
        events = line.events()
        extra.write_text("two")
        await line.redial()
        async for event in events:
            if isinstance(event, ListChanged):
                assert event == ListChanged("tools", added=("two",), removed=("one",), changed=())
                break
        assert "two" in [tool["name"] for tool in await line.list_tools()]


async def test_redial_replaces_the_server(badserver: str) -> None:
    async with Line(linetender.Server.stdio(badserver).with_settings(state="none")) as line:
        before = await pid_of(line)
        assert await line.redial() == 2
        assert await pid_of(line) != before


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with Line.stdio(tmp_path / "nowhere", name="ghost") as line:
        with pytest.raises(linetender.LineDown) as told:
            await line.call_tool("echo")
        assert told.value.server == "ghost"
        assert told.value.not_executed
        assert "nowhere" in told.value.cause
        again = pickle.loads(pickle.dumps(told.value))
        assert type(again) is linetender.LineDown
        assert (again.cause, again.next_try, str(again)) == (told.value.cause, told.value.next_try, str(told.value))


async def test_a_closed_line_refuses(badserver: str) -> None:
    line = Line.stdio(badserver)
    await line.close()
    await line.close()
    with pytest.raises(linetender.LineDown) as told:
        await line.call_tool("echo")
    assert told.value.next_try == "never"


async def test_arguments_that_are_no_json_are_refused(badserver: str) -> None:
    async with Line.stdio(badserver) as line:
        with pytest.raises(ValueError):
            await line.call_tool("echo", {"n": float("nan")})
        with pytest.raises(TypeError):
            await line.call_tool("echo", {"n": object()})
        deep: Any = {}
        for _ in range(500):
            deep = {"deeper": deep}
        with pytest.raises(linetender.CallRefused) as told:
            await line.call_tool("echo", deep)
        assert told.value.not_executed


async def test_over_http(webserver: Any) -> None:
    process, url = webserver("--wants-key", "Bearer sesame")
    async with Line.http(url, headers={"Authorization": "Bearer sesame"}, name="web") as line:
        assert json.loads((await line.call_tool("echo", {"a": 1})).text)["a"] == 1
        port = int(url.split(":")[2].split("/")[0])
        process.kill()
        process.wait()
        webserver("--wants-key", "Bearer sesame", port=port)
        assert (await line.call_tool("echo", {"a": 2})).text
    async with Line.http(url) as line:
        with pytest.raises(linetender.NeedsAuth) as told:
            await line.call_tool("echo")
        assert told.value.not_executed


async def test_from_an_agents_config(badserver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADSERVER", badserver)
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"bad": {"command": "${BADSERVER}", "args": ["--noise"]}}} // of an agent')
    async with Line.from_config(path, "bad") as line:
        assert line.name == "bad"
        assert await line.call_tool("echo")
    with pytest.raises(KeyError, match="it has: bad"):
        Line.from_config(path, "good")
    path.write_text('{"mcpServers": {"bad": {}}}')
    with pytest.raises(linetender.ConfigError, match="needs a command or a url"):
        Line.from_config(path, "bad")
    with pytest.raises(FileNotFoundError):
        Line.from_config(tmp_path / "nowhere.json", "bad")


async def test_credentials_of_a_config_file(webserver: Any, tmp_path: Path) -> None:
    _, url = webserver("--wants-key", "Bearer sesame")
    secret = tmp_path / "token"
    secret.write_text("sesame\n")
    secret.chmod(0o600)
    path = tmp_path / "linetender.toml"
    path.write_text(
        f"[servers.file]\nurl = '{url}'\nheaders = {{ Authorization = 'Bearer ${{file:{secret}}}' }}\n"
        f"[servers.command]\nurl = '{url}'\nauth = {{ command = ['echo', 'sesame'] }}\n"
    )
    for name in ("file", "command"):
        async with Line.from_config(path, name) as line:
            assert await line.call_tool("echo"), name


async def test_a_rig(badserver: str, tmp_path: Path) -> None:
    async with linetender.Rig() as rig:
        servers = [Server.stdio(badserver, name=name) for name in ("a", "b", "c")]
        assert rig.set(servers).added == ("a", "b", "c")
        assert [line.name for line in rig.lines()] == ["a", "b", "c"]
        assert await rig["b"].call_tool("echo")
        pid = await pid_of(rig["b"])
        change = rig.set(servers[1:])
        assert (change.removed, change.kept) == (("a",), ("b", "c"))
        assert await pid_of(rig["b"]) == pid
        assert rig.line("a") is None
        lone = rig.open(Server.stdio(badserver))
        assert await lone.call_tool("echo")
        await lone.close()
    path = tmp_path / "linetender.toml"
    path.write_text(f"[servers.one]\ncommand = '{badserver}'\n[servers.two]\ncommand = '{badserver}'\n")
    async with linetender.Rig.from_config(path) as rig:
        assert [line.name for line in rig.lines()] == ["one", "two"]
