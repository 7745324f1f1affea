//! `linetender drill`: our own doors keep every row, and a target that does not is found out.

mod green;
mod kit;
mod red;
mod routes;
