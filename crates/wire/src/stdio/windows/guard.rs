//! What a process can do against its own servers, which run as the same user. Here that is nothing: who may open a process is
//! decided by its user, and whose orphans come to whom by its job.

/// Nothing happens: this system knows no such attribute.
pub const fn hide() {}

/// Nothing happens: a server's orphans stay in its job.
pub const fn adopt_orphans() {}

/// Nothing happens: a program does not know what it inherited, and our servers inherit nothing of it.
pub const fn close_inherited() {}
