"""How each agent is started: its words, its own variables, and the files that it wants to find at home."""

import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PROMPT = "Use the tools."


@dataclass
class Place:
    """A home of its own for one run of an agent, and what is noted there."""

    home: Path
    agents: Path

    def make(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        for note in (self.book, self.starts, self.log):
            note.unlink(missing_ok=True)

    @property
    def book(self) -> Path:
        return self.home / "book"

    @property
    def starts(self) -> Path:
        return self.home / "starts"

    @property
    def log(self) -> Path:
        return self.home / "log"

    def lines(self, note: Path) -> list[str]:
        return note.read_text().splitlines() if note.exists() else []

    def write(self, name: str, text: str) -> str:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def node(self) -> str:
        return str(next(self.agents.glob("node/node_modules/node-linux-*/bin/node")))


def python(venv: str, script: str):
    """An agent that is a few lines on a Python framework."""

    def start(place: Place, url: str, server: list[str]):
        return [str(place.agents / venv / "bin/python"), str(HERE / script), url, *server], {}

    return start


def ai_sdk(place: Place, url: str, server: list[str]):
    # It finds its packages beside itself.
    script = place.agents / "ai-sdk/ai_sdk.mjs"
    script.write_text((HERE / "ai_sdk.mjs").read_text())
    return [place.node(), str(script), url, *server], {}


def codex(place: Place, url: str, server: list[str]):
    provider = f'name = "scripted"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    tools = f"command = {json.dumps(server[0])}\nargs = {json.dumps(server[1:])}\n"
    config = f'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\n{provider}[mcp_servers.bad]\n{tools}'
    place.write("codex/config.toml", config)
    words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT]
    start = [place.node(), str(place.agents / "codex/node_modules/@openai/codex/bin/codex.js")]
    return [*start, *words], {"CODEX_HOME": str(place.home / "codex")}


def claude_code(place: Place, url: str, server: list[str]):
    servers = {"mcpServers": {"bad": {"command": server[0], "args": server[1:]}}}
    config = place.write("mcp.json", json.dumps(servers))
    allowed = "mcp__bad__kill,mcp__bad__echo"
    words = ["-p", PROMPT, "--mcp-config", config, "--strict-mcp-config", "--allowedTools", allowed]
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",  # else a model has to look its tools up first
    }
    return [str(place.agents / "claude-code/node_modules/.bin/claude"), *words], env


def gemini_cli(place: Place, url: str, server: list[str]):
    servers = {"bad": {"command": server[0], "args": server[1:], "trust": True}}
    auth = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings = {"mcpServers": servers, "security": auth, "privacy": {"usageStatisticsEnabled": False}}
    settings["general"] = {"disableAutoUpdate": True}
    place.write(".gemini/settings.json", json.dumps(settings))
    start = [place.node(), str(place.agents / "gemini-cli/node_modules/.bin/gemini")]
    env = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    return [*start, "--yolo", "--model", "gemini-2.5-flash", "--prompt", PROMPT], env


KINDS = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini_cli,
    "openai-agents": python("openai-agents", "openai_agents.py"),
    "langchain": python("langchain", "langchain_agent.py"),
    "pydantic-ai": python("pydantic-ai", "pydantic_ai_agent.py"),
    "google-adk": python("google-adk", "google_adk_agent.py"),
    "autogen": python("autogen", "autogen_agent.py"),
    "llama-index": python("llama-index", "llama_index_agent.py"),
    "smolagents": python("smolagents", "smolagents_agent.py"),
    "ai-sdk": ai_sdk,
}
