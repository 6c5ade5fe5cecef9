//! A port for ranks that are about to be started on this machine.
//!
//! In: nothing. Out: an address of the loopback that the system gives to nobody else while the value lives. The one hard
//! idea: to look for a free port and let it go leaves a moment in which another program gets it. A socket that holds
//! it, but does not listen, keeps it from all who take any port; and rank 0, who asks for this very one and allows sharing
//! as listeners usually do, gets it all the same.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

use crate::error::{Error, Kind};

/// A port that is held.
#[derive(Debug)]
pub struct Reserved {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Reserved {
    /// Any port that is free.
    pub fn new() -> Result<Reserved, Error> {
        let failed = |e: rustix::io::Errno| {
            Error::new(Kind::Resource, format!("the system gives no port: {}", std::io::Error::from(e)))
        };
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(failed)?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(failed)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(failed)?;
        let address = getsockname(&socket).and_then(SocketAddr::try_from).map_err(failed)?;
        Ok(Reserved { address, _socket: socket })
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_reserved_port_is_free_for_who_asks_for_it_and_for_nobody_else() {
        let reserved = Reserved::new().unwrap();
        assert!(TcpStream::connect(reserved.address).is_err(), "nobody listens yet");
        let others: Vec<TcpListener> = (0..200).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap() != reserved.address));
        let listener = TcpListener::bind(reserved.address).unwrap();
        TcpStream::connect(reserved.address).unwrap();
        assert!(TcpListener::bind(reserved.address).is_err(), "one listens");
        drop(listener);
    }
}
