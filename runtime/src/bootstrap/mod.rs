//! How ranks that share no parent find each other.
//!
//! In: [`Settings`] (from a launcher's variables, or given). Out: a [`Bootstrap`], over which all ranks exchange what they
//! need to open channels: [`Bootstrap::gather`] for small pieces of data, [`Bootstrap::hand_out`] for a file descriptor.
//! It is a star: rank 0 listens at an address that all know, the others connect to it. Nothing here is fast, and
//! nothing has to be.
//!
//! The one hard idea: every rank gets an answer. Whatever goes wrong (a rank that never comes, dies, comes twice,
//! counts differently, says something else) comes to rank 0, which tells all others; and where rank 0 is what is
//! missing, each of the others finds out alone. Whoever connects is a stranger until it has shown that it knows the secret: up to
//! then it costs a bounded number of bytes and seconds, and cannot fail anything.
//!
//! | module | |
//! |---|---|
//! | [`environment`] | what launchers say |
//! | `secret`, `secret_file` | what the ranks of a job know |
//! | `handshake`, `link`, `message` | who is there; frames; what they say |
//! | `strangers`, `root`, `member` | the two roles |
//! | `door` | descriptors |
//! | [`reserve`] | a port for ranks that are about to be started here |
//!
//! What is protected is in docs/decisions: nobody without the secret can take part, change what is said, or stop it (short of
//! taking the port before rank 0 does); what is said is not hidden from who can listen on the network.

mod door;
pub mod environment;
mod handshake;
pub mod host;
mod link;
mod listen;
mod member;
mod message;
mod patience;
pub mod reserve;
mod root;
mod secret;
mod secret_file;
mod settings;
mod strangers;

use std::os::fd::{AsFd, OwnedFd};

use self::door::Door;
use self::host::Host;
use self::member::{Spoke, out_of_turn};
use self::message::{Join, MOST_GATHERED, MOST_GIVEN, Message, PROTOCOL, about};
use self::patience::Patience;
use self::root::Star;
pub use self::secret::Secret;
pub use self::settings::Settings;
use crate::error::{Error, Kind};

/// All ranks of a world, connected by way of rank 0. A rank is a value: a process or a thread may hold several.
///
/// Every rank makes the same calls in the same order. A call that fails fails on all ranks that are there, and the
/// ones after it too, with the same error. To drop it closes the connections: a rank that still waits then is told so.
#[derive(Debug)]
pub struct Bootstrap {
    settings: Settings,
    hosts: Vec<Host>,
    role: Role,
    failed: Option<Error>,
}

#[derive(Debug)]
enum Role {
    Root(Star),
    Member(Spoke),
}

impl Bootstrap {
    /// The most bytes that one rank may give to [`Bootstrap::gather`].
    pub const MOST_GIVEN: usize = MOST_GIVEN;

    /// The most bytes that one [`Bootstrap::gather`] may bring together.
    pub const MOST_GATHERED: usize = MOST_GATHERED;

    /// Waits until all ranks are there.
    ///
    /// [`Kind::Late`] names those that are not after [`Settings::late`]; [`Kind::Mismatch`] shows what two ranks
    /// disagree about: the secret, the version of rcc, the number of ranks, which of them is which rank.
    pub fn connect(settings: &Settings) -> Result<Bootstrap, Error> {
        let Settings { rank, world, address, secret, .. } = settings;
        // The fields are open to all: what does not make sense is refused here once more.
        Settings::new(*rank, *world, address.clone(), secret.clone())?;
        let own = Join {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_string(),
            rank: *rank,
            world: *world,
            pid: std::process::id(),
            host: Host::own(),
        };
        let (role, hosts) = match rank {
            0 => root::assemble(settings, &own).map(|(star, hosts)| (Role::Root(star), hosts))?,
            _ => member::join(settings, &own).map(|(spoke, hosts)| (Role::Member(spoke), hosts))?,
        };
        Ok(Bootstrap { settings: settings.clone(), hosts, role, failed: None })
    }

    /// Which rank this is.
    pub fn rank(&self) -> u32 {
        self.settings.rank
    }

    /// How many there are.
    pub fn world(&self) -> u32 {
        self.settings.world
    }

    /// Which machine each rank is on.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Every rank gives something, and gets what all have given, in rank order. `what` says what it is: a rank that
    /// gathers something else is a [`Kind::Mismatch`].
    pub fn gather(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.alive()?;
        let gathered = self.gather_once(what, own);
        self.settle(gathered)
    }

    /// Rank 0 gives a file descriptor, the others none, and every rank gets one of the same file.
    ///
    /// All ranks must be on one machine: else [`Kind::Unsupported`] names the machines.
    pub fn hand_out(&mut self, fd: Option<OwnedFd>) -> Result<OwnedFd, Error> {
        self.alive()?;
        let handed = self.hand_out_once(fd);
        self.settle(handed)
    }

    fn gather_once(&mut self, what: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let (rank, world) = (self.rank(), self.world());
        if own.len() > MOST_GIVEN || what.len() > 256 {
            let message = format!(
                "rank {rank} gives {} bytes to a gathering called by {} bytes: {MOST_GIVEN} and 256 are the most",
                own.len(),
                what.len()
            );
            return Err(about(Kind::Invalid, rank, message));
        }
        let doing = format!("gathering `{what}`");
        let patience = Patience::of(&self.settings);
        match &mut self.role {
            Role::Root(star) => {
                let mut all = vec![own.to_vec()];
                for (rank, message) in (1..).zip(star.collect(patience, &doing, None)?) {
                    match message {
                        Message::Gather { what: theirs, given } if theirs == what => all.push(given),
                        other => return Err(different(rank, &format!("gathers `{what}`"), &other)),
                    }
                }
                let bytes: usize = all.iter().map(Vec::len).sum();
                if bytes > MOST_GATHERED {
                    let message = format!(
                        "gathering `{what}` brings together {bytes} bytes: {MOST_GATHERED} are the most"
                    );
                    return Err(Error::new(Kind::Invalid, message));
                }
                let gathered = Message::Gathered(all);
                star.answer(&gathered, Patience::of(&self.settings), &doing)?;
                match gathered {
                    Message::Gathered(all) => Ok(all),
                    other => Err(out_of_turn(&other)),
                }
            }
            Role::Member(spoke) => {
                let message = Message::Gather { what: what.to_string(), given: own.to_vec() };
                match spoke.ask(&message, patience, &doing)? {
                    Message::Gathered(all) if all.len() == world as usize => Ok(all),
                    other => Err(out_of_turn(&other)),
                }
            }
        }
    }

    fn hand_out_once(&mut self, fd: Option<OwnedFd>) -> Result<OwnedFd, Error> {
        let rank = self.rank();
        let patience = Patience::of(&self.settings);
        let doing = "handing out a descriptor";
        match (&mut self.role, fd) {
            (Role::Root(star), Some(fd)) => {
                for (rank, message) in (1..).zip(star.collect(patience, doing, None)?) {
                    if message != Message::HandOut {
                        return Err(different(rank, "hands out a descriptor", &message));
                    }
                }
                one_machine(&self.hosts)?;
                let mut door = Door::open(fd.as_fd(), self.hosts.len() - 1)?;
                let name = door.name;
                let patience = || Patience::of(&self.settings);
                star.answer(&Message::Door { name }, patience(), doing)?;
                for (rank, message) in (1..).zip(star.collect(patience(), doing, Some(&mut door))?) {
                    if message != Message::Held {
                        return Err(different(rank, "hands out a descriptor", &message));
                    }
                }
                drop(door);
                star.answer(&Message::Done, patience(), doing)?;
                Ok(fd)
            }
            (Role::Member(spoke), None) => {
                let name = match spoke.ask(&Message::HandOut, patience, doing)? {
                    Message::Door { name } => name,
                    other => return Err(out_of_turn(&other)),
                };
                let fd = door::enter(&name, rank, spoke.link())?;
                match spoke.ask(&Message::Held, Patience::of(&self.settings), doing)? {
                    Message::Done => Ok(fd),
                    other => Err(out_of_turn(&other)),
                }
            }
            (Role::Root(_), None) => Err(about(
                Kind::Invalid,
                0,
                "rank 0 is to hand out a descriptor, and has given none".to_string(),
            )),
            (Role::Member(_), Some(_)) => {
                let message = format!("rank {rank} has given a descriptor to hand out: only rank 0 does");
                Err(about(Kind::Invalid, rank, message))
            }
        }
    }

    fn alive(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Tells the others of a failure, and keeps it.
    fn settle<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let error = match &mut self.role {
            Role::Root(star) => {
                star.refuse(&error);
                error
            }
            Role::Member(spoke) => spoke.give_up(error),
        };
        self.failed = Some(error.clone());
        Err(error)
    }
}

fn different(rank: u32, ours: &str, theirs: &Message) -> Error {
    let message = format!("rank 0 {ours}, and rank {rank} {}", theirs.describe());
    about(Kind::Mismatch, rank, message).help("make the same calls in the same order on every rank")
}

/// Refuses worlds of several machines, for what only ranks of one can share.
fn one_machine(hosts: &[Host]) -> Result<(), Error> {
    let mut distinct: Vec<&Host> = hosts.iter().collect();
    distinct.sort();
    distinct.dedup();
    if distinct.len() <= 1 {
        return Ok(());
    }
    let names: Vec<String> = distinct.iter().take(16).map(|host| host.name.clone()).collect();
    let away: Vec<u32> =
        (0..).zip(hosts).filter(|(_, host)| **host != hosts[0]).map(|(rank, _)| rank).collect();
    let message = format!(
        "ranks are on {} machines ({}): this version connects ranks of one machine only",
        distinct.len(),
        names.join(", ")
    );
    Err(Error::new(Kind::Unsupported, message).of(away).help("start all ranks on one machine"))
}

#[cfg(test)]
mod tests;
