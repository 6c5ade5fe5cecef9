//! Where rank 0 listens.
//!
//! In: `host:port`. Out: a socket for every address that the host's name stands for here, and none for any other: who is
//! not meant to reach rank 0 does not.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

use super::patience::Patience;
use super::settings::split;
use crate::error::{Error, Kind};

/// How long a port may still be taken by those who had it before.
const TAKEN: Duration = Duration::from_secs(2);

/// How many connections the system keeps until they are looked at.
const BACKLOG: i32 = 4096;

/// The addresses that `host:port` stands for.
pub(super) fn resolve(address: &str) -> Result<Vec<SocketAddr>, Error> {
    let unknown = |why: String| {
        Error::new(Kind::Invalid, format!("`{address}` stands for no address: {why}"))
            .help("set RCC_RENDEZVOUS=host:port to an address of rank 0's host")
    };
    let (host, port) = split(address).ok_or_else(|| unknown("it is not host:port".to_string()))?;
    let mut found: Vec<SocketAddr> =
        (host, port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?.collect();
    found.sort();
    found.dedup();
    if found.is_empty() { Err(unknown("the name has none".to_string())) } else { Ok(found) }
}

/// Listens at all of them that this host has.
pub(super) fn listen(address: &str, late: Duration) -> Result<Vec<TcpListener>, Error> {
    let patience = Patience::just(late.min(TAKEN));
    let mut listeners = Vec::new();
    let mut not_ours = None;
    for at in resolve(address)? {
        match listen_at(at, &patience) {
            Ok(listener) => listeners.push(listener),
            // A name may stand for an address that is switched off here, as `::1` often is.
            Err(e) if matches!(e.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported) => {
                not_ours = Some(format!("{at}: {e}"));
            }
            Err(e) if e.raw_os_error() == Some(libc::EAFNOSUPPORT) => not_ours = Some(format!("{at}: {e}")),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {
                let message = format!("rank 0 cannot listen at {at}: another program, or another job, does");
                let help =
                    "set RCC_RENDEZVOUS (or RCC_PORT, where a launcher says the rest) to a port that is free";
                return Err(Error::new(Kind::Resource, message).culprit(0).help(help));
            }
            Err(e) => {
                let kind =
                    if e.kind() == ErrorKind::PermissionDenied { Kind::Invalid } else { Kind::Resource };
                let message = format!("rank 0 cannot listen at {at}: {e}");
                return Err(Error::new(kind, message).culprit(0).help("choose another port or address"));
            }
        }
    }
    match (&listeners[..], not_ours) {
        ([], Some(why)) => {
            let message = format!("rank 0 runs on a host that does not have the address {address} ({why})");
            let help = "set RCC_RENDEZVOUS=host:port to an address of rank 0's host, or start rank 0 there";
            Err(Error::new(Kind::Invalid, message).culprit(0).help(help))
        }
        _ => Ok(listeners),
    }
}

fn listen_at(at: SocketAddr, patience: &Patience) -> std::io::Result<TcpListener> {
    let listener = loop {
        match TcpListener::bind(at) {
            Err(e) if e.kind() == ErrorKind::AddrInUse && !patience.over() => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => break done?,
        }
    };
    // The same once more, with a longer queue: all ranks may come at once.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
