use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;

use super::{check_folder, read, read_named};

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-trusted-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, "text").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_group_may_write_only_if_it_is_the_owners_own() {
    let folder = Folder::new("group");
    let file = folder.file("file", 0o664);
    let us = rustix::process::geteuid().as_raw();
    if chown(&file, None, Some(us)).is_ok() {
        read(&file).unwrap();
    }
    if chown(&file, None, Some(us + 1)).is_err() {
        eprintln!("not tried: a file of another group, which only root can make");
        return;
    }
    let refused = read(&file).unwrap_err().to_string();
    assert!(refused.contains(&format!("can be written by group {}", us + 1)), "{refused}");
}

#[test]
fn links_of_our_own_are_followed_where_a_user_named_them_and_nowhere_else() {
    let folder = Folder::new("links");
    let file = folder.file("file", 0o600);
    let (first, second) = (folder.0.join("first"), folder.0.join("second"));
    symlink("file", &first).unwrap();
    symlink(&first, &second).unwrap();
    assert_eq!(read_named(&second).unwrap().1, fs::canonicalize(&file).unwrap());
    assert!(read(&second).unwrap_err().to_string().contains("is a symbolic link"));
    let round = folder.0.join("round");
    symlink(&round, &round).unwrap();
    assert!(read_named(&round).is_err());
}

#[test]
fn a_folder_is_as_good_as_the_one_that_it_lies_in() {
    let folder = Folder::new("way");
    let (outer, inner) = (folder.0.join("outer"), folder.0.join("outer/inner"));
    fs::create_dir_all(&inner).unwrap();
    check_folder(&inner).unwrap();
    fs::set_permissions(&outer, Permissions::from_mode(0o777)).unwrap();
    let refused = check_folder(&inner).unwrap_err().to_string();
    assert!(refused.contains("every user can replace it"), "{refused}");
    fs::set_permissions(&outer, Permissions::from_mode(0o1777)).unwrap();
    check_folder(&inner).unwrap();
}
