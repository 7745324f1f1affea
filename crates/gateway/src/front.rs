//! Streamable HTTP, both eras at one address: `/mcp` for all servers, `/mcp/NAME` for each.
//!
//! A modern request stands by itself. A legacy agent has a session, whose streams can be resumed. What either asks is asked of
//! the library behind, so nothing here knows of lines or of deaths.

mod accept;
mod activity;
mod admit;
mod body;
mod caller;
mod connections;
mod cors;
mod doors;
mod far;
mod follow;
mod guard;
mod health;
mod identify;
mod legacy;
mod long;
mod metadata;
mod modern;
mod places;
mod post;
mod pulse;
mod quota;
mod rarely;
mod reply;
mod said;
mod sealed;
mod sent;
mod session;
mod sessions;
mod shown;
mod socket;
mod sse;
mod tape;
mod tls;
mod upload;
mod who;

pub use doors::{CannotOpen, Certificate, Doors};

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post as posted};
use linetender_wire::aside;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bearers::Bearers;
use crate::budget::Budget;
use crate::gateway::Gateway;
use crate::listing::Listing;
use crate::principal::Principal;
use far::Far;
use long::LongTurns;
use metadata::Resource;
use pulse::Pulse;
use sessions::Sessions;
use shown::Credentials;

/// How long it may take to tell agents what they are still to hear when the time is up: longer than an answer may take before
/// its response begins, for whoever waits for that learns it from there on.
const LAST_WORDS: Duration = Duration::from_millis(1500);

/// How often it is looked whether memory can be given back.
const GIVE_BACK: Duration = Duration::from_secs(1);

/// What handlers share.
pub(crate) struct Front {
    gateway: Gateway,
    sessions: Sessions,
    /// What everything that agents make us keep draws on.
    budget: Budget,
    /// Whose long message is read.
    long: LongTurns,
    /// The other gateways of the fleet.
    far: Option<Far>,
    pulse: Pulse,
    /// What was shown for streams and sessions that are open.
    credentials: Arc<Credentials>,
    /// Who verifies agents' tokens, if they have to show any.
    bearers: Option<Arc<dyn Bearers>>,
    /// What tokens are issued for.
    resource: Resource,
    /// Whether it is about to end: streams that would never end by themselves do so now.
    closing: watch::Receiver<bool>,
    /// Whether the time for that is up: whatever is still under way is told so.
    cut: watch::Sender<bool>,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Served {
    /// All pending requests finished.
    Finished,
    /// The drain timeout expired with requests pending.
    Cut,
}

/// Serves agents at these doors until `stop`, then drains within `Settings::drain`.
///
/// # Errors
/// If agents have to show tokens and nobody verifies them ([`Doors::verified_by`]).
pub async fn serve(
    gateway: &Gateway,
    doors: Doors,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Served> {
    let settings = gateway.settings();
    let bearers = doors.bearers.clone();
    if settings.auth.is_on() && bearers.is_none() {
        return Err(io::Error::other("gateway.auth is set, and nobody verifies tokens"));
    }
    let (close, closing) = watch::channel(false);
    let budget = gateway.budget().clone();
    let idle = Duration::from_millis(settings.session_idle);
    let credentials = Credentials::new(bearers.clone());
    let drawing = (budget.clone(), gateway.ends().clone());
    let front = Arc::new(Front {
        gateway: gateway.clone(),
        sessions: Sessions::new(settings.session_limit(), idle, drawing, Arc::clone(&credentials)),
        budget,
        long: LongTurns::new(),
        far: gateway.kin().cloned().map(Far::new),
        pulse: Pulse::default(),
        credentials,
        bearers: bearers.clone(),
        resource: Resource::new(settings),
        closing,
        cut: watch::Sender::new(false),
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(sessions::sweep(Arc::clone(&front)));
    tasks.spawn(shown::watch(Arc::clone(&front)));
    let beating = Arc::clone(&front);
    tasks.spawn(async move { beating.pulse.run().await });
    tasks.spawn(weigh_lists(gateway.listing(), front.budget.clone()));
    tasks.spawn(give_back(front.budget.clone()));
    let drain = Duration::from_millis(settings.drain);
    let places = places::Places::new(settings.connections);
    let mut stopped = front.closing.clone();
    tasks.spawn(async move {
        stop.await;
        close.send_replace(true);
    });
    let late = async move {
        let _ = stopped.wait_for(|closing| *closing).await;
        tokio::time::sleep(drain).await;
    };
    let asks = if front.far.is_some() { connections::ASKS_IN_A_FLEET } else { connections::ASKS };
    let entrance =
        connections::Entrance::new(settings, bearers, router(Arc::clone(&front)), front.budget.clone(), asks);
    // What other gateways pass on is under way here too: their agents wait for it.
    let far = far::serve(Arc::clone(&front), router(Arc::clone(&front)), front.closing.clone());
    let at_doors = connections::serve(doors.open, places, entrance, front.closing.clone());
    let mut serving = pin!(async { tokio::join!(at_doors, far) });
    let mut all_left = false;
    let finished = async {
        (&mut serving).await;
        all_left = true;
        // Calls that outlive their agents have the same time.
        gateway.durable().idle().await;
    };
    let served = tokio::select! {
        () = finished => Served::Finished,
        () = late => Served::Cut,
    };
    front.cut.send_replace(true);
    front.sessions.end_all();
    if served == Served::Cut && !all_left {
        // Streams have just ended, and whoever reads them is to see that.
        let _ = tokio::time::timeout(LAST_WORDS, serving).await;
    }
    Ok(served)
}

fn router(front: Arc<Front>) -> Router {
    let mcp = posted(post::post).get(legacy::get).delete(legacy::delete);
    Router::new()
        .route("/mcp", mcp.clone())
        .route("/mcp/{name}", mcp)
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route(metadata::WELL_KNOWN, get(metadata::document))
        .route(&format!("{}/mcp", metadata::WELL_KNOWN), get(metadata::document))
        .route(&format!("{}/mcp/{{name}}", metadata::WELL_KNOWN), get(metadata::document))
        .with_state(front)
}

impl Front {
    /// The number of a server, if this principal sees it.
    fn berth(&self, principal: &Principal, name: &str) -> Option<u64> {
        self.gateway.seen_by(principal).route(name).map(|route| route.berth.number)
    }

    /// Waits until it is about to end.
    async fn closes(&self) {
        let _ = self.closing.clone().wait_for(|closing| *closing).await;
    }

    /// Waits until the time to end is up.
    async fn is_cut(&self) {
        let _ = self.cut.subscribe().wait_for(|cut| *cut).await;
    }
}

/// Gives memory back to the system after a good deal of it was used. What is small lies between other small things, and glibc keeps it.
async fn give_back(budget: Budget) {
    loop {
        tokio::time::sleep(GIVE_BACK).await;
        if budget.gave_back_much() {
            aside(linetender::allocator::trim).await;
        }
    }
}

/// Tells the budget how much memory the servers' lists take.
async fn weigh_lists(mut listing: watch::Receiver<Arc<Listing>>, budget: Budget) {
    loop {
        budget.beside_lists(listing.borrow_and_update().weight());
        if listing.changed().await.is_err() {
            return;
        }
    }
}
