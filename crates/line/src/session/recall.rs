//! Keeping the memory true while an agent is alone with its server.

use std::sync::Arc;

use linetender_core::StateKind;
use linetender_wire::aside;
use linetender_wire::frame::Members;
use linetender_wire::handshake::{Era, Greeting};
use tokio::sync::watch;

use crate::catalogue::Catalogue;
use crate::line::{Event, Events, Line, Page, Remembered};

/// Writes down what the server says of itself, and that it does not start. Ends with the line.
pub(super) struct Keeper {
    page: Arc<dyn Page>,
    /// What the agent was greeted with before the server had said anything.
    recalled: Option<Greeting>,
    greeting: watch::Receiver<Option<Arc<Greeting>>>,
    catalogue: watch::Receiver<Arc<Catalogue>>,
    events: Events,
}

/// Whether it is known how the server's start went.
#[derive(Clone, Copy)]
enum Start {
    Under,
    Done,
}

impl Keeper {
    pub(super) fn of(line: &Line, page: Arc<dyn Page>, recalled: Option<Greeting>) -> Self {
        let (greeting, catalogue) = line.known();
        Self { page, recalled, greeting, catalogue, events: line.events() }
    }

    pub(super) async fn run(mut self) {
        let mut start = Start::Under;
        loop {
            tokio::select! {
                read = self.catalogue.changed() => {
                    if read.is_err() || !self.keep().await {
                        return;
                    }
                }
                event = self.events.next() => match event {
                    Some(Event::State(now)) => match (now.state, start) {
                        (StateKind::Up, _) => start = Start::Done,
                        // It did not come up, and nobody had wanted it to end. Once is enough: what fails to start is tried
                        // again and again, and that is still one start of ours.
                        (StateKind::Ending | StateKind::Waiting | StateKind::Parked, Start::Under)
                            if now.cause.as_ref().is_some_and(|why| !why.planned) =>
                        {
                            start = Start::Done;
                            self.on_disk(|page| page.failed()).await;
                        }
                        _ => {}
                    },
                    Some(
                        Event::Changed(..)
                        | Event::Missed(_)
                        | Event::Ended { .. }
                        | Event::Left(_)
                        | Event::ContainerLeft { .. },
                    ) => {}
                    None => return,
                },
            }
        }
    }

    /// The lists of a generation were read. Whether the page is still worth keeping.
    async fn keep(&mut self) -> bool {
        let catalogue = Arc::clone(&self.catalogue.borrow_and_update());
        let greeting = self.greeting.borrow().clone();
        let Some(greeting) = greeting.filter(|_| catalogue.is_whole()) else { return true };
        if self
            .recalled
            .take()
            .is_some_and(|recalled| recalled.era != greeting.era || version(&recalled) != version(&greeting))
        {
            // What this agent was promised is not what this server speaks: the next one waits for the server's own word.
            tracing::info!("protocol version changed; discarding the cached handshake");
            self.on_disk(|page| page.forget()).await;
            return false;
        }
        let what = Remembered { greeting: (*greeting).clone(), catalogue: (*catalogue).clone() };
        self.on_disk(move |page| page.keep(&what)).await;
        true
    }

    /// A disk may be slow, and calls must not wait for it.
    async fn on_disk(&self, work: impl FnOnce(&dyn Page) + Send + 'static) {
        let page = Arc::clone(&self.page);
        let _ = aside(move || work(&*page)).await;
    }
}

/// The revision that a server agreed to speak.
fn version(greeting: &Greeting) -> Option<&str> {
    match greeting.era {
        Era::Legacy => Some(Members::of(&greeting.result)?.get("protocolVersion")?.get()),
        Era::Modern => None,
    }
}
