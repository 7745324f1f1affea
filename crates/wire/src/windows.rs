//! What the crates above need of Windows beside servers: who this user is, things that are this user's alone, jobs. **No stable
//! interface**, and nothing of it is there on other systems.

mod descriptor;
mod files;
mod job;
mod peers;
mod pipe;
mod private;
mod readers;
mod reading;
mod user;
pub(crate) mod wide;

pub use descriptor::owner_of_pipe;
pub use files::{can_be_moved, create_folder, create_new, cut, open_append, rename};
pub(crate) use job::KILLED;
pub use job::{Group, Job};
pub use peers::connected_from;
pub use pipe::is_read_by_nobody;
pub use private::{OnlyUser, Thing};
pub use readers::{copy_access, is_open_to_others};
pub use reading::Reading;
pub use user::{Sid, lives, process_user, this_user};
