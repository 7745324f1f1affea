//! What keys do.

use linetender_holder::holder::Act;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{By, Model, Notice, Order, Over, View};
use super::strip::SPANS;

/// How far a page goes.
const PAGE: usize = 10;

/// What is to be done beyond the model.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Wish {
    Nothing,
    /// Look now: what is shown needs more than is known.
    Look,
    Do(Order),
    Redraw,
    Leave,
}

/// Takes a key in.
pub(super) fn press(model: &mut Model, key: KeyEvent) -> Wish {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Wish::Leave,
            KeyCode::Char('l') => Wish::Redraw,
            _ => Wish::Nothing,
        };
    }
    match std::mem::take(&mut model.over) {
        Over::Nothing => plain(model, key.code),
        // Any other key takes the help away; it does nothing else.
        Over::Help { scroll } => {
            match key.code {
                KeyCode::Down | KeyCode::Char('j') => {
                    model.over = Over::Help { scroll: (scroll + 1).min(super::draw::KEYS_LINES) }
                }
                KeyCode::Up | KeyCode::Char('k') => {
                    model.over = Over::Help { scroll: scroll.saturating_sub(1) }
                }
                _ => {}
            }
            Wish::Nothing
        }
        Over::Filter => {
            filter(model, key.code);
            Wish::Nothing
        }
        Over::Confirm(order) if matches!(key.code, KeyCode::Char('y' | 'Y')) => Wish::Do(order),
        Over::Confirm(_) => {
            model.notice = Some(Notice { text: "nothing was done".to_owned(), is_error: false });
            Wish::Nothing
        }
    }
}

fn filter(model: &mut Model, code: KeyCode) {
    match code {
        KeyCode::Enter => return,
        KeyCode::Esc => {
            model.filter.clear();
            return;
        }
        KeyCode::Backspace => {
            model.filter.pop();
        }
        KeyCode::Char(character) => model.type_filter(character),
        _ => {}
    }
    model.over = Over::Filter;
}

fn plain(model: &mut Model, code: KeyCode) -> Wish {
    model.notice = None;
    match code {
        KeyCode::Char('q') => return Wish::Leave,
        KeyCode::Char('?') | KeyCode::F(1) => model.over = Over::Help { scroll: 0 },
        KeyCode::Char('/') => {
            model.view = View::All;
            model.over = Over::Filter;
        }
        KeyCode::Enter | KeyCode::Right => {
            if let (View::All, Some(row)) = (&model.view, model.subject()) {
                model.view = View::One { key: row.key.clone(), scroll: 0 };
                return Wish::Look;
            }
        }
        KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => match &model.view {
            View::One { .. } => model.view = View::All,
            View::All => model.filter.clear(),
        },
        KeyCode::Down | KeyCode::Char('j') => go(model, |at| at + 1),
        KeyCode::Up | KeyCode::Char('k') => go(model, |at| at.saturating_sub(1)),
        KeyCode::PageDown | KeyCode::Char(' ') => go(model, |at| at + PAGE),
        KeyCode::PageUp => go(model, |at| at.saturating_sub(PAGE)),
        KeyCode::Home | KeyCode::Char('g') => go(model, |_| 0),
        KeyCode::End | KeyCode::Char('G') => go(model, |_| usize::MAX),
        KeyCode::Char('+' | '=') => model.span = (model.span + 1).min(SPANS.len() - 1),
        KeyCode::Char('-') => model.span = model.span.saturating_sub(1),
        KeyCode::Char('t') => model.sort_by(By::Trouble),
        KeyCode::Char('n') => model.sort_by(By::Name),
        KeyCode::Char('c') => model.sort_by(By::Calls),
        KeyCode::Char('l') => model.sort_by(By::Latency),
        KeyCode::Char('u') => model.sort_by(By::Unknown),
        KeyCode::Char('m') => model.sort_by(By::Memory),
        KeyCode::Char('r') => return order(model, |server| Act::Redial { server }, true),
        KeyCode::Char('p') => return order(model, |server| Act::Park { server }, true),
        // It disturbs nobody: a server that is up stays as it is.
        KeyCode::Char('w') => return order(model, |server| Act::Wake { server }, false),
        _ => {}
    }
    Wish::Nothing
}

/// The selection moves, or the text of one server.
fn go(model: &mut Model, to: impl Fn(usize) -> usize) {
    match &mut model.view {
        View::All => {
            let at = to(model.selected_at());
            model.select(at);
        }
        View::One { key, scroll } => {
            let (key, at) = (key.clone(), *scroll);
            let last = super::draw::furthest(model, &key);
            if let View::One { scroll, .. } = &mut model.view {
                *scroll = to(at.min(last)).min(last);
            }
        }
    }
}

fn order(model: &mut Model, act: impl Fn(String) -> Act, asks_first: bool) -> Wish {
    let Some(row) = model.subject() else { return Wish::Nothing };
    let Some(server) = row.key.server.clone() else {
        let text = "this process has no server that could be told anything".to_owned();
        model.notice = Some(Notice { text, is_error: true });
        return Wish::Nothing;
    };
    let order = Order { pid: row.key.pid, act: act(server) };
    if asks_first {
        model.over = Over::Confirm(order);
        return Wish::Nothing;
    }
    Wish::Do(order)
}
