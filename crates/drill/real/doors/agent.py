"""One agent on the official Python SDK, of either major version, at a gateway that wants it to sign in.

    agent.py legacy|modern URL

Speaks JSON, a line each. It prints {"visit": ADDRESS} when somebody has to sign in there, reads the address that the browser is sent
back to, and prints {"tools": [...]} when it is in, or {"failed": WHY}. Then each line that it reads is a call: {"tool": NAME,
"arguments": {...}}; it prints {"text": ...}, or {"failed": WHY}. {"tool": null} lists the tools again.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlparse

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

BACK = "http://127.0.0.1:8976/callback"


def say(**message) -> None:
    print(json.dumps(message), flush=True)


async def hear() -> str:
    return await asyncio.to_thread(sys.stdin.readline)


class Memory:
    """What an agent keeps on disk."""

    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def visit(address: str) -> None:
    say(visit=address)


async def came_back():
    query = parse_qs(urlparse((await hear()).strip()).query)
    code, state, iss = (query.get(name, [None])[0] for name in ("code", "state", "iss"))
    try:
        from mcp.client.auth import AuthorizationCodeResult
    except ImportError:  # 1.x
        return code, state
    return AuthorizationCodeResult(code=code, state=state, iss=iss)


@asynccontextmanager
async def connected(era: str, url: str):
    about = OAuthClientMetadata(client_name="try-doors", redirect_uris=[BACK], grant_types=["authorization_code", "refresh_token"],
                                token_endpoint_auth_method="none")
    auth = OAuthClientProvider(url, about, Memory(), visit, came_back)
    try:
        from mcp import Client
    except ImportError:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        assert era == "legacy"
        async with streamablehttp_client(url, auth=auth) as (read, write, _), ClientSession(read, write) as agent:
            await agent.initialize()
            yield agent
        return
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with create_mcp_http_client(auth=auth) as web:
        async with Client(streamable_http_client(url, http_client=web), mode="legacy" if era == "legacy" else "auto") as agent:
            assert (agent.protocol_version < "2026") == (era == "legacy"), agent.protocol_version
            yield agent


def innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main(era: str, url: str) -> None:
    try:
        async with connected(era, url) as agent:
            say(tools=[one.name for one in (await agent.list_tools()).tools])
            while line := await hear():
                call = json.loads(line)
                try:
                    if call["tool"] is None:
                        say(tools=[one.name for one in (await agent.list_tools()).tools])
                    else:
                        result = await agent.call_tool(call["tool"], call.get("arguments", {}))
                        say(text=result.content[0].text)
                except Exception as error:
                    say(failed=innermost(error))
    except BaseException as error:
        say(failed=innermost(error))


asyncio.run(main(*sys.argv[1:]))
