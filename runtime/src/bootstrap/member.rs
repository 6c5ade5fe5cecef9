//! What every rank but rank 0 does: it finds rank 0, and does what it says.
//!
//! In: the address. Out: a connection to rank 0, which answers every message or says why not. Until rank 0 has taken
//! note of this rank everything is tried again, since rank 0 may not have been started yet and others may answer at its address; from
//! then on the connection is all there is, and its end is rank 0's end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::PollFd;

use super::handshake::{ANSWER, GREETING, Keys, Meeting, greeted, greeting};
use super::host::Host;
use super::link::{Link, tune};
use super::listen::resolve;
use super::message::{Join, LONGEST_OF_ROOT, Message, about};
use super::patience::{GRACE, GREETING_TIME, Patience, name};
use super::secret::random;
use super::settings::Settings;
use crate::error::{Error, Kind};

/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// How long one attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(5);

/// The connection to rank 0.
#[derive(Debug)]
pub(super) struct Spoke {
    link: Link,
    /// Whether rank 0 has said itself that it is over.
    told: bool,
    /// Which ranks rank 0 waits for, as it said last.
    awaited: Vec<u32>,
}

/// Finds rank 0, and waits until all are there.
pub(super) fn join(settings: &Settings, own: &Join) -> Result<(Spoke, Vec<Host>), Error> {
    let mut patience = Patience::of(settings);
    let mut pause = Duration::from_millis(1);
    let mut addresses = Vec::new();
    loop {
        let failure = match attempt(settings, own, &mut addresses, &patience)? {
            Attempt::Joined(mut spoke) => {
                return match spoke.hear(patience.and(GRACE), "connecting") {
                    Ok(Message::Welcome(hosts)) if hosts.len() == settings.world as usize => {
                        Ok((spoke, hosts))
                    }
                    Ok(other) => Err(spoke.give_up(out_of_turn(&other))),
                    Err(error) => Err(spoke.give_up(error)),
                };
            }
            Attempt::Failed(why) => why,
        };
        let Settings { rank, address, .. } = settings;
        if patience.over() {
            let waited = patience.waited();
            let message =
                format!("rank {rank} could not reach rank 0 at {address} within {waited:.0?}: {failure}");
            let help =
                "look for what keeps rank 0 from starting, and whether that address is one of its host";
            return Err(about(Kind::Late, 0, message).help(help));
        }
        if patience.warns() {
            let waited = patience.waited();
            tracing::warn!(
                "after {waited:.0?}, rank {rank} still tries to reach rank 0 at {address}: {failure}"
            );
        }
        std::thread::sleep(pause.min(patience.left()));
        pause = (2 * pause).min(PAUSE);
    }
}

enum Attempt {
    Joined(Spoke),
    /// It may go better next time.
    Failed(String),
}

/// One attempt to be taken note of; an error is one that no other attempt would mend.
fn attempt(
    settings: &Settings,
    own: &Join,
    addresses: &mut Vec<SocketAddr>,
    patience: &Patience,
) -> Result<Attempt, Error> {
    if addresses.is_empty() {
        // The name of a host that is just being started may not be known everywhere yet.
        match resolve(&settings.address) {
            Ok(found) => *addresses = found,
            Err(error) => return Ok(Attempt::Failed(error.message.clone())),
        }
    }
    let mut failure = String::new();
    for at in &*addresses {
        let most = patience.left().clamp(Duration::from_millis(10), ATTEMPT);
        let stream = match TcpStream::connect_timeout(at, most) {
            // A system that looks for a free port may find the very one that is called, and connect it with itself.
            Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {
                failure = format!("nobody listens at {at}");
                continue;
            }
            Ok(stream) => stream,
            Err(e) => {
                failure = format!("{at}: {e}");
                continue;
            }
        };
        match introduce(stream, settings, own, patience)? {
            Attempt::Failed(why) => failure = format!("{at}: {why}"),
            joined => return Ok(joined),
        }
    }
    Ok(Attempt::Failed(failure))
}

/// Shows who this is, sees who is there, and waits until rank 0 has taken note.
fn introduce(
    mut stream: TcpStream,
    settings: &Settings,
    own: &Join,
    patience: &Patience,
) -> Result<Attempt, Error> {
    let caller = random()?;
    let answer = match greet(&mut stream, &greeting(&caller)) {
        Ok(answer) => answer,
        Err(e) => return Ok(Attempt::Failed(format!("it does not answer like rank 0: {e}"))),
    };
    let Some((head, proof)) = answer.split_first_chunk::<GREETING>() else {
        return Ok(Attempt::Failed("its answer is too short".to_string()));
    };
    let Some(root) = greeted(head) else {
        return Ok(Attempt::Failed("it does not answer like rank 0: it is another program".to_string()));
    };
    let meeting = Meeting { secret: &settings.secret, caller: &caller, root: &root };
    if !meeting.proves(proof) {
        let (rank, address) = (settings.rank, &settings.address);
        let message = format!("rank 0 at {address} does not know the secret of rank {rank}");
        let help =
            "give all ranks the same RCC_SECRET; if another job is at that address, give this one another";
        return Err(about(Kind::Mismatch, 0, message).help(help));
    }
    let Keys { to_root, from_root } = meeting.keys();
    let mut link = match Link::new(stream, to_root, from_root, LONGEST_OF_ROOT) {
        Ok(link) => link,
        Err(e) => return Ok(Attempt::Failed(e.to_string())),
    };
    link.say(&Message::Join(own.clone()));
    let mut spoke = Spoke { link, told: false, awaited: Vec::new() };
    match spoke.hear(patience.and(GRACE), "connecting") {
        Ok(Message::Joined) => Ok(Attempt::Joined(spoke)),
        Ok(other) => Err(spoke.give_up(out_of_turn(&other))),
        Err(error) if spoke.told => Err(error),
        // It was pushed out by others, or rank 0 ended before it took note.
        Err(error) if error.kind == Kind::PeerDied => {
            Ok(Attempt::Failed("it closed the connection".to_string()))
        }
        Err(error) => Err(spoke.give_up(error)),
    }
}

fn greet(stream: &mut TcpStream, greeting: &[u8]) -> std::io::Result<[u8; ANSWER]> {
    tune(stream)?;
    stream.set_read_timeout(Some(GREETING_TIME))?;
    stream.set_write_timeout(Some(GREETING_TIME))?;
    stream.write_all(greeting)?;
    let mut answer = [0; ANSWER];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

impl Spoke {
    /// Says something, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        message: &Message,
        patience: Patience,
        doing: &str,
    ) -> Result<Message, Error> {
        self.link.say(message);
        self.hear(patience.and(GRACE), doing)
    }

    /// The next message of rank 0.
    fn hear(&mut self, mut patience: Patience, doing: &str) -> Result<Message, Error> {
        loop {
            self.link.pump();
            match self.link.take().map_err(|error| error.culprit(0))? {
                Some(Message::Failed(error)) => {
                    self.told = true;
                    return Err(error);
                }
                Some(Message::Waiting(ranks)) => {
                    tracing::warn!(
                        "after {:.0?}, rank 0 still waits for {} ({doing})",
                        patience.waited(),
                        name(&ranks)
                    );
                    self.awaited = ranks;
                    continue;
                }
                Some(message) => {
                    self.awaited.clear();
                    return Ok(message);
                }
                None if self.link.ended() => {
                    let message =
                        format!("rank 0 closed its connections ({doing}): its process ended, or it gave up");
                    return Err(about(Kind::PeerDied, 0, message));
                }
                None => {}
            }
            if patience.over() {
                let waited = patience.waited();
                let message = match &self.awaited[..] {
                    [] => format!("rank 0 did not answer within {waited:.0?} ({doing})"),
                    ranks => format!("{} did not come within {waited:.0?} ({doing})", name(ranks)),
                };
                let late = if self.awaited.is_empty() { vec![0] } else { std::mem::take(&mut self.awaited) };
                return Err(Error::new(Kind::Late, message).of(late));
            }
            if patience.warns() && self.awaited.is_empty() {
                tracing::warn!("after {:.0?}, rank 0 has not answered ({doing})", patience.waited());
            }
            patience.poll(&mut [PollFd::from_borrowed_fd(self.link.stream.as_fd(), self.link.interest())]);
        }
    }

    /// The connection.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Tells rank 0 that it is over, if it does not know, and why.
    pub(super) fn give_up(&mut self, error: Error) -> Error {
        if !self.told {
            self.told = true;
            self.link.say(&Message::failed(&error));
            let patience = Patience::just(GRACE);
            while !self.link.idle() && !self.link.ended() && !patience.over() {
                self.link.pump();
                patience
                    .poll(&mut [PollFd::from_borrowed_fd(self.link.stream.as_fd(), self.link.interest())]);
            }
        }
        let _ = self.link.stream.shutdown(std::net::Shutdown::Both);
        error
    }
}

pub(super) fn out_of_turn(message: &Message) -> Error {
    about(Kind::Mismatch, 0, format!("rank 0 {} when it is not its turn", message.describe()))
}
