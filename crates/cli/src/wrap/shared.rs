//! Whether a backup could give away what it holds: it stands beside its file, and that may be in a repository.

use std::path::Path;

use super::entry::Entry;

/// Whether somebody may commit what stands beside this file.
pub(super) fn is_in_repository(path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .any(|folder| [".git", ".hg", ".jj"].iter().any(|name| folder.join(name).exists()))
}

/// Whether an entry brings variables or headers with it: most of these are keys.
pub(super) fn has_values(entries: &[Entry<'_>]) -> bool {
    entries.iter().any(|entry| {
        let tables =
            [entry.dialect.env(), entry.dialect.headers()].into_iter().filter_map(|key| entry.node.get(key));
        tables.filter_map(|table| table.value.table()).any(|members| !members.is_empty())
    })
}
