//! What a person and a model are told when somebody has to log in.

use serde_json::json;

use crate::kit::{Home, call, lines, until};
use crate::provider::Provider;

#[test]
fn a_server_that_needs_a_login_says_everywhere_what_to_type() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("words");
    let url = provider.mcp.as_str();
    let mut shim = home.shim(url);
    let mut gateway = home.gateway(&format!("[servers.'my server']\nurl = '{url}'\n"));
    let commands = [format!("linetender login {url}"), "linetender login 'my server'".to_owned()];
    for (agent, tool, command) in
        [(&mut shim, "echo", &commands[0]), (&mut gateway, "my_server__echo", &commands[1])]
    {
        let (text, failed) = call(agent, tool);
        assert!(failed && text.contains(command.as_str()), "{text}");
        assert!(text.contains("wants somebody to log in"), "{text}");
    }
    let status: Vec<_> = lines(&home).iter().map(ToString::to_string).collect();
    for command in &commands {
        assert!(status.iter().any(|line| line.contains(command.as_str())), "{command}: {status:?}");
        until("a journal that says so", || {
            let journal = home.prints(&["journal"]);
            if journal.contains(command.as_str()) { Ok(()) } else { Err(journal) }
        });
    }
    let log = home.file("shim-log") + &home.file("gateway-log");
    assert!(commands.iter().all(|command| log.contains(command.as_str())), "{log}");
    // What it says is what works.
    home.login(&["my server"]);
    for (agent, tool) in [(&mut shim, "echo"), (&mut gateway, "my_server__echo")] {
        until("up", || if call(agent, tool).1 { Err("it failed".to_owned()) } else { Ok(()) });
    }
}

#[test]
fn a_config_file_elsewhere_is_named_in_what_to_type() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("elsewhere");
    let mut gateway =
        home.gateway_by("other place/servers.toml", &format!("[servers.a]\nurl = '{}'\n", provider.mcp));
    let (text, _) = call(&mut gateway, "a__echo");
    let config = home.at("other place/servers.toml");
    assert!(text.contains(&format!("linetender login --config '{}' a", config.display())), "{text}");
    home.login(&["--config", config.to_str().unwrap(), "a"]);
    until("up", || if call(&mut gateway, "a__echo").1 { Err("it failed".to_owned()) } else { Ok(()) });
}

#[test]
fn what_cannot_be_logged_in_to_is_said_and_what_cannot_be_meant_is_misuse() {
    let home = Home::new("misuse");
    let config = home.write(
        "c.toml",
        "[servers.program]\ncommand = 'x'\n[servers.fixed]\nurl = 'https://a.example/mcp'\nheaders = { Authorization = 'x' }\n\
         [servers.other]\nurl = 'https://a.example/${NOT_SET_HERE}'\n[servers.plain]\nurl = 'http://a.example/mcp'\n\
         [servers.machine]\nurl = 'https://a.example/mcp'\nauth = { client_id = 'm', client_secret = 's', issuer = 'https://i.example', grant = 'client_credentials' }\n",
    );
    let config = config.to_str().unwrap();
    for (words, code, said) in [
        (vec!["login", "unix:/run/x.sock"], 2, "nobody logs in to a Unix socket"),
        (vec!["login", "--config", config, "http://a.example"], 2, "--config is for a server name"),
        (vec!["login", "--config", config, "nobody"], 2, "no server nobody"),
        (vec!["login", "--config", config, "program"], 2, "program is a program"),
        (vec!["login", "--config", config, "fixed"], 2, "Authorization header"),
        (vec!["login", "--config", config, "machine"], 2, "logs in by itself"),
        (vec!["login", "--config", config, "other"], 1, "NOT_SET_HERE is not set"),
        (vec!["login", "--config", config, "plain"], 1, "not https"),
        (vec!["login", "a"], 1, "no config file found"),
        (vec!["login", "http://127.0.0.1:1/mcp"], 1, "127.0.0.1:1"),
        (vec!["login"], 2, "SERVER|URL"),
        (vec!["logout", "unix:/run/x.sock"], 2, "Unix socket"),
    ] {
        let output = home.output(&words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    assert_eq!(home.prints(&["auth", "--json"]), format!("{:#}\n", json!({ "version": 1, "logins": [] })));
}
