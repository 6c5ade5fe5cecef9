//! Anonymous shared memory: sealed, reserved memfds and their mappings.
//!
//! In: a size or some bytes. Out: a file descriptor that can be handed to a child, and mapped. The one hard idea:
//! memory is reserved (`fallocate`) before it is used, so that a machine without enough of it says so here, with an
//! error, and not later with a SIGBUS; and the size is sealed, so that no process that holds the descriptor can
//! shrink it under another. There is no name in any file system: when the last process is gone, so is the memory.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, ftruncate,
    memfd_create,
};
use rustix::io::Errno;

use crate::error::{Error, Kind};

/// A mapping, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is plain memory; who may touch which part of it when is the business of its users.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives out nothing but the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory of this process alone.
    pub fn private(bytes: u64) -> Result<Mapping, Error> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        Mapping::new(0..bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
    }

    /// The memory behind a descriptor.
    pub fn shared(fd: BorrowedFd<'_>, bytes: u64, writable: bool) -> Result<Mapping, Error> {
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        Mapping::new(0..bytes, protection, libc::MAP_SHARED, fd.as_raw_fd())
    }

    /// A part of the memory behind a descriptor, from the beginning of a page on, to read and write.
    pub fn part(fd: BorrowedFd<'_>, part: Range<u64>) -> Result<Mapping, Error> {
        Mapping::new(part, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd.as_raw_fd())
    }

    /// Its first byte; valid for [`Mapping::bytes`] bytes, and aligned to a page unless it is empty.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    // By way of the C library and not of rustix, whose system calls a race detector does not see: it would take the
    // next mapping at the same address for the same memory.
    fn new(part: Range<u64>, protection: i32, flags: i32, fd: RawFd) -> Result<Mapping, Error> {
        let bytes = part.end.saturating_sub(part.start);
        let length = length(bytes)?;
        // Within the file, whose size is one of the kernel's own offsets.
        let from = part.start as libc::off_t;
        if length == 0 {
            return Ok(Mapping { start: NonNull::dangling(), bytes: 0 });
        }
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, from) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, bytes: length }),
            _ => Err(shortage(bytes, std::io::Error::last_os_error())),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: this value owns the mapping, and nothing borrowed from it outlives it. Nothing can be done
            // about an error, and none is possible for a mapping that exists.
            let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

/// Zeroed memory to share: `bytes` of it are reserved, its size is fixed.
pub fn reserve(name: &CStr, bytes: u64) -> Result<OwnedFd, Error> {
    within_file_limit(bytes)?;
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|e| shortage(bytes, e))?;
    ftruncate(&fd, bytes).map_err(|e| shortage(bytes, e))?;
    loop {
        match if bytes == 0 { Ok(()) } else { fallocate(&fd, FallocateFlags::empty(), 0, bytes) } {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(e) => return Err(shortage(bytes, e)),
        }
    }
    seal(&fd, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(fd)
}

/// Memory that holds `content` and that nobody can change any more.
pub fn publish(name: &CStr, content: &[u8]) -> Result<OwnedFd, Error> {
    let bytes = content.len() as u64;
    within_file_limit(bytes)?;
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|e| shortage(bytes, e))?;
    let mut rest = content;
    while !rest.is_empty() {
        match rustix::io::write(&fd, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(e) => return Err(shortage(bytes, e)),
        }
    }
    seal(&fd, SealFlags::GROW | SealFlags::SHRINK | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(fd)
}

/// Refuses memory that lacks a seal: who maps it relies on nobody shrinking or changing it.
pub fn require(fd: &impl AsFd, seals: SealFlags) -> Result<(), Error> {
    match fcntl_get_seals(fd) {
        Ok(found) if found.contains(seals) => Ok(()),
        _ => Err(Error::new(Kind::Internal, "shared memory is not sealed as it must be")),
    }
}

/// The size of the memory behind a descriptor.
pub fn size(fd: &impl AsFd) -> Result<u64, Error> {
    let stat = rustix::fs::fstat(fd)
        .map_err(|e| Error::new(Kind::Internal, format!("cannot ask the size of shared memory: {e}")))?;
    Ok(stat.st_size as u64)
}

fn seal(fd: &OwnedFd, seals: SealFlags) -> Result<(), Error> {
    fcntl_add_seals(fd, seals).map_err(|e| {
        Error::new(Kind::Resource, format!("this kernel cannot fix the size of shared memory: {e}"))
    })
}

/// Shared memory is a file to the kernel; one beyond the limit for files would not fail but end the process (SIGXFSZ).
fn within_file_limit(bytes: u64) -> Result<(), Error> {
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(most) if bytes > most => {
            let message = format!("{bytes} bytes of shared memory are more than the file size limit, {most}");
            Err(Error::new(Kind::Resource, message).help("raise it with `ulimit -f`, or use smaller slots"))
        }
        _ => Ok(()),
    }
}

fn length(bytes: u64) -> Result<usize, Error> {
    usize::try_from(bytes)
        .ok()
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| shortage(bytes, Errno::NOMEM))
}

fn shortage(bytes: u64, why: impl Into<std::io::Error>) -> Error {
    let why = why.into();
    Error::new(Kind::Resource, format!("the machine does not give {bytes} bytes of memory: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_without_its_seals_is_refused() {
        let fixed = reserve(c"test", 4096).unwrap();
        require(&fixed, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        assert_eq!(require(&fixed, SealFlags::WRITE).unwrap_err().kind, Kind::Internal);
        let published = publish(c"test", b"plan").unwrap();
        require(&published, SealFlags::SHRINK | SealFlags::WRITE).unwrap();
        assert!(rustix::io::write(&published, b"x").is_err());
        let open = memfd_create(c"test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(require(&open, SealFlags::SHRINK).is_err());
    }
}
