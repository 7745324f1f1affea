//! Whoever breaks things while calls are made: blows to the server's process, to its host, to the network between, and
//! people who ask for a redial.

use std::sync::Arc;
use std::time::Duration;

use linetender::Line;
use tokio::time::sleep;

use crate::crowd::Crowd;
use crate::log::Log;
use crate::net::Road;
use crate::process::Blow;
use crate::rng::Rng;
use crate::scene::Scene;

/// How many ask for a redial in one moment.
const ASKERS: usize = 25;

/// Somebody who breaks something now and then.
pub(crate) struct Saboteur {
    pub(crate) scene: Arc<Scene>,
    pub(crate) line: Line,
    /// The longest pause between two faults, in milliseconds.
    pub(crate) pause: u64,
    pub(crate) rng: Rng,
    pub(crate) log: Log,
}

impl Saboteur {
    /// Strikes processes, until it is dropped.
    pub(crate) async fn strike(mut self) {
        loop {
            self.pause().await;
            let blow = match self.rng.below(100) {
                0..45 => Blow::Kill,
                45..55 => Blow::CloseStdout,
                55..62 => Blow::CloseStdin,
                62..68 => Blow::KillReaper,
                68..85 => Blow::Stop,
                _ => {
                    self.ask_for_a_redial().await;
                    continue;
                }
            };
            let Some(process) = self.scene.process() else { continue };
            self.scene.say(|| format!("process {} is struck: {blow:?}", process.pid));
            process.strike(blow);
            if blow == Blow::Stop {
                self.while_it_lasts().await;
                process.strike(Blow::Go);
            }
        }
    }

    /// Breaks what lies between us and a host, or the host, until it is dropped.
    pub(crate) async fn meddle(mut self, road: &Road) {
        let Road { net, web } = road;
        loop {
            self.pause().await;
            match self.rng.below(100) {
                0..25 => {
                    self.scene.say(|| "the link is cut".to_owned());
                    net.cut(true);
                    self.while_it_lasts().await;
                    net.cut(false);
                    self.scene.say(|| "the link is mended".to_owned());
                }
                25..40 => {
                    self.scene.say(|| "every connection is reset".to_owned());
                    net.reset();
                }
                40..55 => {
                    web.fall();
                    self.while_it_lasts().await;
                    web.stand_up();
                    self.scene.say(|| "the host is back".to_owned());
                }
                55..65 => {
                    self.scene.say(|| "the host stops".to_owned());
                    web.stop(true);
                    self.while_it_lasts().await;
                    web.stop(false);
                }
                65..75 => {
                    let usual = net.sky().delay;
                    net.slow(self.rng.pick(&[(20, 100), (200, 2000)]));
                    self.while_it_lasts().await;
                    net.slow(usual);
                }
                75..90 => {
                    // The machine slept for hours: whatever was between us has been given up by then.
                    self.scene.say(|| "hours pass elsewhere".to_owned());
                    web.forget_sessions();
                    net.reset();
                    self.line.slept().await;
                }
                _ => self.ask_for_a_redial().await,
            }
        }
    }

    async fn pause(&mut self) {
        sleep(self.rng.millis(self.pause / 4, self.pause)).await;
    }

    async fn while_it_lasts(&mut self) {
        sleep(self.rng.pick(&[1, 50, 2000, 17_000, 60_000].map(Duration::from_millis))).await;
    }

    async fn ask_for_a_redial(&mut self) {
        self.scene.say(|| format!("{ASKERS} ask for a redial"));
        // Many that ask at once are one end, and none at all if the next generation is on its way.
        let lives = self.line.status().state.is_live();
        let most = self.log.ends_by("redial") + usize::from(lives);
        let ask = |line: Line| Box::pin(async move { drop(line.redial().await) }) as _;
        Crowd::new((0..ASKERS).map(|_| ask(self.line.clone())).collect(), self.rng.fork()).await;
        sleep(Duration::from_millis(1)).await;
        let ends = self.log.ends_by("redial");
        if ends > most {
            let wrong = format!("{ASKERS} asked for a redial, and that made {} ends too many", ends - most);
            self.scene.book().wrongs.push(wrong);
        }
    }
}
