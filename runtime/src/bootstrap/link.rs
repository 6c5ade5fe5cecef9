//! A connection to a rank that knows the secret.
//!
//! In: messages to send, and whatever comes. Out: messages that have come, whole, in order and unchanged, or that the
//! connection is over. It never waits: who has several polls them all. A frame is four bytes of length, a keyed hash of
//! its number and its text, and the text.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net::sockopt;

use super::message::Message;
use super::secret::{Secret, TAG};
use crate::error::{Error, Kind};

/// Length and keyed hash.
const HEAD: usize = 4 + TAG;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stream: TcpStream,
    sending: Key,
    receiving: Key,
    /// The longest message that is taken.
    most: usize,
    coming: Vec<u8>,
    going: Vec<u8>,
    /// How much of `going` has gone.
    gone: usize,
    ended: bool,
}

/// A key, and how many frames it has served.
#[derive(Debug)]
struct Key {
    secret: Secret,
    used: u64,
}

impl Link {
    /// A connection whose two sides have agreed on keys.
    pub(super) fn new(
        stream: TcpStream,
        sending: Secret,
        receiving: Secret,
        most: usize,
    ) -> std::io::Result<Link> {
        stream.set_nonblocking(true)?;
        Ok(Link {
            stream,
            sending: Key { secret: sending, used: 0 },
            receiving: Key { secret: receiving, used: 0 },
            most,
            coming: Vec::new(),
            going: Vec::new(),
            gone: 0,
            ended: false,
        })
    }

    /// From now on messages may be so long.
    pub(super) fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Says something; it goes when [`Link::pump`] is called.
    pub(super) fn say(&mut self, message: &Message) {
        self.say_encoded(&message.encode());
    }

    /// Says something that is encoded already.
    pub(super) fn say_encoded(&mut self, body: &[u8]) {
        let tag = self.sending.secret.tag(&[&self.sending.used.to_le_bytes(), body]);
        self.sending.used += 1;
        self.going.extend((body.len() as u32).to_le_bytes());
        self.going.extend(tag);
        self.going.extend(body);
    }

    /// Sends bytes that are no message.
    pub(super) fn say_raw(&mut self, bytes: &[u8]) {
        self.going.extend(bytes);
    }

    /// Sends and receives what can be sent and received without waiting.
    pub(super) fn pump(&mut self) {
        while self.gone < self.going.len() && !self.ended {
            match self.stream.write(&self.going[self.gone..]) {
                Ok(n) => self.gone += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // What came before the other side went is still there to be read, and may say why it did.
                Err(_) => break,
            }
        }
        if self.gone == self.going.len() {
            (self.going, self.gone) = (Vec::new(), 0);
        }
        let mut chunk = [0; 16 << 10];
        while !self.ended && !self.full() {
            match self.stream.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(n) => self.coming.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.ended = true,
            }
        }
    }

    /// The next message that has come whole.
    pub(super) fn take(&mut self) -> Result<Option<Message>, Error> {
        self.take_encoded()?.map(|body| Message::decode(&body)).transpose()
    }

    /// The next message, as it came.
    pub(super) fn take_encoded(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let broken =
            |why| Error::new(Kind::Transport, format!("a connection between ranks was tampered with: {why}"));
        let Some((length, rest)) = self.coming.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.most {
            return Err(broken("a message is too long"));
        }
        let Some((tag, rest)) = rest.split_first_chunk::<TAG>() else { return Ok(None) };
        let Some(body) = rest.get(..length) else { return Ok(None) };
        if !self.receiving.secret.verifies(&[&self.receiving.used.to_le_bytes(), body], tag) {
            return Err(broken("a message was not sent by who sent those before it"));
        }
        self.receiving.used += 1;
        let body = body.to_vec();
        self.coming.drain(..HEAD + length);
        Ok(Some(body))
    }

    /// Whether nothing more will come.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Whether all has been sent.
    pub(super) fn idle(&self) -> bool {
        self.going.is_empty()
    }

    /// What a poll should look for.
    pub(super) fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, !self.ended && !self.full());
        flags.set(PollFlags::OUT, !self.ended && !self.idle());
        flags
    }

    /// A proof that this rank is at this end, for a place other than this connection.
    pub(super) fn proof(&self, place: &[u8]) -> [u8; TAG] {
        self.sending.secret.tag(&[b"rcc elsewhere", place])
    }

    /// Whether a proof is one of the rank at the other end.
    pub(super) fn proves(&self, place: &[u8], proof: &[u8]) -> bool {
        self.receiving.secret.verifies(&[b"rcc elsewhere", place], proof)
    }

    /// Whether more has come than the longest message needs: then nothing is read until something is taken.
    fn full(&self) -> bool {
        self.coming.len() >= HEAD + self.most
    }
}

/// Sends at once, and finds out when the other side's machine is gone.
pub(super) fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::{ProptestConfig, any, proptest};

    use super::*;

    fn pair(most: usize) -> (Link, Link) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let key = |name: &str| Secret::new(name).unwrap();
        (
            Link::new(one, key("a"), key("b"), most).unwrap(),
            Link::new(other, key("b"), key("a"), most).unwrap(),
        )
    }

    fn message(link: &mut Link) -> Result<Message, Error> {
        loop {
            link.pump();
            match link.take()? {
                Some(message) => return Ok(message),
                None if link.ended() => return Err(Error::new(Kind::PeerDied, "ended")),
                None => {}
            }
        }
    }

    #[test]
    fn messages_come_in_order_and_the_end_after_them() {
        let (mut one, mut other) = pair(1 << 20);
        let long = Message::Gather { what: "x".to_string(), given: vec![7; 900 << 10] };
        for said in [&Message::Joined, &long, &Message::Done] {
            one.say(said);
        }
        let receiving = std::thread::spawn(move || {
            let got: Vec<Message> = (0..3).map(|_| message(&mut other).unwrap()).collect();
            (got, message(&mut other).unwrap_err().kind)
        });
        while !one.idle() {
            one.pump();
        }
        drop(one);
        let (got, end) = receiving.join().unwrap();
        assert_eq!(got, [Message::Joined, long, Message::Done]);
        assert_eq!(end, Kind::PeerDied);
    }

    #[test]
    fn what_is_repeated_left_out_or_sent_back_is_refused() {
        let frames = |count: usize| -> Vec<Vec<u8>> {
            let (mut one, _other) = pair(1 << 10);
            let frame = |_| {
                one.going.clear();
                one.say(&Message::Done);
                one.going.clone()
            };
            (0..count).map(frame).collect()
        };
        let [first, second] = frames(2).try_into().unwrap();
        let received = |bytes: &[u8]| {
            let (mut one, mut other) = pair(1 << 10);
            one.say_raw(bytes);
            one.pump();
            let mut got = Vec::new();
            while let Ok(message) = message(&mut other) {
                got.push(message);
                if got.len() == bytes.len() / first.len() {
                    break;
                }
            }
            got.len()
        };
        assert_eq!(received(&[&first[..], &second].concat()), 2);
        assert_eq!(received(&[&first[..], &first].concat()), 1);
        assert_eq!(received(&second), 0);
        let (mut one, mut other) = pair(1 << 10);
        other.say_raw(&first);
        other.pump();
        assert_eq!(message(&mut one).unwrap_err().kind, Kind::Transport, "sent back");
    }

    #[test]
    fn the_length_is_looked_at_before_anything_is_kept() {
        let (mut one, mut other) = pair(1 << 10);
        one.say_raw(&u32::MAX.to_le_bytes());
        one.pump();
        assert_eq!(message(&mut other).unwrap_err().kind, Kind::Transport);
        // And who sends more than is taken is not listened to.
        let (mut one, mut other) = pair(1 << 10);
        for _ in 0..100 {
            one.say(&Message::Gather { what: String::new(), given: vec![0; 1000] });
        }
        for _ in 0..100 {
            one.pump();
            other.pump();
        }
        assert!(other.coming.len() < (1 << 10) + HEAD + (16 << 10));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_pass_for_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (_one, mut other) = pair(1 << 10);
            other.coming = bytes;
            assert!(!matches!(other.take(), Ok(Some(_))));
        }
    }
}
