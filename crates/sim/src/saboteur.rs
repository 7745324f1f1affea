//! Whoever breaks things while calls are made: blows to the server's process, and people who ask for a redial.

use std::sync::Arc;

use linetender::Line;
use tokio::time::sleep;

use crate::crowd::Crowd;
use crate::process::Blow;
use crate::rng::Rng;
use crate::scene::Scene;

/// How many ask for a redial in one moment.
const ASKERS: usize = 25;

/// Breaks something now and then, until it is dropped.
pub(crate) async fn sabotage(scene: Arc<Scene>, line: Line, pause: u64, mut rng: Rng) {
    loop {
        sleep(rng.millis(pause / 4, pause)).await;
        let blow = match rng.below(100) {
            0..45 => Blow::Kill,
            45..55 => Blow::CloseStdout,
            55..62 => Blow::CloseStdin,
            62..68 => Blow::KillReaper,
            68..85 => Blow::Stop,
            _ => {
                scene.say(|| format!("{ASKERS} ask for a redial"));
                let ask = |line: Line| Box::pin(async move { drop(line.redial().await) }) as _;
                Crowd::new((0..ASKERS).map(|_| ask(line.clone())).collect(), rng.fork()).await;
                continue;
            }
        };
        let Some(process) = scene.process() else { continue };
        scene.say(|| format!("process {} is struck: {blow:?}", process.pid));
        process.strike(blow);
        if blow == Blow::Stop {
            sleep(rng.pick(&[1, 50, 2000, 60_000].map(std::time::Duration::from_millis))).await;
            process.strike(Blow::Go);
        }
    }
}
