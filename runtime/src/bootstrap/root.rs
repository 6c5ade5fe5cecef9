//! What rank 0 does: it is the middle of the star.
//!
//! In: who connects, and what they say. Out: a connection to every other rank, and one answer to each round of messages,
//! or one error, which all are told. Everything is in one loop that never waits for one rank alone, so that none can keep
//! the news of a failure from the others.

use rustix::event::PollFd;
use std::net::Shutdown;
use std::os::fd::AsFd;

use super::door::Door;
use super::host::Host;
use super::link::Link;
use super::listen::listen;
use super::message::{Join, LONGEST_OF_MEMBER, Message, PROTOCOL, about, introduction};
use super::patience::{GRACE, Patience, name};
use super::settings::Settings;
use super::strangers::{Known, Strangers};
use crate::error::{Error, Kind};

/// Rank 0's connections: that of rank r is number r - 1.
#[derive(Debug)]
pub(super) struct Star {
    links: Vec<Link>,
}

/// A rank that has come.
struct Member {
    link: Link,
    join: Join,
}

/// Waits until all are there; where that fails, all that came are told, and those that come within a moment.
pub(super) fn assemble(settings: &Settings, own: &Join) -> Result<(Star, Vec<Host>), Error> {
    let mut members: Vec<Option<Member>> = (1..settings.world).map(|_| None).collect();
    if members.is_empty() {
        return Ok((Star { links: Vec::new() }, vec![own.host.clone()]));
    }
    let mut strangers = Strangers::new(listen(&settings.address, settings.late)?, settings.world);
    let mut refused = Vec::new();
    let gathered = gather(settings, own, &mut strangers, &mut members, &mut refused);
    let links = match gathered {
        Ok(()) => members.into_iter().flatten(),
        Err(error) => {
            let links = members.into_iter().flatten().map(|member| member.link).chain(refused).collect();
            let linger = error.kind != Kind::Late;
            refuse_all(&error, links, linger.then_some((&mut strangers, settings)));
            return Err(error);
        }
    };
    let (links, others): (Vec<Link>, Vec<Host>) = links.map(|member| (member.link, member.join.host)).unzip();
    let hosts: Vec<Host> = std::iter::once(own.host.clone()).chain(others).collect();
    let mut star = Star { links };
    match star.answer(&Message::Welcome(hosts.clone()), Patience::of(settings), "connecting") {
        Ok(()) => Ok((star, hosts)),
        Err(error) => {
            star.refuse(&error);
            Err(error)
        }
    }
}

/// Fills `members`; who knows the secret and fits nowhere, or comes when it has failed already, is left in `refused`.
fn gather(
    settings: &Settings,
    own: &Join,
    strangers: &mut Strangers,
    members: &mut [Option<Member>],
    refused: &mut Vec<Link>,
) -> Result<(), Error> {
    let mut patience = Patience::of(settings);
    loop {
        let mut wrong = None;
        for Known { mut link, first } in strangers.pump(&settings.secret)? {
            match admit(&first, own, members) {
                Ok(join) if wrong.is_none() => {
                    link.allow(LONGEST_OF_MEMBER);
                    link.say(&Message::Joined);
                    let place = join.rank as usize - 1;
                    members[place] = Some(Member { link, join });
                }
                Ok(_) => refused.push(link),
                Err(error) => {
                    refused.push(link);
                    wrong.get_or_insert(error);
                }
            }
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        for (rank, member) in (1..).zip(members.iter_mut()) {
            let Some(Member { link, .. }) = member else { continue };
            link.pump();
            match link.take() {
                Ok(None) if link.ended() => return Err(died(rank, "while ranks connected")),
                Ok(None) => {}
                Ok(Some(Message::Failed(error))) => return Err(error),
                Ok(Some(message)) => return Err(out_of_turn(rank, &message)),
                Err(error) => return Err(error.culprit(rank)),
            }
        }
        let missing: Vec<u32> =
            (1..).zip(&*members).filter(|(_, m)| m.is_none()).map(|(rank, _)| rank).collect();
        if missing.is_empty() {
            return Ok(());
        }
        if patience.over() {
            let waited = patience.waited();
            let others = match strangers.dropped() {
                0 => String::new(),
                n => {
                    format!(" ({n} connections came that did not know the secret, or were of other programs)")
                }
            };
            let message = format!(
                "{} did not connect to rank 0 at {} within {waited:.0?}{others}",
                name(&missing),
                settings.address
            );
            return Err(Error::new(Kind::Late, message).of(missing).help(
                "look for what keeps them from starting; they need the same address and the same secret",
            ));
        }
        if patience.warns() {
            let (waited, dropped) = (patience.waited(), strangers.dropped());
            tracing::warn!(
                address = settings.address,
                strangers = dropped,
                "after {waited:.0?}, rank 0 still waits for {}",
                name(&missing)
            );
            for member in members.iter_mut().flatten() {
                member.link.say(&Message::Waiting(missing.clone()));
            }
        }
        let links = members.iter().flatten().map(|member| fd(&member.link));
        let mut fds: Vec<PollFd<'_>> = strangers.fds().chain(links).collect();
        patience.poll(&mut fds);
    }
}

/// Whether somebody who knows the secret is a rank that is missing.
fn admit(first: &[u8], own: &Join, members: &[Option<Member>]) -> Result<Join, Error> {
    let join = match Message::decode(first) {
        Ok(Message::Join(join)) if join.protocol == PROTOCOL => join,
        _ => {
            let theirs = match introduction(first) {
                Some((protocol, version)) => format!("rcc {} (protocol {protocol})", version.escape_debug()),
                None => "something that says nothing of its version".to_string(),
            };
            let message =
                format!("rank 0 runs rcc {} (protocol {PROTOCOL}), and another rank {theirs}", own.version);
            return Err(Error::new(Kind::Mismatch, message).help("run the same version of rcc on all ranks"));
        }
    };
    let rank = join.rank;
    let mismatch = |message: String, help: &str| Err(about(Kind::Mismatch, rank, message).help(help));
    if join.version != own.version {
        let message = format!("rank 0 runs rcc {}, and rank {rank} rcc {}", own.version, join.version);
        return mismatch(message, "run the same version of rcc on all ranks");
    }
    if join.world != own.world {
        let message = format!(
            "rank 0 counts {} ranks, and rank {rank} (process {} on {}) counts {}",
            own.world, join.pid, join.host, join.world
        );
        return mismatch(message, "start all ranks with the same number of ranks");
    }
    let before = match rank.checked_sub(1) {
        None => Some(own),
        Some(place) => match members.get(place as usize) {
            Some(member) => member.as_ref().map(|member| &member.join),
            None => {
                let message = format!("rank {rank} does not exist in a world of {}", own.world);
                return mismatch(message, "number the ranks from 0");
            }
        },
    };
    if let Some(other) = before {
        let message = format!(
            "two processes say that they are rank {rank}: process {} on {}, and process {} on {}",
            other.pid, other.host, join.pid, join.host
        );
        return mismatch(message, "start each rank once; two jobs need two addresses or two secrets");
    }
    Ok(join)
}

impl Star {
    /// One message of every rank, in rank order. `doing` says what for; a door is kept open meanwhile.
    pub(super) fn collect(
        &mut self,
        mut patience: Patience,
        doing: &str,
        mut door: Option<&mut Door>,
    ) -> Result<Vec<Message>, Error> {
        let mut got: Vec<Option<Message>> = self.links.iter().map(|_| None).collect();
        loop {
            if let Some(door) = door.as_deref_mut() {
                door.pump(&self.links)?;
            }
            for ((rank, link), got) in (1..).zip(&mut self.links).zip(&mut got) {
                link.pump();
                while let Some(message) = link.take().map_err(|error| error.culprit(rank))? {
                    match message {
                        Message::Failed(error) => return Err(error),
                        message if got.is_none() => *got = Some(message),
                        message => return Err(out_of_turn(rank, &message)),
                    }
                }
                if link.ended() {
                    return Err(died(rank, doing));
                }
            }
            let missing: Vec<u32> =
                (1..).zip(&got).filter(|(_, m)| m.is_none()).map(|(rank, _)| rank).collect();
            if missing.is_empty() {
                return Ok(got.into_iter().flatten().collect());
            }
            if patience.over() {
                let message =
                    format!("{} did not come within {:.0?} ({doing})", name(&missing), patience.waited());
                return Err(Error::new(Kind::Late, message).of(missing));
            }
            if patience.warns() {
                tracing::warn!(
                    "after {:.0?}, rank 0 still waits for {} ({doing})",
                    patience.waited(),
                    name(&missing)
                );
                for (link, _) in self.links.iter_mut().zip(&got).filter(|(_, got)| got.is_some()) {
                    link.say(&Message::Waiting(missing.clone()));
                }
            }
            let door_fds = door.as_deref().into_iter().flat_map(Door::fds);
            let mut fds: Vec<PollFd<'_>> = self.links.iter().map(fd).chain(door_fds).collect();
            patience.poll(&mut fds);
        }
    }

    /// The same message to every rank.
    pub(super) fn answer(&mut self, message: &Message, patience: Patience, doing: &str) -> Result<(), Error> {
        let body = message.encode();
        self.links.iter_mut().for_each(|link| link.say_encoded(&body));
        loop {
            let mut slow = Vec::new();
            for (rank, link) in (1..).zip(&mut self.links) {
                link.pump();
                // Who has all of it may be gone already.
                if link.ended() && !link.idle() {
                    return Err(match link.take() {
                        Ok(Some(Message::Failed(error))) => error,
                        _ => died(rank, doing),
                    });
                }
                if !link.idle() {
                    slow.push(rank);
                }
            }
            if slow.is_empty() {
                return Ok(());
            }
            if patience.over() {
                let message = format!("{} took nothing for {:.0?} ({doing})", name(&slow), patience.waited());
                return Err(Error::new(Kind::Late, message).of(slow));
            }
            let mut fds: Vec<PollFd<'_>> = self.links.iter().filter(|link| !link.idle()).map(fd).collect();
            patience.poll(&mut fds);
        }
    }

    /// Tells all ranks that it is over, and why.
    pub(super) fn refuse(&mut self, error: &Error) {
        refuse_all(error, std::mem::take(&mut self.links), None);
    }
}

/// Tells all that it is over; those that come within a moment too, if there are any to come.
fn refuse_all(error: &Error, mut links: Vec<Link>, mut to_come: Option<(&mut Strangers, &Settings)>) {
    let body = Message::failed(error).encode();
    links.iter_mut().for_each(|link| link.say_encoded(&body));
    let patience = Patience::just(GRACE);
    let mut told = 0;
    loop {
        if let Some((strangers, settings)) = &mut to_come {
            for Known { mut link, .. } in strangers.pump(&settings.secret).unwrap_or_default() {
                link.say_encoded(&body);
                links.push(link);
            }
        }
        for link in &mut links {
            link.pump();
            // Who is told closes; to close first could destroy what is still under way.
            if link.idle() {
                let _ = link.stream.shutdown(Shutdown::Write);
            }
            // What they still say is of no interest, but keeps them from hearing.
            while let Ok(Some(_)) = link.take_encoded() {}
        }
        let before = links.len();
        links.retain(|link| !link.ended());
        told += before - links.len();
        let expected = to_come.as_ref().map_or(0, |(_, settings)| settings.world as usize - 1);
        if patience.over() || (links.is_empty() && told >= expected) {
            return;
        }
        let strangers = to_come.iter().flat_map(|(strangers, _)| strangers.fds());
        let mut fds: Vec<PollFd<'_>> = links.iter().map(fd).chain(strangers).collect();
        patience.poll(&mut fds);
    }
}

fn fd(link: &Link) -> PollFd<'_> {
    PollFd::from_borrowed_fd(link.stream.as_fd(), link.interest())
}

fn died(rank: u32, doing: &str) -> Error {
    let message =
        format!("rank {rank} closed its connection to rank 0 ({doing}): its process ended, or it gave up");
    about(Kind::PeerDied, rank, message)
}

fn out_of_turn(rank: u32, message: &Message) -> Error {
    about(Kind::Mismatch, rank, format!("rank {rank} {} when it is not its turn", message.describe()))
}
