//! The environment of a server process.

use crate::kit::House;

#[tokio::test]
async fn a_server_that_inherits_our_environment_gets_its_own_variables_too() {
    let house =
        House::up("[servers.a]\n{bad}\ninherit_env = true\nenv = { TOKEN = 't0ken', HOME = '/explicit' }")
            .await;
    let lines = house.gateway.lines();
    let pid = lines[0].pid().expect("it is up");
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let values = |name: &str| -> Vec<String> {
        let prefix = format!("{name}=");
        let variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        variables.filter_map(|variable| Some(variable.strip_prefix(&prefix)?.to_owned())).collect()
    };
    assert_eq!(values("TOKEN"), ["t0ken"], "given by the config");
    assert_eq!(values("HOME"), ["/explicit"], "the config wins over what is inherited");
    assert_eq!(values("CARGO_MANIFEST_DIR"), [env!("CARGO_MANIFEST_DIR")], "inherited from the test runner");
}
