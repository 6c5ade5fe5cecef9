//! What a rank writes, line by line.
//!
//! In: the reading end of a pipe. Out: its lines, each with a tag, whole: lines of several ranks do not mix. Where the
//! launcher's own output is closed, so is the pipe, and the rank learns it as it would without a pipe between.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::output::Output;

/// A longer line is cut: a rank that never ends one does not fill the memory.
const LONGEST: usize = 1 << 20;

/// One pipe.
pub(super) struct Stream {
    pipe: Option<std::fs::File>,
    to_errors: bool,
    tag: Vec<u8>,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl Stream {
    /// What comes from standard output goes to standard output.
    pub(super) fn output(pipe: OwnedFd, tag: &str) -> io::Result<Stream> {
        Stream::new(pipe, false, tag)
    }

    /// What comes from standard error goes to standard error.
    pub(super) fn errors(pipe: OwnedFd, tag: &str) -> io::Result<Stream> {
        Stream::new(pipe, true, tag)
    }

    fn new(pipe: OwnedFd, to_errors: bool, tag: &str) -> io::Result<Stream> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Stream { pipe: Some(pipe.into()), to_errors, tag: tag.as_bytes().to_vec(), line: Vec::new() })
    }

    /// What to poll; none once it has ended.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what has come, and writes what lines that makes. Not more than a bit at a time: there are others.
    pub(super) fn pump(&mut self, output: &mut Output) {
        let mut chunk = [0; 16 << 10];
        let mut lines = Vec::new();
        for _ in 0..16 {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(n) => cut(&chunk[..n], &self.tag, &mut self.line, &mut lines),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() && !self.line.is_empty() {
            cut(b"\n", &self.tag, &mut self.line, &mut lines);
        }
        self.write(output, &lines);
    }

    /// The end: what others still hold the pipe for is not waited for.
    pub(super) fn finish(&mut self, output: &mut Output) {
        self.pipe = None;
        self.pump(output);
    }

    fn write(&mut self, output: &mut Output, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let written = match self.to_errors {
            true => io::stderr().write_all(lines).is_ok(),
            false => output.bytes(lines).and_then(|()| output.flush()).is_ok(),
        };
        if !written {
            self.pipe = None;
            self.line.clear();
        }
    }
}

/// Cuts what has come into lines. `line` is the beginning of one that is not whole.
fn cut(came: &[u8], tag: &[u8], line: &mut Vec<u8>, lines: &mut Vec<u8>) {
    for part in came.split_inclusive(|&byte| byte == b'\n') {
        line.extend_from_slice(part);
        if part.ends_with(b"\n") || line.len() >= LONGEST {
            lines.extend_from_slice(tag);
            lines.append(line);
            if !lines.ends_with(b"\n") {
                lines.push(b'\n');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_tagged_however_they_come() {
        let text = b"one\n\ntwo and\xff a bit\nthree";
        for size in 1..text.len() {
            let (mut line, mut lines) = (Vec::new(), Vec::new());
            text.chunks(size).for_each(|part| cut(part, b"[1] ", &mut line, &mut lines));
            assert_eq!(lines, b"[1] one\n[1] \n[1] two and\xff a bit\n");
            assert_eq!(line, b"three");
        }
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        (0..3).for_each(|_| cut(&vec![b'x'; LONGEST / 2], b"", &mut line, &mut lines));
        assert_eq!((lines.len(), line.len()), (LONGEST + 1, LONGEST / 2));
    }
}
