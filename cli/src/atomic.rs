//! Files that are either written whole or not touched.
//!
//! In: a path and bytes. Out: the file. A temporary file in the same folder is written, flushed to the disk and renamed over
//! the path, so that whoever looks sees the old file or the new one. The permissions of a replaced file are kept, and a
//! symbolic link keeps pointing at what is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes `bytes` to `path`.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // /dev/stdout, a pipe: nothing to replace, and a rename over it would be a disaster.
    let special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    let done = if special {
        OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes))
    } else {
        replace(path, bytes)
    };
    done.map_err(|error| Failure::file("write", path, &error))
}

/// Whether two paths lead to one file.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    let of = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    of(one).is_some_and(|found| of(other) == Some(found))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let (temporary, mut file) = temporary(&path)?;
    let written = (|| {
        if let Ok(old) = fs::metadata(&path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    })();
    if written.is_err() {
        // The error of the write is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file beside `path`.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    for attempt in 0..1000 {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let beside = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::write;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring.plan");
        write(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_followed_and_a_folder_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        let refused = write(folder.path(), b"x").unwrap_err();
        assert_eq!(refused.status(), 2);
        assert!(refused.to_string().contains(&folder.path().display().to_string()));
        let missing = write(&folder.path().join("no/where"), b"x").unwrap_err();
        assert!(missing.to_string().contains("no/where") && missing.status() == 2, "{missing}");
    }
}
