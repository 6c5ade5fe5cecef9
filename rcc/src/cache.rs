//! Compiled plans on disk.
//!
//! In: a key (a digest of all that a plan depends on, the compiler's own sources among it), a plan with its channels' geometry. Out: the
//! same again, for any process of the user. Entries are written whole, by a rename, so that processes need no lock: two that write one write the
//! same. What is read is not trusted: an entry that is cut short, damaged, or of another key is as good as none, and a plan is verified as
//! any that comes from a file; whoever asks compiles it anew, and that takes the entry's place.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use runtime::job::Geometry;
use sha2::{Digest, Sha256};

/// What an entry begins with; the number is that of its form.
const MAGIC: &[u8; 8] = b"rccplan1";

/// How entries' files end.
const ENDING: &str = "cached";

/// More than this is not read.
const MOST_ENTRY: u64 = 128 << 20;

/// When entries take more than this, those that were used longest ago go.
const MOST_BYTES: u64 = 256 << 20;

/// How old a file must be that was left half written by a process that has ended.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder of compiled plans.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    most: u64,
}

/// What tells plans apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey([u8; 32]);

/// What is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// How many plans.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What is kept of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) geometry: Geometry,
    /// As a plan file.
    pub(crate) plan: Vec<u8>,
}

impl CacheKey {
    /// For a plan that depends on `parts` and on the compiler.
    pub fn of(parts: &[&[u8]]) -> CacheKey {
        let mut hasher = Sha256::new();
        for part in [MAGIC, env!("RCC_COMPILER").as_bytes()].iter().chain(parts) {
            // With its length: no two lists of parts look alike.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        CacheKey(hasher.finalize().into())
    }
}

impl Cache {
    /// In this folder, which is made when something is written first.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), most: MOST_BYTES }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is there.
    ///
    /// # Errors
    /// What the system says; a folder that is not there is empty.
    pub fn contents(&self) -> io::Result<Contents> {
        let add = |sum: Contents, (_, bytes, _): &(PathBuf, u64, SystemTime)| Contents {
            entries: sum.entries + 1,
            bytes: sum.bytes + bytes,
        };
        Ok(self.list()?.iter().fold(Contents::default(), add))
    }

    /// Removes all entries, and says what they were.
    ///
    /// # Errors
    /// What the system says.
    pub fn clear(&self) -> io::Result<Contents> {
        let mut gone = Contents::default();
        for (path, bytes, _) in self.list()? {
            match fs::remove_file(path) {
                Ok(()) => gone = Contents { entries: gone.entries + 1, bytes: gone.bytes + bytes },
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.sweep(Duration::ZERO);
        Ok(gone)
    }

    /// What was written under a key; nothing, if there is none that is whole.
    pub(crate) fn read(&self, key: &CacheKey) -> Option<Entry> {
        let path = self.path(key);
        let file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        (&file).take(MOST_ENTRY + 1).read_to_end(&mut bytes).ok()?;
        let entry = decode(&bytes, key);
        match &entry {
            // Who uses an entry keeps it young; that it cannot is no reason not to use it.
            Some(_) => drop(file.set_modified(SystemTime::now())),
            None => tracing::debug!(target: "rcc::cache", path = %path.display(), "damaged: compiled anew"),
        }
        entry
    }

    /// Keeps a plan. That it cannot be kept is told, and nothing else happens.
    pub(crate) fn write(&self, key: &CacheKey, entry: &Entry) {
        let path = self.path(key);
        match self.place(&path, &encode(entry, key)) {
            Ok(()) => self.prune(),
            Err(error) => {
                tracing::debug!(target: "rcc::cache", path = %path.display(), %error, "not written");
            }
        }
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        let name: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.{ENDING}"))
    }

    /// Writes beside, and renames.
    fn place(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut number = 0;
        let (beside, mut file) = loop {
            let beside = path.with_extension(format!("{}-{number}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside) {
                Ok(file) => break (beside, file),
                // Another thread of this process writes the same.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
                Err(error) => return Err(error),
            }
        };
        let written = file.write_all(bytes).and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// All entries with their sizes and when they were used last.
    fn list(&self) -> io::Result<Vec<(PathBuf, u64, SystemTime)>> {
        let all = match fs::read_dir(&self.folder) {
            Ok(all) => all,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let entries = all.filter_map(|entry| {
            let path = entry.ok()?.path();
            let found = fs::symlink_metadata(&path).ok()?;
            let ours = found.is_file() && kind(&path) == Some(Found::Entry);
            ours.then(|| (path, found.len(), found.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
        });
        Ok(entries.collect())
    }

    /// Lets go of the oldest entries where they are too many, and of what was left half written.
    fn prune(&self) {
        let Ok(mut all) = self.list() else { return };
        let mut bytes: u64 = all.iter().map(|entry| entry.1).sum();
        if bytes <= self.most {
            return;
        }
        self.sweep(ABANDONED);
        all.sort_by_key(|entry| entry.2);
        for (path, size, _) in all {
            if bytes <= self.most / 4 * 3 {
                break;
            }
            // If another process was faster, it is gone as well.
            let _ = fs::remove_file(path);
            bytes -= size;
        }
    }

    /// Removes files that nobody writes any more.
    fn sweep(&self, age: Duration) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            if kind(&path) == Some(Found::Half) && old().is_some_and(|old| old >= age) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// What a file of the cache is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A plan.
    Entry,
    /// A plan that is being written, or was when the process ended.
    Half,
}

/// What a file is by its name; none if it is not the cache's, which may lie in a folder with others.
fn kind(path: &Path) -> Option<Found> {
    let (key, rest) = path.file_name()?.to_str()?.split_once('.')?;
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if key.len() != 64 || !key.bytes().all(hex) {
        return None;
    }
    if rest == ENDING {
        return Some(Found::Entry);
    }
    let (process, number) = rest.strip_suffix(".part")?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(process) && digits(number)).then_some(Found::Half)
}

/// Magic, key, digest of the rest, geometry, plan.
fn encode(entry: &Entry, key: &CacheKey) -> Vec<u8> {
    let Geometry { slots, slot_bytes } = entry.geometry;
    let content = [&slots.to_le_bytes()[..], &slot_bytes.to_le_bytes(), &entry.plan].concat();
    [&MAGIC[..], &key.0, &Sha256::digest(&content), &content].concat()
}

fn decode(bytes: &[u8], key: &CacheKey) -> Option<Entry> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (of, rest) = rest.split_first_chunk::<32>()?;
    let (digest, content) = rest.split_first_chunk::<32>()?;
    if magic != MAGIC || *of != key.0 || Sha256::digest(content)[..] != digest[..] {
        return None;
    }
    let (slots, rest) = content.split_first_chunk::<4>()?;
    let (slot_bytes, plan) = rest.split_first_chunk::<4>()?;
    let geometry =
        Geometry { slots: u32::from_le_bytes(*slots), slot_bytes: u32::from_le_bytes(*slot_bytes) };
    Some(Entry { geometry, plan: plan.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fill: u8) -> Entry {
        Entry { geometry: Geometry { slots: 4, slot_bytes: 4096 }, plan: vec![fill; 1000] }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("not/yet"));
        let (one, other) = (CacheKey::of(&[b"one"]), CacheKey::of(&[b"other"]));
        assert_eq!((cache.read(&one), cache.contents().unwrap()), (None, Contents::default()));
        cache.write(&one, &entry(1));
        assert_eq!((cache.read(&one), cache.read(&other)), (Some(entry(1)), None));
        let whole = fs::read(cache.path(&one)).unwrap();
        for at in (0..whole.len()).step_by(37) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            fs::write(cache.path(&one), &damaged).unwrap();
            assert_eq!(cache.read(&one), None, "byte {at}");
            fs::write(cache.path(&one), &whole[..at]).unwrap();
            assert_eq!(cache.read(&one), None, "cut at {at}");
        }
        // One of another key under this name.
        fs::write(cache.path(&other), &whole).unwrap();
        assert_eq!(cache.read(&other), None);
        cache.write(&one, &entry(2));
        assert_eq!(cache.read(&one), Some(entry(2)));
        assert_eq!(cache.clear().unwrap().entries, 2);
        assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 0);
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { most: 5000, ..Cache::new(folder.path()) };
        let key = |i: u8| CacheKey::of(&[&[i]]);
        for i in 0..4 {
            cache.write(&key(i), &entry(i));
            let age = SystemTime::now() - Duration::from_secs(1000 - u64::from(i));
            File::open(cache.path(&key(i))).unwrap().set_modified(age).unwrap();
        }
        // Used: it is young again.
        assert!(cache.read(&key(0)).is_some());
        cache.write(&key(4), &entry(4));
        let left: Vec<u8> = (0..5).filter(|&i| cache.read(&key(i)).is_some()).collect();
        assert_eq!(left, [0, 3, 4]);
    }

    #[test]
    fn many_writers_and_readers_see_whole_entries() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path());
        let key = CacheKey::of(&[b"all"]);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let cache = &cache;
                scope.spawn(move || (0..50).for_each(|_| cache.write(&key, &entry(writer))));
                scope.spawn(move || {
                    let whole = |found: Entry| assert!((0..4).any(|fill| found == entry(fill)));
                    (0..200).for_each(|_| cache.read(&key).into_iter().for_each(whole));
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
