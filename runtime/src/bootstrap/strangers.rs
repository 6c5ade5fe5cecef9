//! Connections of which rank 0 does not know yet who they are.
//!
//! In: listening sockets. Out: those who know the secret, with what they said first. The one hard idea: anyone can
//! connect and then say nothing, or anything. There are never more than so many, each of them has a few hundred bytes
//! and a few seconds, and where there are too many the oldest goes: a rank shows who it is in one exchange, and whoever
//! was pushed out comes again.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::handshake::{GREETING, Keys, MAGIC, Meeting, greeted};
use super::link::{Link, tune};
use super::message::LONGEST_JOIN;
use super::patience::GREETING_TIME;
use super::secret::{Secret, random};
use crate::error::{Error, Kind};

/// How many there may be beside one for each rank.
const SPARE: usize = 64;

/// Who has connected and not been taken or dropped yet.
pub(super) struct Strangers {
    listeners: Vec<TcpListener>,
    waiting: VecDeque<Stranger>,
    most: usize,
    /// How many were dropped for what they said or did not say.
    dropped: u64,
}

struct Stranger {
    since: Instant,
    stage: Stage,
}

enum Stage {
    /// It has said so much of its greeting.
    Greeting(TcpStream, Vec<u8>),
    /// It has been answered, and is to prove that it knows the secret.
    Proof(Link),
}

/// Somebody who knows the secret.
pub(super) struct Known {
    pub(super) link: Link,
    /// What it said first.
    pub(super) first: Vec<u8>,
}

impl Strangers {
    pub(super) fn new(listeners: Vec<TcpListener>, world: u32) -> Strangers {
        Strangers { listeners, waiting: VecDeque::new(), most: SPARE + world as usize, dropped: 0 }
    }

    /// How many connections turned out to be no ranks of this job.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What to poll.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let listeners = self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN));
        listeners.chain(self.waiting.iter().map(|stranger| match &stranger.stage {
            Stage::Greeting(stream, _) => PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN),
            Stage::Proof(link) => PollFd::from_borrowed_fd(link.stream.as_fd(), link.interest()),
        }))
    }

    /// Takes new ones, listens to all, and gives those who have shown that they know the secret.
    pub(super) fn pump(&mut self, secret: &Secret) -> Result<Vec<Known>, Error> {
        self.accept()?;
        let mut known = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some(stranger) = self.waiting.pop_front() else { break };
            match stranger.pump(secret)? {
                Outcome::Waits(stranger) => self.waiting.push_back(stranger),
                Outcome::Known(one) => known.push(one),
                Outcome::Dropped => self.dropped += 1,
            }
        }
        Ok(known)
    }

    fn accept(&mut self) -> Result<(), Error> {
        for listener in &self.listeners {
            // A flood must not keep those waiting who are there already.
            let mut budget = self.most;
            while budget > 0 {
                budget -= 1;
                match listener.accept() {
                    Ok((stream, _)) => {
                        if stream.set_nonblocking(true).is_err() || tune(&stream).is_err() {
                            continue;
                        }
                        if self.waiting.len() >= self.most {
                            self.waiting.pop_front();
                            self.dropped += 1;
                        }
                        let stage = Stage::Greeting(stream, Vec::with_capacity(GREETING));
                        self.waiting.push_back(Stranger { since: Instant::now(), stage });
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e)
                        if matches!(
                            e.raw_os_error(),
                            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
                        ) =>
                    {
                        if self.waiting.pop_front().is_none() {
                            let message = format!("rank 0 cannot take another connection: {e}");
                            return Err(Error::new(Kind::Resource, message)
                                .culprit(0)
                                .help("raise `ulimit -n`"));
                        }
                        self.dropped += 1;
                    }
                    // Anything else is about the connection that was to be taken, which is gone.
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

enum Outcome {
    Waits(Stranger),
    Known(Known),
    Dropped,
}

impl Stranger {
    fn pump(self, secret: &Secret) -> Result<Outcome, Error> {
        let Stranger { since, stage } = self;
        let stage = match stage {
            Stage::Greeting(stream, heard) => greeting(stream, heard, secret)?,
            proof => Some(proof),
        };
        let Some(Stage::Proof(mut link)) = stage else {
            let stage = stage.filter(|_| since.elapsed() < GREETING_TIME);
            return Ok(stage.map_or(Outcome::Dropped, |stage| Outcome::Waits(Stranger { since, stage })));
        };
        link.pump();
        Ok(match link.take_encoded() {
            Ok(Some(first)) => Outcome::Known(Known { link, first }),
            Ok(None) if !link.ended() && since.elapsed() < GREETING_TIME => {
                Outcome::Waits(Stranger { since, stage: Stage::Proof(link) })
            }
            _ => Outcome::Dropped,
        })
    }
}

/// Hears a greeting, and answers it if it is whole; none if it is not one.
fn greeting(mut stream: TcpStream, mut heard: Vec<u8>, secret: &Secret) -> Result<Option<Stage>, Error> {
    let mut chunk = [0; GREETING];
    loop {
        let room = GREETING - heard.len();
        match stream.read(&mut chunk[..room]) {
            Ok(0) => return Ok(None),
            Ok(n) => heard.extend_from_slice(&chunk[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Some(Stage::Greeting(stream, heard))),
            Err(_) => return Ok(None),
        }
        let magic = heard.len().min(MAGIC.len());
        if heard[..magic] != MAGIC[..magic] {
            return Ok(None);
        }
        if let Ok(whole) = <[u8; GREETING]>::try_from(&heard[..]) {
            let Some(caller) = greeted(&whole) else { return Ok(None) };
            let root = random()?;
            let meeting = Meeting { secret, caller: &caller, root: &root };
            let Keys { to_root, from_root } = meeting.keys();
            let Ok(mut link) = Link::new(stream, from_root, to_root, LONGEST_JOIN) else { return Ok(None) };
            link.say_raw(&meeting.answer());
            return Ok(Some(Stage::Proof(link)));
        }
    }
}
