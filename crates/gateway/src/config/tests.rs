use super::{Auth, Config, Grant, OAuth, Problem, Scope, Settings, load, load_again};
use linetender::{Deadline, HttpTransport, RetryOn, RetryReason, Server};

fn read(text: &str) -> Result<Config, Box<Problem>> {
    load("test", text, &|name| (name == "TOKEN").then(|| "t0ken".to_owned()))
}

fn names(config: &Config) -> Vec<&str> {
    config.servers.iter().map(|entry| entry.server.name()).collect()
}

#[test]
fn servers_come_in_the_order_they_stand() {
    let config = read(
        r#"
        [gateway]
        listen = "127.0.0.1:9000"
        [servers.zebra]
        command = "npx"
        args = ["-y", "zebra"]
        env = { KEY = "${TOKEN}" }
        scope = "session"
        tools = { exclude = ["drop_*"] }
        [servers.ape]
        url = "https://example.com/mcp"
        headers = { Authorization = "Bearer ${TOKEN}" }
        policy = { call = { limit = 1000 } }
        "#,
    )
    .unwrap();
    assert_eq!(names(&config), ["zebra", "ape"]);
    assert_eq!(config.gateway.listen.address().unwrap().port(), 9000);
    assert_eq!(config.servers[0].scope, Scope::Session);
    assert!(!config.servers[0].tools.lets("drop_all"));
    let expected =
        Server::stdio("zebra", ["npx", "-y", "zebra"]).env("KEY", "t0ken").deadline(Deadline::Policy);
    assert_eq!(config.servers[0].server, expected.into());
    let text = format!("{:?}", config.servers[1]);
    assert!(!text.contains("t0ken"), "a credential is printed nowhere: {text}");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn g16_a_program_that_is_known_to_keep_state_is_not_shared_unless_the_file_says_so() {
    let scope = |text: &str| {
        let config = load("t", &format!("[servers.a]\n{text}"), &|_| None).unwrap();
        config.servers[0].scope
    };
    let thinking = "command='npx'\nargs=['-y','@modelcontextprotocol/server-sequential-thinking']\n";
    assert_eq!(scope("command='my-server'"), Scope::Shared);
    assert_eq!(scope(thinking), Scope::Session);
    for written in ["scope='shared'", "state='process'", "state='none'", "durable=true"] {
        assert_eq!(scope(&format!("{thinking}{written}")), Scope::Shared, "{written}");
    }
    assert_eq!(
        scope("command='npx'\nargs=['-y','@modelcontextprotocol/server-filesystem','/']"),
        Scope::Shared
    );
}

#[test]
fn an_agents_own_file_is_taken_as_it_is() {
    let config = read(
        r#"// what the agent wrote
        { "theme": "dark", "mcpServers": {
            "git": { "type": "stdio", "command": "mcp-server-git", "cwd": "/tmp", "alwaysAllow": ["log"], },
            "web": { "serverUrl": "http://127.0.0.1:1/mcp" },
            "off": { "command": "x", "disabled": true }
        } }"#,
    )
    .unwrap();
    assert_eq!(names(&config), ["git", "web"]);
    let git = Server::stdio("git", ["mcp-server-git"]).dir("/tmp").deadline(Deadline::Policy);
    assert_eq!(config.servers[0].server, git.into());
    assert!(config.warnings.is_empty(), "what is for somebody else is none of our business");
}

#[test]
fn the_transport_of_a_url_is_found_out_unless_it_is_said() {
    let of = |text: &str| read(text).map(|config| config.servers[0].server.clone());
    let at = || Server::http("a", "http://127.0.0.1:1/x").deadline(Deadline::Policy);
    for (said, transport) in [
        ("", HttpTransport::Auto),
        ("transport = 'auto'", HttpTransport::Auto),
        ("transport = 'http'", HttpTransport::Streamable),
        ("transport = 'sse'", HttpTransport::Sse),
    ] {
        let own = of(&format!("[servers.a]\nurl = 'http://127.0.0.1:1/x'\n{said}"));
        assert_eq!(own.unwrap(), at().transport(transport).into(), "{said}");
    }
    for (said, transport) in [
        (r#""type": "sse""#, HttpTransport::Sse),
        (r#""transport": "sse""#, HttpTransport::Sse),
        (r#""type": "sse", "transport": "sse""#, HttpTransport::Sse),
        (r#""type": "http""#, HttpTransport::Auto),
        (r#""type": "streamable-http", "transport": 7"#, HttpTransport::Auto),
    ] {
        let agents = format!(r#"{{ "mcpServers": {{ "a": {{ {said}, "url": "http://127.0.0.1:1/x" }} }} }}"#);
        assert_eq!(of(&agents).unwrap(), at().transport(transport).into(), "{said}");
    }
    for (wrong, what) in [
        ("[servers.a]\nurl = 'http://h/'\ntransport = 'ssh'", "unknown variant"),
        ("[servers.a]\ncommand = 'x'\ntransport = 'sse'", "transport is for servers with a url"),
        ("[servers.a]\nurl = 'http://h/'\ntransport = 'sse'\nera = 'modern'", "is older than"),
    ] {
        let problem = read(wrong).unwrap_err();
        assert!(problem.to_string().contains(what), "{problem}");
    }
}

#[test]
fn a_list_of_tools_in_an_agents_file_means_these_alone() {
    let config = read(
        r#"{ "mcpServers": {
            "all": { "type": "local", "command": "x", "args": [], "tools": ["*"] },
            "some": { "command": "x", "tools": ["get_me", "get_you"] },
            "none": { "command": "x", "tools": [] },
            "ours": { "command": "x", "tools": { "exclude": ["get_me"] } }
        } }"#,
    )
    .unwrap();
    let lets: Vec<_> = config
        .servers
        .iter()
        .map(|entry| ["get_me", "get_you", "put"].map(|name| entry.tools.lets(name)))
        .collect();
    assert_eq!(lets, [[true; 3], [true, true, false], [false; 3], [false, true, true]]);
    assert!(config.servers[0].is_open(), "nothing of it has to be looked at");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let problem =
        read("{ \"mcpServers\": { \"a\": { \"command\": \"x\",\n\"tools\": [\"b\", 7] } } }").unwrap_err();
    assert_eq!((problem.line(), problem.column()), (2, 16), "{problem}");
}

#[test]
fn a_filter_that_cannot_be_understood_is_refused_in_whosever_file() {
    for (marked, said) in [
        (r#""tools": { ¦"exlude": ["kill"] }"#, "unknown key `exlude`"),
        (r#""tools": { ¦"kill": false }"#, "unknown key `kill`"),
        (r#"¦"tool": ["echo"]"#, "unknown key `tool`"),
        (r#""access": { "*": { ¦"tool": {} } }"#, "unknown key `tool`"),
        (r#""tools": ¦"echo""#, "invalid type"),
        (r#""tools": ¦null"#, "invalid type"),
        (r#""tools": { "exclude": ¦"kill" }"#, "invalid type"),
        (r#""tools": { "exclude": [¦7] }"#, "invalid type"),
        (r#""tools": { "include": ¦[] }"#, "include is empty"),
        (r#""tools": ["a"], ¦"tools": ["b"]"#, "`tools` is given twice"),
        (r#""tools": { "exclude": ["a"], ¦"exclude": [] }"#, "given twice"),
        (r#""tools": { "rename": { "a": "b", ¦"a": "c" } }"#, "given twice"),
        (r#""tools": { "exclude": [¦""] }"#, "invalid pattern"),
        (r#""tools": { "exclude": [¦" kill"] }"#, "invalid pattern"),
        (r#""tools": { "exclude": [¦"ki\u200bll"] }"#, "invalid pattern"),
        (r#""tools": { "exclude": [¦"^kill.*$"] }"#, "invalid pattern"),
        (r#""tools": { "exclude": [¦"kill?"] }"#, "invalid pattern"),
        (r#""tools": { "exclude": [¦"{kill,stop}"] }"#, "invalid pattern"),
        (r#""tools": { "include": [¦"!kill"] }"#, "invalid pattern"),
        (r#""prompts": { "exclude": [¦"a|b"] }"#, "invalid pattern"),
        (r#""resources": { "exclude": [¦"file:\\\\x"] }"#, "invalid pattern"),
        (r#""access": { "*": { "tools": { "exclude": [¦"[ab]"] } } }"#, "invalid pattern"),
        (r#""excludeTools": ¦"kill""#, "invalid type"),
        (r#"¦"includeTools": "kill""#, "must be a list of tools"),
        (r#""tools": ["a"], ¦"includeTools": ["b"]"#, "both say which tools to show"),
    ] {
        let (place, filter) = (marked.find('¦').unwrap() + 1, marked.replace('¦', ""));
        let text = format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\",\n{filter} }} }} }}");
        let problem = read(&text).expect_err(&filter);
        assert_eq!((problem.line(), problem.column()), (2, place), "{filter}: {problem}");
        assert!(problem.to_string().contains(said), "{filter}: {problem}");
    }
    let fine = r#"{ "mcpServers": { "a": { "command": "x", "roots": [], "resources": { "exclude": ["x://[::1]/a?b=(c)*"] } } } }"#;
    assert_eq!(names(&read(fine).unwrap()), ["a"]);
}

/// Whoever wrote it wanted to hide a tool.
#[test]
fn a_nearly_right_filter_of_an_agent_is_refused_with_the_right_one() {
    let with = |key: &str| {
        format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\",\n\"{key}\": [\"kill\"] }} }} }}")
    };
    for (wrong, right) in [
        ("excludeTool", "did you mean `excludeTools`?"),
        ("excludedTools", "did you mean `excludeTools`?"),
        ("exclude_tools", "did you mean `excludeTools`?"),
        ("exclude-tools", "did you mean `excludeTools`?"),
        ("ExcludeTools", "did you mean `excludeTools`?"),
        ("exlcudeTools", "did you mean `excludeTools`?"),
        ("disabledtools", "did you mean `disabled_tools`?"),
        ("disable_tools", "did you mean `disabled_tools`?"),
        ("allowed_tools", "did you mean `allowedTools`?"),
        ("available-tools", "did you mean `available_tools`?"),
        // Never the opposite of what was meant.
        ("disallowedTools", "those to hide in `excludeTools`"),
        ("blockedTools", "those to hide in `excludeTools`"),
        ("toolFilter", "those to hide in `excludeTools`"),
        ("default_tools_enabled", "those to hide in `excludeTools`"),
        ("tool_denylist", "those to hide in `excludeTools`"),
        ("hiddenPrompts", "those to hide in `excludeTools`"),
        ("exclude", "those to hide in `excludeTools`"),
    ] {
        let problem = read(&with(wrong)).expect_err(wrong);
        let said = problem.report();
        assert_eq!((problem.line(), problem.column()), (2, 1), "{said}");
        assert!(said.contains(&format!("unknown key `{wrong}`")) && said.contains(right), "{said}");
    }
    // What agents have besides filters is theirs.
    for other in [
        "alwaysAllow",
        "autoApprove",
        "alwaysAllowTools",
        "tool_timeout_sec",
        "supports_parallel_tool_calls",
        "default_tools_approval_mode",
        "trust",
        "gallery",
        "isActive",
    ] {
        let config = read(&with(other)).expect(other);
        assert!(config.servers[0].is_open(), "{other}");
    }
}

#[test]
fn an_agents_own_filters_hold_here_too() {
    for (filter, shown) in [
        (r#""excludeTools": ["kill"]"#, [true, false]),
        (r#""disabled_tools": ["kill"]"#, [true, false]),
        (r#""disabledTools": ["*"]"#, [false, false]),
        (r#""includeTools": ["echo"]"#, [true, false]),
        (r#""enabled_tools": []"#, [false, false]),
        (r#""allowedTools": ["*"], "disabledTools": ["echo"]"#, [false, true]),
        (r#""available_tools": []"#, [true, true]),
        (r#""available_tools": ["kill"]"#, [false, true]),
        (r#""tools": { "rename": { "echo": "say" } }, "disabledTools": ["kill"]"#, [true, false]),
    ] {
        let config =
            read(&format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", {filter} }} }} }}")).unwrap();
        assert_eq!(["echo", "kill"].map(|name| config.servers[0].tools.lets(name)), shown, "{filter}");
    }
    let off = r#"{ "mcpServers": { "a": { "command": "x", "enabled": true }, "b": { "command": "x", "enabled": false },
        "c": { "command": "x", "enabled": false, "disabled": false }, "d": { "command": "x", "enabled": true, "disabled": true } } }"#;
    assert_eq!(names(&read(off).unwrap()), ["a"]);
}

#[test]
fn the_yaml_of_goose_and_continue_is_read() {
    let yaml =
        |text: &str| load("config.yaml", text, &|name| (name == "KEY").then(|| "of the keyring".to_owned()));
    let goose = "GOOSE_MODEL: x\nextensions:\n  developer:\n    type: builtin\n    enabled: true\n  fetch:\n    enabled: true\n    type: stdio\n    name: fetch\n    cmd: uvx\n    args:\n    - mcp-server-fetch\n    envs:\n      A: b\n    env_keys: [KEY, A]\n    timeout: 300\n    bundled: null\n    available_tools: [fetch]\n  off:\n    enabled: false\n    config:\n      type: stdio\n      cmd: x\n  web:\n    type: streamable_http\n    uri: https://example.com/mcp\n    headers: {X-Key: k}\n    available_tools: []\n";
    let config = yaml(goose).unwrap();
    assert_eq!(names(&config), ["fetch", "web"]);
    let fetch =
        Server::stdio("fetch", ["uvx", "mcp-server-fetch"]).env("A", "b").env("KEY", "of the keyring");
    assert_eq!(config.servers[0].server, fetch.deadline(Deadline::Policy).into());
    assert!(config.servers[0].tools.lets("fetch") && !config.servers[0].tools.lets("other"));
    let web = Server::http("web", "https://example.com/mcp").header("X-Key", "k");
    assert_eq!(config.servers[1].server, web.deadline(Deadline::Policy).into());
    assert!(config.servers[1].is_open() && config.warnings.is_empty(), "{:?}", config.warnings);
    let missing = yaml(&goose.replace("[KEY, A]", "[NONE]")).unwrap_err();
    assert!(missing.line() == 15 && missing.to_string().contains("NONE is not set"), "{missing:?}");

    let list = "name: mine\nversion: 0.0.1\nmcpServers:\n  - name: SQLite\n    command: npx\n    args:\n      - -y\n      - mcp-sqlite\n    cwd: /tmp\n  - name: web\n    type: streamable-http\n    url: https://example.com/mcp\n    requestOptions:\n      headers: {X-Key: k}\n";
    let config = yaml(list).unwrap();
    assert_eq!(names(&config), ["SQLite", "web"]);
    let sqlite = Server::stdio("SQLite", ["npx", "-y", "mcp-sqlite"]).dir("/tmp").deadline(Deadline::Policy);
    assert_eq!(config.servers[0].server, sqlite.into());
    let web = Server::http("web", "https://example.com/mcp").header("X-Key", "k");
    assert_eq!(config.servers[1].server, web.deadline(Deadline::Policy).into());

    for (text, line, said) in [
        ("mcpServers:\n  - command: x\n", 2, "needs a name"),
        ("mcpServers:\n  - name: a\n    command: &x x\n", 3, "anchors"),
        ("mcpServers:\n  - name: a\n    command: x\n    tools: {exlude: [b]}\n", 4, "unknown key `exlude`"),
        ("mcpServers:\n  - name: a\n    command: x\n  - name: a\n    command: x\n", 4, "ambiguous"),
        ("extensions: {}\n", 1, "no servers"),
    ] {
        let problem = yaml(text).unwrap_err();
        assert!(
            problem.line() == line && problem.to_string().contains(said),
            "{text}: {} {problem}",
            problem.line()
        );
    }
}

#[test]
fn a_mark_before_the_text_is_not_part_of_it() {
    for text in [
        "\u{feff}[servers.a]\ncommand = 'x'\n",
        "\u{feff}{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }",
        "\u{feff}// a comment\n{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }",
    ] {
        assert_eq!(names(&read(text).unwrap()), ["a"], "{text}");
    }
    for (text, place) in [("\u{feff}servers = 7", (1, 11)), ("\u{feff}{ \"servers\": {} }", (1, 14))] {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.line(), problem.column()), place, "{text}: {problem}");
    }
}

#[test]
fn an_unknown_key_is_an_error_in_our_file_and_a_warning_in_an_agents() {
    for (text, line, meant) in [
        ("[servers.a]\ncomand = \"x\"\ncommand = \"y\"\n", 2, Some("did you mean `command`?")),
        ("[servers.a]\ncommand = \"y\"\nfrobnicate = 1\n", 3, None),
        ("[servers.a]\ncommand = \"y\"\npolicy.call.limt = 1\n", 3, Some("did you mean `limit`?")),
        ("[servers.a]\ncommand = \"y\"\n[gatewy]\n", 3, Some("did you mean `gateway`?")),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.line(), problem.advice()), (line, meant), "{problem}");
        assert!(problem.to_string().starts_with("unknown key `"), "{problem}");
    }
    let json = read(r#"{ "mcpServers": { "a": { "commnd": "x", "command": "y" } } }"#).unwrap();
    assert_eq!(json.warnings[0].advice(), Some("did you mean `command`?"));
}

#[test]
fn times_and_sizes_are_written_as_people_do_or_as_numbers() {
    let text = |limit: &str, drain: &str, message: &str| {
        format!(
            "[gateway]\ndrain = {drain}\nmessage = {message}\n[servers.a]\ncommand = \"x\"\npolicy.call.limit = {limit}\n\
             policy.limits.message = {message}"
        )
    };
    let spoken = read(&text("\"5m\"", "\"1m 30s\"", "\"1MiB\"")).unwrap();
    let counted = read(&text("300000", "90000", "1048576")).unwrap();
    assert_eq!((spoken.gateway.drain, spoken.gateway.message), (90_000, 1 << 20));
    assert_eq!(spoken.gateway, counted.gateway);
    assert_eq!(spoken.servers[0].server, counted.servers[0].server);
    let late = "[servers.a]\ncommand = \"x\"\npolicy.call.limit = \"${LIMIT}\"";
    let late = load("test", late, &|_| Some("9m".to_owned()));
    assert_eq!(late.unwrap().servers.len(), 1, "also out of a variable");
    for wrong in ["\"5 parsecs\"", "\"16MiB\"", "\"\""] {
        let problem = read(&text(wrong, "1", "1000")).unwrap_err();
        assert!(problem.line() == 6 && problem.to_string().starts_with("expected a duration"), "{problem}");
    }
    assert!(read(&text("1", "1", "\"5m\"")).is_ok(), "five mebibytes, as flags read it");
    assert!(read(&text("1", "1", "\"5 minutes\"")).unwrap_err().to_string().contains("expected a size"));
}

#[test]
fn every_number_in_the_schema_has_its_unit() {
    fn numbers(schema: &serde_json::Value, found: &mut Vec<(String, Option<String>)>, name: &str) {
        let of = schema.get("type");
        if of.is_some_and(|of| {
            of == "integer" || of.as_array().is_some_and(|of| of.contains(&"integer".into()))
        }) {
            found.push((name.to_owned(), schema["x-unit"].as_str().map(str::to_owned)));
        }
        match schema {
            serde_json::Value::Object(members) => {
                members.iter().for_each(|(name, member)| numbers(member, found, name));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| numbers(item, found, name)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    numbers(&super::schema(), &mut found, "");
    let of = |unit: Option<&str>| {
        let mut names: Vec<_> =
            found.iter().filter(|(_, of)| of.as_deref() == unit).map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    };
    assert_eq!(of(Some("bytes")), "max_message memory message result_limit rotate stderr");
    assert_eq!(
        of(None),
        "burst connections depth failures in_flight items keep lines millis_per_answer per_call percent principal_rate \
         principal_requests queue replicas reserve_per_sec sessions tokens useful_answers useful_tokens"
    );
}

#[test]
fn results_are_as_large_as_they_are_unless_a_limit_says_otherwise() {
    let limits = |text: &str| -> Vec<_> {
        read(text).unwrap().servers.into_iter().map(|entry| (entry.result_limit, entry.is_open())).collect()
    };
    let servers = "[servers.a]\ncommand='x'\n[servers.b]\ncommand='x'\nresult_limit='8k'\n[servers.c]\ncommand='x'\nresult_limit=0";
    assert_eq!(limits(servers), [(None, true), (Some(8192), false), (None, true)]);
    let all = format!("[gateway]\nresult_limit='4KiB'\n{servers}");
    assert_eq!(limits(&all), [(Some(4096), false), (Some(8192), false), (None, true)]);
    let in_force = super::Settings::default();
    let again = super::load_again(&in_force, "test", &all, &|_| None).unwrap();
    assert_eq!(again.servers[0].result_limit, None, "the gateway's own setting is read at its start");
    for (text, line) in [
        ("[gateway]\nresult_limit=100\n[servers.a]\ncommand='x'", 2),
        ("[servers.a]\ncommand='x'\nresult_limit=2047", 3),
    ] {
        let problem = read(text).unwrap_err();
        assert!(problem.line() == line && problem.to_string().contains("at least 2 KiB"), "{problem}");
    }
}

#[test]
fn in_an_agents_file_short_names_are_another_programs() {
    let text = r#"{ "mcpServers": { "a": { "command": "x", "wait": true, "keepalive": [], "call_timeout": "1s" } } }"#;
    let config = read(text).unwrap();
    let plain = Server::stdio("a", ["x"]).stderr(linetender::Stderr::Off).deadline(Deadline::Policy);
    assert_eq!(config.servers[0].server, plain.into());
    let told: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("`wait` ignored"), "{told:?}");
}

#[test]
fn who_writes_a_long_name_reads_a_long_name() {
    let text =
        "[servers.a]\ncommand = \"x\"\npolicy.call = { limit = \"2h\", cap = \"3h\" }\nhang_after = \"1h\"";
    let problem = read(text).unwrap_err();
    assert_eq!(problem.to_string(), "hang_after must be no shorter than call.limit");
    assert_eq!(problem.line(), 4);
}

#[test]
fn the_reasons_to_send_a_call_again_are_those_that_are_named() {
    let reasons = |text: &str| {
        let config = read(&format!("[servers.a]\ncommand = 'x'\n{text}"))?;
        Ok::<_, Box<Problem>>(config.servers[0].server.settings().retry_on)
    };
    assert_eq!(reasons("").unwrap(), RetryOn::default());
    for (list, meant) in [
        ("[]", RetryOn::NOTHING),
        ("['not-executed']", RetryOn::NOT_EXECUTED),
        (
            "['reads', 'rate-limited']",
            RetryOn::NOTHING.with(RetryReason::Reads).with(RetryReason::RateLimited),
        ),
    ] {
        for key in ["retry_on", "policy.retry_on"] {
            assert_eq!(reasons(&format!("{key} = {list}")).unwrap(), meant, "{key} = {list}");
        }
    }
    let twice = reasons("retry_on = []\npolicy.retry_on = []").unwrap_err();
    assert_eq!((twice.line(), twice.to_string().contains("are the same setting")), (3, true), "{twice}");
    for (list, column) in
        [("['auth', 'list']", 21), ("['safe-tool']", 13), ("['q4f5a8c2']", 13), ("'auth'", 12)]
    {
        let problem = reasons(&format!("retry_on = {list}")).unwrap_err();
        assert_eq!((problem.line(), problem.column()), (3, column), "{problem}");
        let is_list = list.starts_with('[');
        let permitted = RetryReason::SETTABLE.map(RetryReason::name);
        assert!(!is_list || permitted.iter().all(|word| problem.to_string().contains(word)), "{problem}");
        assert!(!problem.report().contains("q4f5a8c2"), "{problem}");
    }
}

#[test]
fn a_call_timeout_leaves_the_limits_that_were_asked_for() {
    let deadline = |more: &str| {
        let text = format!("[servers.a]\ncommand = \"x\"\ncall_timeout = \"10s\"\n{more}");
        read(&text).unwrap().servers[0].server.clone()
    };
    let server = |quiet: u64, total: u64, change: fn(&mut linetender::Settings)| {
        let mut settings = linetender::Settings::default();
        change(&mut settings);
        let [quiet, total] = [quiet, total].map(std::time::Duration::from_secs);
        let policy = linetender::Policy::new(settings).unwrap();
        Server::stdio("a", ["x"])
            .stderr(linetender::Stderr::Off)
            .policy(policy)
            .deadline(Deadline::Within { quiet, total })
            .into()
    };
    assert_eq!(deadline(""), server(10, 10, |_| {}));
    let limited =
        |settings: &mut linetender::Settings| settings.call.limit = std::time::Duration::from_secs(1);
    assert_eq!(deadline("quiet_limit = \"1s\""), server(1, 10, limited));
    assert_eq!(deadline("policy.call.limit = \"1s\""), server(1, 10, limited));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, line, words) in [
        ("[servers.a]\ncommand = \"x\"\nargs = [\"ok\",\n \"${MISSING}\"]", 4, "MISSING is not set"),
        ("[servers.a]\ncommand = 7", 2, "string"),
        ("[servers.a]\ncommand = \"x\"\nscope = \"al\"", 3, "unknown variant"),
        ("[servers.a\n", 1, ""),
        ("{ \"mcpServers\": {\n \"a\": { \"command\": \"x\" \"args\": [] } } }", 2, ""),
        ("[servers.a]\nurl = \"http://x\"\ncommand = \"y\"", 1, "mutually exclusive"),
        ("\n[servers.a]\n", 2, "needs a command"),
        (
            "[gateway]\nlisten = \"nowhere\"\n[servers.a]\ncommand = \"x\"",
            2,
            "expected an IP address with a port",
        ),
        ("[gateway]\ntls_key = \"/k\"\n[servers.a]\ncommand = \"x\"", 2, "tls_key needs tls_certificate"),
        (
            "[gateway]\n\ntls_certificate = \"/c\"\n[servers.a]\ncommand = \"x\"",
            3,
            "tls_certificate needs tls_key",
        ),
        (
            "[gateway]\ntls_key = \"/k\"\ntls_certificate = \"c\"\n[servers.a]\ncommand = \"x\"",
            3,
            "expected an absolute path",
        ),
        ("[servers.a]\ncommand = \"x\"\npolicy.probe.keepalive = 0", 3, "keepalive"),
        ("[servers.a]\ncommand = \"x\"\nkeepalive = 0", 3, "keepalive"),
        ("[servers.a]\ncommand = \"x\"\ncall_timeout = \"9999999h\"", 3, "at most a year"),
        (
            "[servers.a]\ncommand = \"x\"\nquiet_limit = \"3s\"\npolicy.call.cap = \"1s\"",
            4,
            "call.cap must be",
        ),
        ("[servers.a]\ncommand = \"x\"\ncall_timeout = 0", 3, "call_timeout must be longer than zero"),
        ("[servers.a]\ncommand = \"x\"\npolicy.call.wait_for_line = 1\nwait = 1", 4, "are the same setting"),
        ("[servers.a]\ncommand = \"x\"\nwait = \"soon\"", 3, ""),
        (
            "[servers.a]\ncommand = \"x\"\nquiet_limit = \"2h\"",
            3,
            "hang_after must be no shorter than quiet_limit",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nhang_after = \"1s\"",
            3,
            "hang_after must be no shorter than quiet_limit",
        ),
        ("", 1, "no server"),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!(problem.line(), line, "{text}: {problem}");
        assert!(problem.to_string().contains(words), "{text}: {problem}");
    }
}

#[test]
fn what_stands_at_a_place_is_not_told_with_it() {
    for text in [
        "[servers.a]\nurl = 'http://x'\nheaders = 'Authorization: ${TOKEN}'",
        "[servers.a]\nurl = 'http://x'\npolicy.call.limit = '\", expected ${TOKEN}'",
        "[servers.a]\nurl = 'http://x'\nscope = '${TOKEN}'",
        "[gateway]\nlisten = '${TOKEN}'\n[servers.a]\ncommand = 'x'",
    ] {
        let problem = read(text).unwrap_err().to_string();
        assert!(!problem.contains("t0ken"), "{problem}");
        let why =
            ["string, expected ", "variant, expected ", "expected an IP address", "expected a duration"];
        assert!(why.iter().any(|why| problem.contains(why)), "{problem}");
    }
}

/// A file that cannot be used is reported by place and key: the line that is wrong is often the one with a token.
#[test]
fn no_problem_quotes_the_file() {
    const VALUE: &str = "q4f5a8c2e9b1d3f7a6c5";
    for text in [
        "[servers.z]\nurl = \"http://x/\"\nheaders = {A = \"Bearer %}\n",
        "[servers.z]\ncommand = \"x\"\n% = \"1\"\n",
        "[servers.z]\ncommand = \"x\"\nenv.% = 1\n",
        "[servers.z]\ncommand = \"x\"\nlazy = \"%\"\n",
        "[servers.z]\ncommand = \"x\"\nlazy = \"a, expected %\"\n",
        "[servers.z]\ncommand = \"x\"\nscope = \"%\"\n",
        "[servers.z]\ncommand = \"x\"\nargs = \"%\"\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = \"%\nB\"\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = %\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = \"\\%\"\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = '%' '%'\n",
        "[servers.z]\ncommand = \"x\"\nenv = { A = '%', A = '%' }\n",
        "[servers.z]\ncommand = \"x\"\nenv = { % = '1', % = '2' }\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = '${x%}'\nenv.B = '${p-%}'\n",
        "[servers.z]\ncommand = \"x\"\nenv.A = '${p %}'\n",
        "[servers.z]\n%\n",
        "%",
        "[%]\ncommand = 'x'\n",
        "[servers.z\n%",
        "[gateway]\nlisten = '%'\n[servers.a]\ncommand = 'x'\n",
        "[gateway]\ndrain = '%'\n[servers.a]\ncommand = 'x'\n",
        "[gateway]\ntls_key = '%'\n[servers.a]\ncommand = 'x'\n",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "%}}}}"#,
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": %}}}}"#,
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A" "%"}}}}"#,
        r#"{"mcpServers": {"a": {"command": "x", "args": "%"}}}"#,
        r#"{"mcpServers": {"a": {"url": "http://x", "headers": ["%"]}}} %"#,
    ] {
        let text = text.replace('%', VALUE);
        let problem = match load("test", &text, &|name| (name == VALUE).then(|| VALUE.to_owned())) {
            Err(problem) => problem,
            Ok(config) => panic!("{text}: {:?}", config.servers),
        };
        let told = format!("{} {problem} {problem:?}", problem.report());
        assert!(!told.contains("f5a8c2e9"), "{text}: {told}");
        assert!(problem.report().starts_with(&format!("test:{}:", problem.line())), "{told}");
    }
}

#[test]
fn a_place_is_a_line_and_a_character() {
    for (text, place) in [
        ("[servers.a]\ncommand = 7", (2, 11)),
        ("[servers.'ä']\r\nargs = ['ä', 7]\r\n", (2, 14)),
        ("servers = 7", (1, 11)),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.line(), problem.column()), place, "{text}: {problem}");
    }
}

#[test]
fn names_that_could_be_taken_for_each_other_are_refused_with_both() {
    for (one, other) in [("a", "a__b"), ("a", "a_"), ("a b", "a_b")] {
        let text = format!("[servers.'{one}']\ncommand = 'x'\n[servers.'{other}']\ncommand = 'x'\n");
        let problem = read(&text).unwrap_err().to_string();
        assert!(
            problem.contains(&format!("`{one}`")) && problem.contains(&format!("`{other}`")),
            "{problem}"
        );
    }
    assert!(read("[servers.a]\ncommand = 'x'\n[servers.ab]\ncommand = 'x'\n").is_ok());
}

#[test]
fn servers_have_to_go_with_the_settings_in_force_and_with_those_of_the_file() {
    let in_force = Settings { lines: 2, ..Settings::default() };
    let again = |text: &str| load_again(&in_force, "test", text, &|_| None);
    let dashes = "[gateway]\nseparator = '-'\n[servers.a]\ncommand = 'x'\n";
    for (more, words) in [
        ("[servers.a__b]\ncommand = 'x'\n", "are ambiguous"),
        ("[servers.a-b]\ncommand = 'x'\n", "are ambiguous"),
        (
            "[servers.b]\ncommand = 'x'\n[servers.c]\ncommand = 'x'\n",
            "3 servers configured, but gateway.lines allows only 2",
        ),
    ] {
        let problem = again(&format!("{dashes}{more}")).unwrap_err();
        assert!(problem.to_string().contains(words), "{more}: {problem}");
    }
    let few = "[gateway]\nlines = 1\n[servers.a]\ncommand = 'x'\n[servers.b]\ncommand = 'x'\n";
    assert!(again(few).unwrap_err().to_string().contains("allows only 1"), "it could not be started again");
    let config = again(&format!("{dashes}[servers.b]\ncommand = 'x'\n")).unwrap();
    assert_eq!(in_force.differing(&config.gateway), ["lines", "separator"]);
    assert_eq!(in_force.differing(&in_force), [""; 0]);
}

#[test]
fn credentials_that_change_come_from_files_or_from_a_program() {
    let auth = |text: &str| {
        read(&format!("[servers.a]\nurl = 'http://x/mcp'\n{text}")).unwrap().servers.remove(0).auth
    };
    assert_eq!(auth("headers = { authorization = 'b' }"), Auth::Fixed);
    let files = vec![("A".to_owned(), "Bearer t0ken ${file:/run/t}".to_owned())];
    assert_eq!(auth("headers = { A = 'Bearer ${TOKEN} ${file:/run/t}', B = 'b' }"), Auth::Files(files));
    let command = vec!["prog".to_owned(), "t0ken".to_owned()];
    assert_eq!(auth("auth = { command = ['prog', '${TOKEN}'] }"), Auth::Command(command));
    for text in
        ["headers = { A = 'Bearer ${TOKEN} ${file:/run/t}' }", "auth = { command = ['prog', '${TOKEN}'] }"]
    {
        assert!(!format!("{:?}", auth(text)).contains("t0ken"));
    }
    for (text, words) in [
        ("[servers.a]\ncommand = 'x'\nauth = { command = ['p'] }", "auth is for servers with a url"),
        ("[servers.a]\nurl = 'http://x'\nauth = { command = [] }", "auth.command is empty"),
        (
            "[servers.a]\nurl = 'http://x'\nauth = { command = ['p'] }\nheaders = { A = '${file:/t}' }",
            "exclusive",
        ),
        ("[servers.a]\nurl = 'http://x'\nauth = { comand = ['p'] }", "did you mean"),
    ] {
        let problem = read(text).unwrap_err();
        let said = format!("{problem} {problem:?}");
        assert!(said.contains(words), "{text}: {said}");
    }
    // An agent's own.
    let agents =
        r#"{"mcpServers": {"a": {"url": "http://x", "auth": "oauth", "headers": {"A": "${file:/t}"}}}}"#;
    assert_eq!(
        read(agents).unwrap().servers[0].auth,
        Auth::Files(vec![("A".to_owned(), "${file:/t}".to_owned())])
    );
}

#[test]
fn a_server_at_an_address_is_logged_in_to_unless_something_else_is_said() {
    let auth = |text: &str| read(&format!("[servers.a]\n{text}")).unwrap().servers.remove(0).auth;
    let plain = OAuth { url: "https://x/mcp".to_owned(), ..OAuth::default() };
    assert_eq!(auth("url = 'https://x/mcp'\nheaders = { A = 'b' }"), Auth::Login(Box::new(plain.clone())));
    assert_eq!(auth("url = 'https://x/mcp'\nheaders = { authorization = 'b' }"), Auth::Fixed);
    assert_eq!(auth("url = 'unix:/run/x.sock'"), Auth::Fixed);
    assert_eq!(auth("command = 'x'"), Auth::Fixed);
    let machine = auth(
        "url = 'https://x/mcp'\nauth = { client_id = 'm', client_secret = '${TOKEN}${file:/s}', issuer = 'https://i', grant = 'client_credentials', scopes = ['a'] }",
    );
    assert!(!format!("{machine:?}").contains("t0ken"));
    let expected = OAuth {
        client_id: Some("m".to_owned()),
        client_secret: Some("t0ken${file:/s}".to_owned()),
        issuer: Some("https://i".to_owned()),
        grant: Grant::ClientCredentials,
        scopes: vec!["a".to_owned()],
        ..plain
    };
    assert_eq!(machine, Auth::Login(Box::new(expected)));
    for (text, words) in [
        ("auth = { command = ['p'], client_id = 'x' }", "mutually exclusive"),
        ("auth = { client_id = 'x' }\nheaders = { Authorization = 'x' }", "mutually exclusive"),
        ("auth = { client_id = 'x' }\nheaders = { A = '${file:/x}' }", "mutually exclusive"),
        ("auth = { client_secret = 'x' }", "need a client_id"),
        ("auth = { client_id = 'x', client_secret = 'x' }", "need an issuer"),
        ("auth = { grant = 'client_credentials' }", "needs a client_id"),
        ("auth = { client_id = 'x', grant = 'client_credentials' }", "client_secret or a private_key"),
        ("auth = { client_id = 'x', issuer = 'https://i', private_key = '/x' }", "needs grant"),
        ("auth = { grant = 'password' }", "expected"),
        ("auth = { client_id = '${file:/x}' }", "environment variable"),
    ] {
        let problem = read(&format!("[servers.a]\nurl = 'https://x'\n{text}")).unwrap_err();
        let said = format!("{problem} {problem:?}");
        assert!(said.contains(words), "{text}: {said}");
    }
}
