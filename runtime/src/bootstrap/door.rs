//! A file descriptor handed from rank 0 to the other ranks of its machine.
//!
//! In: the descriptor, and connections that know who is at their other end. Out: a descriptor of the same file at every
//! rank. Descriptors travel over Unix sockets only: rank 0 opens a *door*, a socket under a random name that is in no file
//! system, and tells the name over those connections. The name is in a list that all users of the machine can read, so
//! whoever comes must be of the same user and show a proof that only the rank can make that it claims to be; each
//! rank gets the descriptor once.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg,
    socket_with,
};

use super::link::Link;
use super::patience::GREETING_TIME;
use super::secret::{TAG, random};
use crate::error::{Error, Kind};

/// A random name.
pub(super) type Name = [u8; 16];

/// What a visitor says: its rank, and its proof.
const CLAIM: usize = 4 + TAG;

/// How many visitors there may be beside one for each rank.
const SPARE: usize = 64;

/// How long a rank waits for a door that it has been told of.
const ENTRY: Duration = Duration::from_secs(30);

/// Rank 0's side.
pub(super) struct Door<'a> {
    pub(super) name: Name,
    listener: UnixListener,
    fd: BorrowedFd<'a>,
    visitors: VecDeque<Visitor>,
    /// Which ranks have got it; rank r is number r - 1.
    given: Vec<bool>,
}

struct Visitor {
    stream: UnixStream,
    since: Instant,
    said: Vec<u8>,
}

impl<'a> Door<'a> {
    pub(super) fn open(fd: BorrowedFd<'a>, others: usize) -> Result<Door<'a>, Error> {
        let failed = |e: std::io::Error| {
            Error::new(
                Kind::Resource,
                format!("rank 0 cannot open a socket for the ranks of its machine: {e}"),
            )
        };
        let name: Name = random()?;
        let address = SocketAddr::from_abstract_name(abstract_name(&name)).map_err(failed)?;
        let listener = UnixListener::bind_addr(&address).map_err(failed)?;
        rustix::net::listen(&listener, 4096).map_err(|e| failed(e.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Door { name, listener, fd, visitors: VecDeque::new(), given: vec![false; others] })
    }

    /// What to poll.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let visitors = self.visitors.iter().map(|visitor| PollFd::new(&visitor.stream, PollFlags::IN));
        std::iter::once(PollFd::new(&self.listener, PollFlags::IN)).chain(visitors)
    }

    /// Lets in who has come, and gives the descriptor to those who have shown who they are.
    pub(super) fn pump(&mut self, links: &[Link]) -> Result<(), Error> {
        self.accept()?;
        for _ in 0..self.visitors.len() {
            let Some(mut visitor) = self.visitors.pop_front() else { break };
            match visitor.listen() {
                None if visitor.since.elapsed() < GREETING_TIME => self.visitors.push_back(visitor),
                Some(claim) => self.serve(&visitor, &claim, links)?,
                None => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Error> {
        let most = SPARE + self.given.len();
        for _ in 0..most {
            match self.listener.accept() {
                Ok((stream, _)) if of_this_user(&stream) && stream.set_nonblocking(true).is_ok() => {
                    if self.visitors.len() >= most {
                        self.visitors.pop_front();
                    }
                    let visitor = Visitor { stream, since: Instant::now(), said: Vec::with_capacity(CLAIM) };
                    self.visitors.push_back(visitor);
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    if self.visitors.pop_front().is_none() {
                        let message = format!("rank 0 cannot take another connection: {e}");
                        return Err(Error::new(Kind::Resource, message).culprit(0).help("raise `ulimit -n`"));
                    }
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn serve(&mut self, visitor: &Visitor, claim: &[u8; CLAIM], links: &[Link]) -> Result<(), Error> {
        let Some((rank, proof)) = claim.split_first_chunk::<4>() else { return Ok(()) };
        let Some(place) = u32::from_le_bytes(*rank).checked_sub(1).map(|place| place as usize) else {
            return Ok(());
        };
        let (Some(link), Some(given)) = (links.get(place), self.given.get_mut(place)) else { return Ok(()) };
        if *given || !link.proves(&self.name, proof) {
            return Ok(());
        }
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [self.fd];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        // One byte always fits the buffer of a socket on which nothing was sent. If the visitor is gone, it does not say
        // over its connection that it has the descriptor, and that connection's end tells.
        match sendmsg(&visitor.stream, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => *given = true,
            Err(rustix::io::Errno::TOOMANYREFS) => {
                let message = "rank 0 has too many descriptors under way";
                return Err(Error::new(Kind::Resource, message).culprit(0).help("raise `ulimit -n`"));
            }
            Err(_) => {}
        }
        Ok(())
    }
}

impl Visitor {
    /// What it has said, once that is whole. One that has gone is waited for like one that says nothing.
    fn listen(&mut self) -> Option<[u8; CLAIM]> {
        let mut chunk = [0; CLAIM];
        let room = CLAIM - self.said.len();
        if let Ok(n) = self.stream.read(&mut chunk[..room]) {
            self.said.extend_from_slice(&chunk[..n]);
            if n == 0 {
                self.since = self.since.checked_sub(GREETING_TIME).unwrap_or(self.since);
            }
        }
        self.said[..].try_into().ok()
    }
}

/// Another rank's side: it comes to the door and gets the descriptor.
pub(super) fn enter(name: &Name, rank: u32, link: &Link) -> Result<OwnedFd, Error> {
    let failed = |doing: &str, why: &dyn std::fmt::Display| {
        let message = format!("rank {rank} cannot {doing} rank 0's socket on this machine: {why}");
        let help =
            "ranks of one machine must be in one network namespace (containers: share it) and of one user";
        Error::new(Kind::Transport, message).culprit(rank).help(help)
    };
    let family = AddressFamily::UNIX;
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|e| Error::new(Kind::Resource, format!("rank {rank} gets no socket: {e}")))?;
    for which in [Timeout::Recv, Timeout::Send] {
        sockopt::set_socket_timeout(&socket, which, Some(ENTRY)).map_err(|e| failed("wait for", &e))?;
    }
    let address = SocketAddrUnix::new_abstract_name(&abstract_name(name)).map_err(|e| failed("reach", &e))?;
    connect(&socket, &address).map_err(|e| failed("reach", &e))?;
    let mut stream = UnixStream::from(socket);
    if !of_this_user(&stream) {
        return Err(failed("trust", &"it is another user's"));
    }
    let mut claim = rank.to_le_bytes().to_vec();
    claim.extend(link.proof(name));
    stream.write_all(&claim).map_err(|e| failed("talk to", &e))?;
    receive(&stream).map_err(|e| failed("get a descriptor from", &e))
}

fn receive(stream: &UnixStream) -> std::io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        match recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message
            && let Some(fd) = fds.next()
        {
            return Ok(fd);
        }
    }
    Err(std::io::Error::new(ErrorKind::UnexpectedEof, "it gave none (too many open files here?)"))
}

fn abstract_name(name: &Name) -> Vec<u8> {
    let mut text = b"rcc-".to_vec();
    for byte in name {
        text.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    text
}

/// Whether the process at the other end is of the user of this one.
fn of_this_user(stream: &UnixStream) -> bool {
    sockopt::socket_peercred(stream.as_fd()).is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}
