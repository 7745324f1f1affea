//! What a server does to itself, in the words of the system that it runs on.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    close_stdin, close_stdout, escapee, grandchild, kill, on_term, orphan, set_variable, stop, stranger,
    unbuffered, worker,
};
#[cfg(windows)]
pub(crate) use windows::{
    close_stdin, close_stdout, escapee, grandchild, kill, on_term, orphan, set_variable, stop, stranger,
    unbuffered, worker,
};
