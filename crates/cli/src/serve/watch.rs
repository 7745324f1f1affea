//! Whether something changed in a file's folder.

use std::path::Path;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// How long changes are gathered before they are told of: each costs a look at the file, and something else in its folder,
/// such as a log, may change all the time.
const GATHERED: Duration = Duration::from_millis(100);

/// The changes in a folder.
pub(super) struct Changes {
    seen: mpsc::Receiver<()>,
    /// It looks for as long as it is kept.
    _watcher: Option<RecommendedWatcher>,
}

impl Changes {
    /// Those from now on. The folder is watched, and not the file: editors put a new one in the place of the old.
    pub(super) fn beside(file: &Path) -> notify::Result<Self> {
        let (changed, seen) = mpsc::channel(1);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| !changes(event.kind)) {
                return;
            }
            // One that waits already stands for this one too.
            let _ = changed.try_send(());
        })?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(Self { seen, _watcher: Some(watcher) })
    }

    /// None, for ever.
    pub(super) fn unseen() -> Self {
        Self { seen: mpsc::channel(1).1, _watcher: None }
    }

    /// Waits for one, and a moment for those that come with it.
    pub(super) async fn next(&mut self) {
        if self.seen.recv().await.is_none() {
            return std::future::pending().await;
        }
        tokio::time::sleep(GATHERED).await;
        while self.seen.try_recv().is_ok() {}
    }
}

/// Whether this leaves anything different. Being looked at does not, and we look at the file ourselves each time.
fn changes(what: EventKind) -> bool {
    match what {
        EventKind::Access(how) => how == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Changes, GATHERED};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("linetender-watch-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn a_file_that_is_looked_at_has_not_changed() {
        let folder = Folder::new("looked-at");
        let file = folder.0.join("file");
        let mut changes = Changes::beside(&file).unwrap();
        std::fs::write(&file, "one").unwrap();
        changes.next().await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
        // That it was looked at would have been told by now.
        assert!(tokio::time::timeout(GATHERED * 10, changes.next()).await.is_err());
        std::fs::rename(&file, folder.0.join("other")).unwrap();
        changes.next().await;
    }

    #[tokio::test]
    async fn a_folder_that_is_never_left_alone_is_not_waited_for() {
        let folder = Folder::new("busy");
        let mut changes = Changes::beside(&folder.0.join("file")).unwrap();
        let busy = async {
            for _ in 0..200 {
                std::fs::write(folder.0.join("log"), "again").unwrap();
                tokio::time::sleep(GATHERED / 10).await;
            }
        };
        tokio::select! {
            () = changes.next() => {}
            () = busy => panic!("it is waited for"),
        }
    }
}
