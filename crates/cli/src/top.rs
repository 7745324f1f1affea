//! `linetender top`: every server of this user's linetender processes, live, and what can be done about one.

mod draw;
mod keys;
mod looks;
mod model;
mod row;
mod stand;
mod strip;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use anstream::ColorChoice;
use linetender::visible;
use linetender_holder::holder::{Act, Ask, Done, ask_holder};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::places;
use crate::stop::{SHIM, Signals};
use keys::Wish;
use looks::Looked;
use model::{Model, Notice, Order, View};

/// How often every process is looked at.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the thread that reads keys waits before it looks whether it is still wanted.
const KEY: Duration = Duration::from_millis(200);

/// The most keys that wait to be taken in. Who types faster waits.
const KEYS: usize = 64;

/// The most orders that have not been answered: a server may take two minutes to come up.
const ORDERS: usize = 16;

/// Why the loop ended.
enum End {
    Left,
    Signal(u8),
}

/// What came from the terminal.
enum Typed {
    Key(KeyEvent),
    Resized,
}

pub(crate) fn top() -> ExitCode {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        eprintln!("linetender: top needs a terminal; for scripts: linetender status --json");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("linetender: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    // It puts the terminal back also when we panic.
    let ended = match ratatui::try_init() {
        Ok(mut terminal) => runtime.block_on(show(&mut terminal, Model::new(colours))),
        Err(error) => Err(error),
    };
    ratatui::restore();
    // An order that waits for a server is not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(End::Left) => ExitCode::SUCCESS,
        Ok(End::Signal(signal)) => ExitCode::from(128 + signal),
        Err(error) => {
            eprintln!("linetender: cannot use the terminal: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn show(terminal: &mut DefaultTerminal, mut model: Model) -> io::Result<End> {
    let mut signals = Signals::of(SHIM);
    let mut typed = read_keys()?;
    let mut again = interval(AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut looking, mut orders) = (JoinSet::<Looked>::new(), JoinSet::<Notice>::new());
    loop {
        model.size = terminal.size()?.into();
        terminal.draw(|frame| draw::draw(&model, frame))?;
        tokio::select! {
            signal = signals.next() => return Ok(End::Signal(signal)),
            key = typed.recv() => match key {
                // Nobody can type any more: the terminal is gone.
                None => return Ok(End::Left),
                Some(Typed::Resized) => {}
                Some(Typed::Key(key)) => match keys::press(&mut model, key) {
                    Wish::Nothing => {}
                    Wish::Look => again.reset_at(Instant::now()),
                    Wish::Do(order) => give(&mut model, &mut orders, order),
                    Wish::Redraw => terminal.clear()?,
                    Wish::Leave => return Ok(End::Left),
                },
            },
            // One look at a time: one that takes long is waited for.
            _ = again.tick(), if looking.is_empty() => {
                let closer = match &model.view {
                    View::One { key, .. } => Some(key.clone()),
                    View::All => None,
                };
                looking.spawn(looks::look_at(places::sockets(), closer));
            }
            Some(looked) = looking.join_next() => model.looked(looked.unwrap_or_default()),
            Some(notice) = orders.join_next() => {
                model.busy = orders.len();
                model.notice = notice.ok();
                again.reset_at(Instant::now());
            }
        }
    }
}

/// Tells a process, and does not wait for it.
fn give(model: &mut Model, orders: &mut JoinSet<Notice>, order: Order) {
    if orders.len() >= ORDERS {
        let text = format!("{ORDERS} orders have not been answered yet: wait for one of them");
        model.notice = Some(Notice { text, is_error: true });
        return;
    }
    let Order { pid, act } = order;
    model.notice = Some(Notice { text: format!("{} …", draw::words_of(&act)), is_error: false });
    orders.spawn(async move {
        let done: io::Result<Done> = ask_holder(&places::sockets(), pid, &Ask::Act(act)).await;
        match done {
            Ok(Done { done }) => Notice { text: visible::line(&done).into_owned(), is_error: false },
            Err(error) => Notice { text: visible::line(&error.to_string()).into_owned(), is_error: true },
        }
    });
    model.busy = orders.len();
}

/// Reads keys on a thread of its own: a terminal cannot be waited for together with all else.
fn read_keys() -> io::Result<mpsc::Receiver<Typed>> {
    let (typed, keys) = mpsc::channel(KEYS);
    let read = move || {
        while !typed.is_closed() {
            let event = match event::poll(KEY) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let sent = match event {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    typed.blocking_send(Typed::Key(key))
                }
                Ok(Event::Resize(..)) => typed.blocking_send(Typed::Resized),
                Ok(_) => continue,
                Err(_) => return,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".into()).spawn(read)?;
    Ok(keys)
}

/// The server that an order is about.
fn server_of(act: &Act) -> &str {
    match act {
        Act::Redial { server } | Act::Park { server } | Act::Wake { server } | Act::Drain { server } => {
            server
        }
        _ => "",
    }
}
