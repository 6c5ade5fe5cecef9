//! The secret of a user, in a file.
//!
//! In: the path. Out: the secret that it holds; the first rank that asks makes it. Ranks of one user find each other
//! with it, on one host or on several that share a home, and no other user can read it. The one hard idea: it appears
//! whole or not at all, under its name at most once (a link fails if the name is there, on NFS too), so that ranks
//! that start together all read the same.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use super::secret::{Secret, random};
use crate::error::{Error, Kind};

/// How long it is.
const BYTES: usize = 32;

/// Where it lies: `$XDG_STATE_HOME/rcc/secret`, else `$HOME/.local/state/rcc/secret`.
pub(super) fn path(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        let message = "RCC_SECRET is not set, and neither XDG_STATE_HOME nor HOME says where a file could be";
        Error::new(Kind::Invalid, message).help("set RCC_SECRET to the same random text on all ranks")
    })?;
    Ok(state.join("rcc/secret"))
}

/// The secret in the file, which is made if there is none.
pub(super) fn read_or_make(path: &Path) -> Result<Secret, Error> {
    let failed = |doing: &str, why: io::Error| {
        let message = format!("cannot {doing} the secret in {}: {why}", path.display());
        Error::new(Kind::Invalid, message).help("set RCC_SECRET to the same random text on all ranks")
    };
    match open(path) {
        Ok(file) => return read(file, path),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(failed("open", e)),
    }
    make(path, &random()?, &random()?).map_err(|e| failed("make", e))?;
    read(open(path).map_err(|e| failed("open", e))?, path)
}

fn open(path: &Path) -> io::Result<File> {
    // Not by way of a link, and without waiting for whoever would write to a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn read(mut file: File, path: &Path) -> Result<Secret, Error> {
    let refused = |why: String| {
        Error::new(Kind::Invalid, format!("the secret in {} is not taken: {why}", path.display())).help(
            "remove the file, and it is made anew; or set RCC_SECRET to the same random text on all ranks",
        )
    };
    let meta = file.metadata().map_err(|e| refused(e.to_string()))?;
    let me = rustix::process::geteuid().as_raw();
    if !meta.is_file() {
        return Err(refused("it is no plain file".to_string()));
    }
    if meta.uid() != me {
        return Err(refused(format!("it belongs to user {}, and this is user {me}", meta.uid())));
    }
    if meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(refused(format!("others may read or write it (its mode is {mode:03o}, not 600)")));
    }
    if meta.len() != BYTES as u64 {
        return Err(refused(format!("it has {} bytes, not {BYTES}", meta.len())));
    }
    let mut bytes = Zeroizing::new(vec![0; BYTES]);
    file.read_exact(&mut bytes).map_err(|e| refused(e.to_string()))?;
    Secret::new(std::mem::take(&mut *bytes))
}

/// Writes it under a name of its own, and then gives it the name that counts, if nobody was faster.
fn make(path: &Path, secret: &[u8; BYTES], unique: &[u8; 8]) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Err(ErrorKind::InvalidFilename.into()) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut name = path.as_os_str().to_os_string().into_vec();
    name.extend(format!(".{:016x}", u64::from_le_bytes(*unique)).bytes());
    let own = PathBuf::from(OsString::from_vec(name));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
    let linked =
        file.write_all(secret).and_then(|()| file.sync_all()).and_then(|()| {
            match std::fs::hard_link(&own, path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
                done => done,
            }
        });
    let removed = std::fs::remove_file(&own);
    linked.and(removed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn ranks_that_start_together_get_one_secret_that_only_they_can_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/rcc/secret");
        let secrets: Vec<Secret> = std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_make(&path).unwrap())).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|s| s.expose() == secrets[0].expose() && s.expose().len() == BYTES));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "what was written aside is gone");
    }

    #[test]
    fn a_file_that_others_may_have_seen_or_made_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        let refused = |why: &str| {
            let error = read_or_make(&path).unwrap_err();
            assert!(error.kind == Kind::Invalid && error.message.contains(why), "{error}");
        };
        read_or_make(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        refused("640");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            refused("belongs to user 65534");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap();
        refused("33 bytes");
        let elsewhere = home.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        refused("open");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        refused("no plain file");
    }

    #[test]
    fn the_path_follows_the_environment() {
        let with = |set: &'static [(&str, &str)]| {
            path(&move |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        assert_eq!(with(&[("HOME", "/h")]).unwrap(), Path::new("/h/.local/state/rcc/secret"));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]).unwrap(), Path::new("/s/rcc/secret"));
        assert_eq!(
            with(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]).unwrap(),
            Path::new("/h/.local/state/rcc/secret")
        );
        assert!(with(&[]).unwrap_err().message.contains("RCC_SECRET"));
    }
}
