//! A process is killed at every point of a renewal. Whatever the point, the login survives, but in the one moment in which it
//! cannot: the authorization server has replaced the token, and nobody has stored the new one. Then the text says so.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::act::Actor;
use crate::processes::rounds;
use crate::provider::Provider;

/// The points, in their order, and whether the authorization server has acted and the answer is not stored.
const POINTS: [(&str, bool); 11] = [
    ("auth renew locked", false),
    ("auth intent opened", false),
    ("auth intent written", false),
    ("auth intent stored", false),
    ("auth request", false),
    // The answer is on its way.
    ("the authorization server", true),
    ("auth answered", true),
    ("auth answer opened", true),
    ("auth answer written", true),
    ("auth answer stored", false),
    ("auth unlock", false),
];

/// `LINETENDER_AUTH_KILLS=200` for more kills.
#[tokio::test]
async fn a_login_survives_kill_9_at_every_point_but_one_moment() {
    let Some(provider) = Provider::start("kills") else { return };
    let faults = provider.folder.with_extension("faults");
    std::fs::create_dir_all(&faults).unwrap();
    provider.login().await;
    let mut lost = 0;
    for number in 0..rounds("LINETENDER_AUTH_KILLS", 22) {
        let (point, is_lost) = POINTS[number as usize % POINTS.len()];
        provider.set(json!({ "refuse_tokens": true })).await;
        let pid = kill_at(&provider, &faults, point).await;
        provider.set(json!({ "delay": 0 })).await;

        let mut next = Actor::start(&provider, None);
        next.tell("calls 3");
        let answers = next.answer().unwrap();
        let answers = answers.as_array().unwrap();
        if is_lost {
            lost += 1;
            for answer in answers {
                let said = answer["login"].as_str().unwrap_or_else(|| panic!("{point}: {answer}"));
                assert!(said.contains("before it could store the answer"), "{point}: {said}");
                assert!(
                    said.contains(&format!("process {pid} ")) && said.contains("linetender login test"),
                    "{point}: {said}"
                );
            }
            provider.login().await;
        } else {
            assert!(answers.iter().all(|answer| *answer == 200), "{point}: {answers:?}");
            assert!(provider.grant()["intent"].is_null(), "{point}");
        }
        let left = std::fs::read_dir(provider.folder.join("credentials")).unwrap().flatten();
        let left: Vec<_> = left
            .map(|entry| entry.file_name())
            .filter(|name| name.to_string_lossy().starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{point}: {left:?}");
    }
    println!("{lost} logins lost in the one moment");
    let _ = std::fs::remove_dir_all(&faults);
}

/// Has a process renew the token, and kills it there. Returns which process that was.
async fn kill_at(provider: &Provider, faults: &Path, point: &str) -> u32 {
    let mut actor = Actor::start(provider, Some(faults));
    let block = faults.join(format!("{point}.block"));
    let at_server = point == "the authorization server";
    if at_server {
        provider.set(json!({ "delay": 5000 })).await;
    } else {
        std::fs::write(&block, "").unwrap();
    }
    let before = provider.counts().await;
    actor.tell("calls 3");
    let began = Instant::now();
    let is_there =
        async || if at_server { provider.counts().await.granted > before.granted } else { !block.exists() };
    while !is_there().await {
        assert!(began.elapsed() < Duration::from_secs(60), "{point}: never reached");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = actor.child.id();
    actor.kill();
    pid
}
