//! Faults of our own that tests inject. Not in release builds.
//!
//! A test names a folder in `LINETENDER_TEST_FAULTS`, and puts a file into it that is called like a task: the next time
//! that task comes by, it removes the file and panics. A file called `TASK.block` makes it block its thread instead, and one
//! called `TASK.always` makes it panic each time.

/// A task of ours comes by.
#[inline]
pub fn point(task: &str) {
    #[cfg(debug_assertions)]
    imp::point(task);
    #[cfg(not(debug_assertions))]
    let _ = task;
}

#[cfg(debug_assertions)]
mod imp {
    use std::path::PathBuf;
    use std::sync::OnceLock;

    static FAULTS: OnceLock<Option<PathBuf>> = OnceLock::new();

    #[expect(clippy::disallowed_methods, reason = "only tests set it, and only debug builds look")]
    pub(super) fn point(task: &str) {
        let faults = FAULTS.get_or_init(|| std::env::var_os("LINETENDER_TEST_FAULTS").map(PathBuf::from));
        let Some(folder) = faults else { return };
        let once = std::fs::remove_file(folder.join(task)).is_ok();
        let always = folder.join(format!("{task}.always")).exists();
        assert!(!once && !always, "the test asked the {task} to panic");
        if std::fs::remove_file(folder.join(format!("{task}.block"))).is_ok() {
            loop {
                std::thread::park();
            }
        }
    }
}
