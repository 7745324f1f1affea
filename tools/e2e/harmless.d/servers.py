"""The servers: how each is installed (by name) and started, and the script of calls that is made on it."""

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Step:
    """A request of the agent. `setup`: what an agent does again when it is told that the server's memory is gone."""

    tool: str
    words: dict = field(default_factory=dict)
    setup: bool = False
    method: str = "tools/call"
    together: bool = False  # sent at once with the next one
    pause: float = 0.0  # seconds before it
    unanswered: bool = False  # in flight when the agent ends


@dataclass
class Server:
    name: str
    command: list  # as a user writes it in a configuration
    argv: list  # what is started
    script: list
    install: tuple = ()  # ("npm" or "pip", package, …)
    needs: tuple = ()  # programs
    env: dict = field(default_factory=dict)
    prepare: object = None
    mask: str = ""  # what differs between two direct runs
    about: str = ""
    stateful: bool = False  # keeps something that its user needs in the memory of its process
    flags: list = field(default_factory=list)
    small: bool = False
    starter: bool = False  # what is started only starts the server: both are killed
    fixture: bool = False
    process_per_agent: bool = False  # at a gateway, as linetender knows it
    asks_agent: bool = False  # for its roots, which a shared server cannot: the window then runs it for itself
    kill_before: int = -1  # the first step that is not setup
    after_kill: float = 0.3  # seconds until the next call
    linger: float = 0.0  # seconds that the agent stays after its last call
    ladder: str = "sdk"
    only_ways: tuple = ()
    kills: tuple = (False, True)
    agents: int = 1  # how many come one after the other, in one home
    refuses: bool = False  # it never comes up
    patience: float = 25.0
    user_process: object = None  # (folder) -> ids of processes that are the user's

    def kill_at(self):
        if self.kill_before >= 0:
            return self.kill_before
        return next(number for number, step in enumerate(self.script) if not step.setup)


def setup(tool, **words):
    return Step(tool, words, setup=True)


def call(tool, **words):
    return Step(tool, words)


def read(uri):
    return Step("", {"uri": uri}, method="resources/read")


def files(folder):
    os.makedirs(f"{folder}/sub")
    for name, text in (("a.txt", "hello\nworld\n"), ("ü.txt", "grün 日本語\n"), ("sub/b.json", '{"x": 1}\n')):
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)


def repository(folder):
    os.mkdir(f"{folder}/repo")
    day = "2024-01-01T00:00:00Z"
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.invalid",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.invalid",
    }
    env = {**os.environ, **who, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    git = lambda *words: subprocess.run(["git", *words], cwd=f"{folder}/repo", env=env, check=True, stdout=subprocess.DEVNULL)
    git("init", "-q", "-b", "main")
    with open(f"{folder}/repo/f.txt", "w") as file:
        file.write("one\n")
    git("add", ".")
    git("commit", "-qm", "first")
    with open(f"{folder}/repo/f.txt", "w") as file:
        file.write("two\n")


def cluster(folder):
    """A cluster that nobody can reach: what the server says about it needs none."""
    with open(f"{folder}/kubeconfig", "w") as file:
        file.write(
            'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n'
            "users: [{name: u, user: {token: t}}]\ncurrent-context: x\n"
        )


def tmux_server(folder):
    shown = subprocess.run(
        ["tmux", "display", "-p", "#{pid}"], env={**os.environ, "TMUX_TMPDIR": folder}, capture_output=True, text=True
    )
    return [int(shown.stdout)] if shown.returncode == 0 else []


def fixtures():
    def fixture(name, kind, script, option="", **more):
        argv = [sys.executable, "-IS", os.path.join(HERE, "fixtures.py"), kind, "{case}/journal", option]
        return Server(name, ["fixture-server", name], argv, script, fixture=True, small=True, **more)

    append = [Step("append", {"key": key}, together=True) for key in "bcde"]
    append[-1].together = False
    yield fixture(
        "database",
        "database",
        [
            setup("use", db="test"),
            call("insert", key="1"),
            call("which"),
            call("drop_all", key="2"),
            call("which"),
            call("insert", key="3"),
        ],
        about="a selected database, in memory",
        stateful=False,
        kill_before=2,
    )
    yield fixture(
        "database, dropped at once",
        "database",
        [setup("use", db="test"), call("drop_all", key="1"), call("insert", key="2")],
        about="`use(test)`, killed, `drop_all` at once",
        after_kill=0,
    )
    yield fixture("counter", "daemons", [setup("count"), call("count")], about="counts its calls, in memory")
    yield fixture(
        "daemons",
        "daemons",
        # What a server started in its last milliseconds is not known to be the user's.
        [call("dev_server"), call("tmux"), Step("", method="ping", pause=0.2), call("count")],
        about="leaves a dev server and a tmux server to its user",
        needs=("tmux",),
        kill_before=3,
    )
    for ladder, name, seconds in (
        ("sdk", "at EOF, 1.5 s", "1.5"),
        ("sdk", "at EOF, 3.5 s", "3.5"),
        ("claude", "Claude Code, 0.3 s", "0.3"),
    ):
        yield fixture(
            f"saves {name}",
            "saver",
            [call("remember", key="1"), call("remember", key="2")],
            seconds,
            about=f"saves at its end, ladder `{ladder}`",
            ladder=ladder,
            kill_before=1,
            kills=(False, True) if seconds == "1.5" else (False,),
        )
    held = [call("remember", key="1"), Step("slow", unanswered=True)]
    for ladder, name, seconds in (
        ("sdk", "with a call in flight, at EOF, 1.5 s", "1.5"),
        ("claude", "with a call in flight, Claude Code, 0.3 s", "0.3"),
    ):
        yield fixture(
            f"saves {name}", "saver", held, seconds, about=f"saves at its end, ladder `{ladder}`", ladder=ladder, kills=(False,)
        )
    wrapped = fixture(
        "saves behind a wrapper, Claude Code, 0.8 s",
        "saver",
        held[:1],
        "0.8",
        about="its starter (npx, a shell) is killed; itself sees the end of its input",
        ladder="claude",
        kills=(False,),
    )
    wrapped.argv = ["sh", "-c", " ".join(shlex.quote(word) if "{" not in word else f'"{word}"' for word in wrapped.argv) + "; true"]
    yield wrapped
    yield fixture(
        "once",
        "once",
        [call("convert", key=str(key)) for key in range(3)],
        about="ends with 0 after each call",
        kills=(False,),
        linger=2.0,
    )
    yield fixture("idle", "idler", [call("echo", key="1")], about="ends with 0 when idle for 1 s", kills=(False,), linger=4.0)
    yield fixture(
        "login",
        "login",
        [call("whoami"), call("send", key="1"), call("send", key="2")],
        "right",
        about="logs in at start",
        kill_before=2,
    )
    yield fixture(
        "login refused",
        "login",
        [],
        "wrong",
        about="logs in at start with a wrong password",
        kills=(False,),
        refuses=True,
        linger=5.0,
    )
    yield fixture(
        "migration", "migration", [], "3", about="migrates at start; agents only list and leave", kills=(False,), agents=2
    )
    yield fixture(
        "child at work", "worker", [call("apply"), Step("locked", pause=2.5)], about="its child works under a lock", kill_before=1
    )
    yield fixture(
        "order", "order", [call("append", key="a"), *append], about="four calls sent at once", kill_before=1, after_kill=0
    )
    busy = fixture(
        "busy",
        "busy",
        [Step("train", {"seconds": 12})],
        about="12 s of computing, a waiting caller",
        kills=(False,),
        only_ways=("direct", "run"),
        flags=["--quiet-limit", "1s", "--hang-after", "30s"],
        patience=60,
    )
    busy.small = False
    yield busy


def real(rmcp):
    def npm(name, package, entry, script, args=(), **more):
        home = name.partition(",")[0]
        argv = ["node", f"{{cache}}/npm/{home}/node_modules/{package}/{entry}", *args]
        return Server(
            name,
            ["npx", "-y", package, *args],
            argv,
            script,
            install=("npm", package),
            needs=("node", "npm", *more.pop("needs", ())),
            **more,
        )

    def pip(name, package, program, script, args=(), more_packages=(), **more):
        home = name.partition(",")[0]
        return Server(
            name,
            ["uvx", package, *args],
            [f"{{cache}}/pip/{home}/bin/{program}", *args],
            script,
            install=("pip", package, *more_packages),
            **more,
        )

    sql = lambda: [
        call("execute_query", sql="create table t(a int)"),
        call("execute_query", sql="insert into t values (1)"),
        call("execute_query", sql="select * from t"),
    ]
    thought = lambda number: dict(thought=f"t{number}", nextThoughtNeeded=True, thoughtNumber=number, totalThoughts=9)
    entity = [{"name": "A", "entityType": "t", "observations": ["o"]}]
    page = "data:text/html,<title>Kept</title>"
    chromium = shutil.which("chromium") or "chromium"

    yield npm(
        "filesystem",
        "@modelcontextprotocol/server-filesystem",
        "dist/index.js",
        [
            call("read_text_file", path="{state}/a.txt"),
            call("write_file", path="{state}/n.txt", content="x"),
            call("list_directory", path="{state}"),
            call("read_text_file", path="{state}/n.txt"),
            call("read_text_file", path="/etc/hostname"),
        ],
        ["{state}"],
        prepare=files,
        about="TypeScript SDK",
        small=True,
        kill_before=2,
    )
    yield npm(
        "memory",
        "@modelcontextprotocol/server-memory",
        "dist/index.js",
        [
            call("create_entities", entities=entity),
            call("read_graph"),
            call("search_nodes", query="A"),
            call("add_observations", observations=[{"entityName": "A", "contents": ["p"]}]),
            call("read_graph"),
        ],
        env={"MEMORY_FILE_PATH": "{state}/memory.json"},
        about="TypeScript SDK",
        kill_before=1,
    )
    yield npm(
        "everything",
        "@modelcontextprotocol/server-everything",
        "dist/index.js",
        [
            call("echo", message="hi"),
            call("get-sum", a=2, b=3),
            call("get-structured-content", location="Chicago"),
            setup("toggle-simulated-logging"),
            call("toggle-simulated-logging"),
        ],
        ["stdio"],
        mask=r"session (undefined|[0-9a-f-]{36})",
        about="TypeScript SDK",
        stateful=True,
        kill_before=4,
    )
    yield npm(
        "sequential-thinking",
        "@modelcontextprotocol/server-sequential-thinking",
        "dist/index.js",
        [
            setup("sequentialthinking", **thought(1)),
            setup("sequentialthinking", **thought(2)),
            call("sequentialthinking", **thought(3)),
            call("sequentialthinking", **thought(4)),
        ],
        about="TypeScript SDK",
        stateful=True,
        process_per_agent=True,
        small=True,
    )
    yield npm(
        "sequential-thinking, two agents",
        "@modelcontextprotocol/server-sequential-thinking",
        "dist/index.js",
        [call("sequentialthinking", **thought(1)), call("sequentialthinking", **thought(2))],
        about="one after the other: whose thoughts are counted?",
        stateful=True,
        process_per_agent=True,
        kills=(False,),
        agents=2,
    )
    yield npm(
        "playwright",
        "@playwright/mcp",
        "cli.js",
        [
            setup("browser_navigate", url=page),
            call("browser_evaluate", function="() => document.title"),
            call("browser_evaluate", function="() => 6 * 7"),
        ],
        ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium],
        mask=r"page-[0-9TZ-]+\.yml",
        needs=("chromium",),
        about="SDK bundled, a browser",
        stateful=True,
        process_per_agent=True,
        patience=60,
    )
    yield npm(
        "chrome-devtools",
        "chrome-devtools-mcp",
        "build/src/bin/chrome-devtools-mcp.js",
        [setup("new_page", url=page), call("evaluate_script", pageId=2, function="() => document.title"), call("list_pages")],
        ["--headless", "--isolated", "--executablePath", chromium, "--chromeArg=--no-sandbox"],
        needs=("chromium",),
        about="SDK bundled, a browser",
        stateful=True,
        process_per_agent=True,
        patience=60,
    )
    yield npm(
        "desktop-commander",
        "@wonderwhy-er/desktop-commander",
        "dist/index.js",
        [
            call("write_file", path="{state}/n.txt", content="x"),
            call("read_file", path="{state}/n.txt"),
            setup("start_process", command="cat", timeout_ms=300),
            call("list_sessions"),
        ],
        mask=r"PID:? \d+|Runtime: \d+s|\(shell: [^)]*\)",
        about="TypeScript SDK, terminals",
        stateful=True,
        process_per_agent=True,
        patience=60,
    )
    yield npm(
        "git-cyanheads",
        "@cyanheads/git-mcp-server",
        "dist/index.js",
        [setup("git_set_working_dir", path="{state}/repo"), call("git_status"), call("git_log")],
        env={"GIT_USERNAME": "a", "GIT_EMAIL": "a@b.invalid"},
        prepare=repository,
        about="SDK bundled, a working folder",
        stateful=True,
        process_per_agent=True,
        patience=60,
    )
    yield npm(
        "commands",
        "@agent-infra/mcp-server-commands",
        "dist/index.cjs",
        [
            call("run_command", command="echo hi"),
            call("run_command", command="echo $((6*7))"),
            call("run_command", command="ls /nowhere"),
        ],
        about="TypeScript SDK, a shell",
        small=False,
    )
    yield npm(
        "code-runner",
        "mcp-server-code-runner",
        "dist/cli.js",
        [Step("run-code", {"code": f"print({number}*7)", "languageId": "python"}) for number in (5, 6, 7)],
        about="TypeScript SDK",
    )
    yield npm(
        "shrimp",
        "mcp-shrimp-task-manager",
        "dist/index.js",
        [call("list_tasks", status="all"), call("list_tasks", status="pending"), call("list_tasks", status="all")],
        env={"DATA_DIR": "{state}/shrimp", "ENABLE_GUI": "false"},
        about="TypeScript SDK, asks for roots",
        asks_agent=True,
    )
    sheet = lambda number: dict(
        fileAbsolutePath="{state}/w.xlsx",
        sheetName="Sheet",
        newSheet=False,
        range=f"A{number}:B{number}",
        values=[["a", str(number)]],
    )
    yield npm(
        "excel-go",
        "@negokaz/excel-mcp-server",
        "dist/launcher.js",
        [
            call("excel_write_to_sheet", **sheet(1)),
            call("excel_describe_sheets", fileAbsolutePath="{state}/w.xlsx"),
            call("excel_describe_sheets", fileAbsolutePath="/nowhere.xlsx"),
        ],
        about="Go, mcp-go; npm's program starts another",
        starter=True,
    )
    yield npm(
        "toolbox",
        "@toolbox-sdk/server",
        "bin/run.js",
        [
            call("execute_sql", sql="create table t(a)"),
            call("execute_sql", sql="insert into t values (1)"),
            call("execute_sql", sql="select * from t"),
            call("list_tables"),
        ],
        ["--stdio", "--prebuilt", "sqlite"],
        env={"SQLITE_DATABASE": "{state}/t.db"},
        about="Go, SDK of its own",
        starter=True,
        kill_before=2,
    )
    yield npm(
        "kubernetes",
        "kubernetes-mcp-server",
        "bin/index.js",
        [call("configuration_view"), call("namespaces_list"), call("configuration_view")],
        ["--kubeconfig", "{state}/kubeconfig"],
        prepare=cluster,
        about="Go, the official SDK",
        starter=True,
    )
    repo = {"repo_path": "{state}/repo"}
    yield pip(
        "git",
        "mcp-server-git",
        "mcp-server-git",
        [
            call("git_status", **repo),
            call("git_diff_unstaged", **repo),
            call("git_add", files=["f.txt"], **repo),
            call("git_status", **repo),
            call("git_log", **repo),
        ],
        ["--repository", "{state}/repo"],
        prepare=repository,
        about="Python SDK 2",
        small=True,
        kill_before=3,
    )
    yield pip(
        "time",
        "mcp-server-time",
        "mcp-server-time",
        [
            Step("convert_time", {"source_timezone": "UTC", "time": at, "target_timezone": "Asia/Tokyo"})
            for at in ("12:00", "13:30", "23:59")
        ],
        ["--local-timezone", "UTC"],
        mask=r"\d{4}-\d\d-\d\d(T[0-9:+]+)?|\"day_of_week\": \"\w+\"|\w+day",
        about="Python SDK 2",
    )
    yield pip(
        "fetch",
        "mcp-server-fetch",
        "mcp-server-fetch",
        [
            call("fetch", url="http://{web}/one"),
            call("fetch", url="http://{web}/two"),
            call("fetch", url="http://{web}/one", raw=True),
        ],
        about="Python SDK 2",
    )
    yield pip(
        "sqlite",
        "mcp-server-sqlite",
        "mcp-server-sqlite",
        [
            call("create_table", query="create table t(a int)"),
            call("write_query", query="insert into t values (1)"),
            call("read_query", query="select * from t"),
            call("list_tables"),
        ],
        ["--db-path", "{state}/s.db"],
        ("mcp<2",),
        about="Python SDK 1",
        kill_before=2,
        process_per_agent=True,
    )
    yield pip(
        "sqlite, insights",
        "mcp-server-sqlite",
        "mcp-server-sqlite",
        [setup("append_insight", insight="sales fell"), read("memo://insights"), call("list_tables")],
        ["--db-path", "{state}/s.db"],
        ("mcp<2",),
        about="Python SDK 1",
        stateful=True,
        process_per_agent=True,
    )
    yield pip(
        "calculator",
        "mcp-server-calculator",
        "mcp-server-calculator",
        [call("calculate", expression="2**70"), call("calculate", expression="6*7"), call("calculate", expression="1/0")],
        about="Python SDK 1",
    )
    yield pip(
        "shell",
        "mcp-shell-server",
        "mcp-shell-server",
        [
            Step("shell_execute", {"command": words, "directory": "{state}"})
            for words in (["echo", "hi"], ["cat", "a.txt"], ["rm", "a.txt"])
        ],
        env={"ALLOW_COMMANDS": "ls,cat,echo"},
        prepare=files,
        about="Python SDK 1",
    )
    yield pip(
        "tmux",
        "libtmux-mcp",
        "libtmux-mcp",
        [call("create_session", session_name="work"), call("list_sessions"), call("list_windows", session_name="work")],
        env={"TMUX_TMPDIR": "{state}"},
        needs=("tmux",),
        mask=r'created\W+\d{10}|window_activity\W+\d{10}|"?pane_pid\W+\d+|socket_path\W+[^"]*',
        about="FastMCP",
        user_process=tmux_server,
        kill_before=1,
        process_per_agent=True,
    )
    yield pip(
        "alchemy",
        "mcp-alchemy",
        "mcp-alchemy",
        [
            call("execute_query", query="create table t(a int)"),
            call("execute_query", query="insert into t values (1)"),
            call("execute_query", query="select * from t"),
            call("all_table_names"),
        ],
        env={"DB_URL": "sqlite:///{state}/al.db"},
        about="Python SDK 2",
        kill_before=2,
    )
    yield pip(
        "duckdb",
        "mcp-server-motherduck",
        "mcp-server-motherduck",
        [Step(step.tool, step.words, setup=number < 2) for number, step in enumerate(sql())],
        ["--db-path", ":memory:", "--read-write"],
        about="FastMCP, a database in memory",
        stateful=True,
    )
    yield pip(
        "word",
        "office-word-mcp-server",
        "word_mcp_server",
        [
            call("create_document", filename="{state}/d.docx", title="T"),
            call("add_paragraph", filename="{state}/d.docx", text="p"),
            call("get_document_text", filename="{state}/d.docx"),
        ],
        about="FastMCP",
        kill_before=1,
    )
    yield pip(
        "excel",
        "excel-mcp-server",
        "excel-mcp-server",
        [
            call("create_workbook", path="{state}/w.xlsx"),
            call("describe_workbook", path="{state}/w.xlsx"),
            call("describe_workbook", path="/nowhere.xlsx"),
        ],
        ["stdio"],
        mask=r'"?(modified|created)\W+[0-9T:.+Z-]+',
        about="Python SDK 2",
    )
    yield Server(
        "rmcp",
        ["conformance_server"],
        [rmcp or "conformance_server"],
        [call("test_simple_text"), call("test_error_handling"), call("test_simple_text")],
        needs=(rmcp or "conformance_server",),
        about="Rust SDK (rmcp)",
        small=bool(rmcp),
    )
    yield Server(
        "fastmcp",
        ["python", "server.py"],
        ["{cache}/pip/fastmcp/bin/python", os.path.join(HERE, "fast.py")],
        [call("add", a=1, b=2), setup("remember", word="a"), call("recall"), call("add", a=2, b=2)],
        install=("pip", "fastmcp"),
        about="FastMCP, a variable in memory",
        stateful=True,
        kill_before=2,
    )


def left_out(server):
    """Why this server cannot be tried here, or nothing."""
    missing = [program for program in server.needs if not shutil.which(program)]
    return f"no {', '.join(os.path.basename(program) for program in missing)}" if missing else ""


def place(server, cache):
    """The folder into which the server is installed."""
    kind, package = server.install[0], server.install[1]
    name = next(part for part in server.argv if part.startswith("{cache}")).split("/")[2]
    return kind, package, os.path.join(cache, kind, name)


def install(server, cache):
    """Installs the server, unless it is there. Returns why it cannot be."""
    why = left_out(server)
    if why or not server.install:
        return why
    kind, package, folder = place(server, cache)
    if os.path.exists(os.path.join(folder, ".done")):
        return ""
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    if kind == "npm":
        with open(os.path.join(folder, "package.json"), "w") as file:
            # A package that desktop-commander needs asks for a version of this one that not every registry has.
            file.write('{"private": true, "overrides": {"typedarray.prototype.slice": "^1.0.0"}}\n')
        commands = [["npm", "install", "--silent", "--no-fund", "--no-audit", package]]
    else:
        commands = [
            [sys.executable, "-m", "venv", folder],
            [
                os.path.join(folder, "bin", "pip"),
                "-q",
                "--disable-pip-version-check",
                "install",
                "--pre" if package == "libtmux-mcp" else "-q",
                package,
                *server.install[2:],
            ],
        ]
    env = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1", "PUPPETEER_SKIP_DOWNLOAD": "1"}
    for command in commands:
        with open(log, "ab") as file:
            if subprocess.run(
                ["nice", "-n", "19", *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=env
            ).returncode:
                with open(log, errors="replace") as said:
                    lines = [line.strip() for line in said if line.strip()]
                return f"{kind} cannot install {package}: {lines[-1][:120] if lines else 'no reason given'}"
    open(os.path.join(folder, ".done"), "w").close()
    return ""
