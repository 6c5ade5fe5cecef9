//! What ranks say to each other before they have channels.
//!
//! In: a [`Message`]. Out: bytes, and back; bytes that are no message are refused, whatever they are. Who sent them is
//! not known here (`link` knows).

use serde::{Deserialize, Serialize};

use super::host::Host;
use crate::error::{Error, Failure, Kind};

/// The number of this protocol. It changes with every change of [`Message`], but for what [`introduction`] reads.
pub(super) const PROTOCOL: u32 = 1;

/// The most bytes that a rank may give to one gathering.
pub(super) const MOST_GIVEN: usize = 1 << 20;

/// The most bytes that one gathering may bring together.
pub(super) const MOST_GATHERED: usize = 64 << 20;

/// The longest message before a rank has shown who it is, of one that has, and of rank 0.
pub(super) const LONGEST_JOIN: usize = 1 << 10;
pub(super) const LONGEST_OF_MEMBER: usize = MOST_GIVEN + (64 << 10);
pub(super) const LONGEST_OF_ROOT: usize = MOST_GATHERED + (2 << 20);

/// The most bytes of an error's message that travel.
const MOST_TOLD: usize = 16 << 10;

/// A message, in either direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Message {
    /// To rank 0: this is me. Stays the first of the list.
    Join(Join),
    /// To the others: rank 0 has taken note, and from now on tells how it ends.
    Joined,
    /// To the others: all are there, on these hosts.
    Welcome(Vec<Host>),
    /// To the others: these ranks are waited for.
    Waiting(Vec<u32>),
    /// To rank 0: what I give.
    Gather { what: String, given: Vec<u8> },
    /// To the others: what all have given.
    Gathered(Vec<Vec<u8>>),
    /// To rank 0: I take the descriptor.
    HandOut,
    /// To the others: come and get it there.
    Door { name: [u8; 16] },
    /// To rank 0: I have it.
    Held,
    /// To the others: all have it.
    Done,
    /// It is over, and why.
    Failed(Error),
}

/// Who wants to take part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Join {
    pub(super) protocol: u32,
    pub(super) version: String,
    pub(super) rank: u32,
    pub(super) world: u32,
    pub(super) pid: u32,
    pub(super) host: Host,
}

impl Message {
    pub(super) fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a message is plain data, and a vector takes it all")
    }

    /// An error as a message that is never too long: what is known of where ranks stood may be left out.
    pub(super) fn failed(error: &Error) -> Message {
        let whole = Message::Failed(error.clone());
        if whole.encode().len() <= LONGEST_OF_MEMBER {
            return whole;
        }
        let mut message = error.message.clone();
        message.truncate(message.floor_char_boundary(MOST_TOLD));
        Message::Failed(Error::new(error.kind, message))
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Message, Error> {
        match postcard::take_from_bytes(bytes) {
            Ok((message, [])) => Ok(message),
            _ => Err(Error::new(Kind::Transport, "a rank says something that is no message of this version")),
        }
    }

    /// What it is, for those who expected something else.
    pub(super) fn describe(&self) -> String {
        match self {
            Message::Gather { what, .. } => format!("gathers `{what}`"),
            Message::HandOut | Message::Held => "takes a descriptor".to_string(),
            Message::Join(_) => "joins".to_string(),
            _ => "answers".to_string(),
        }
    }
}

/// Protocol and version of rcc of whoever joins, from a message that may be of another version.
pub(super) fn introduction(bytes: &[u8]) -> Option<(u32, String)> {
    let ((0u32, protocol, version), _) = postcard::take_from_bytes::<(u32, u32, String)>(bytes).ok()? else {
        return None;
    };
    Some((protocol, version))
}

/// An error of one kind about one rank.
pub(super) fn about(kind: Kind, rank: u32, message: String) -> Error {
    Failure { kind, culprits: vec![rank], message, seen: None, others: Vec::new(), help: None }.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    fn join() -> Join {
        let host = Host { name: "a".to_string(), boot: "b".to_string() };
        Join { protocol: 7, version: "1.2".to_string(), rank: 300, world: 4, pid: 9, host }
    }

    #[test]
    fn messages_read_back() {
        for message in [
            Message::Join(join()),
            Message::Joined,
            Message::Welcome(vec![join().host]),
            Message::Waiting(vec![1, 500]),
            Message::Gather { what: "plan".to_string(), given: vec![0, 255] },
            Message::Gathered(vec![vec![], vec![1]]),
            Message::Door { name: [3; 16] },
            Message::Failed(Error::new(Kind::Late, "x").culprit(3).help("y")),
        ] {
            assert_eq!(Message::decode(&message.encode()).unwrap(), message);
            let mut longer = message.encode();
            longer.push(0);
            assert_eq!(Message::decode(&longer).unwrap_err().kind, Kind::Transport);
        }
    }

    #[test]
    fn whoever_joins_says_its_version_first_for_all_time() {
        let bytes = Message::Join(join()).encode();
        assert_eq!(introduction(&bytes), Some((7, "1.2".to_string())));
        assert_eq!(bytes[..6], [0, 7, 3, b'1', b'.', b'2']);
        assert_eq!(introduction(&bytes[..6]), Some((7, "1.2".to_string())), "whatever follows");
        assert_eq!(introduction(&Message::Joined.encode()), None);
    }

    #[test]
    fn an_error_that_is_too_long_is_cut() {
        let Message::Failed(cut) = Message::failed(&Error::new(Kind::Late, "é".repeat(2 << 20))) else {
            panic!("no error")
        };
        assert!(cut.kind == Kind::Late && cut.message.len() <= MOST_TOLD && cut.message.starts_with('é'));
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&message.encode()).unwrap(), message);
            }
            let _ = introduction(&bytes);
        }

        #[test]
        fn changed_messages_do_not_break_it(at in 0usize..80, to in any::<u8>(), cut in 0usize..80) {
            let failed = Error::new(Kind::Mismatch, "it is so").culprit(3).help("do that");
            for message in [Message::Join(join()), Message::Failed(failed), Message::Gathered(vec![vec![1; 9]; 3])] {
                let mut bytes = message.encode();
                let length = bytes.len();
                bytes[at % length] = to;
                bytes.truncate(length - cut % length);
                let _ = (Message::decode(&bytes).is_ok(), introduction(&bytes));
            }
        }
    }
}
