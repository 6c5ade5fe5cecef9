//! How two ranks show each other that they know the secret.
//!
//! In: the secret, and a number that nobody could foresee from each side. Out: two keys, one for each direction.
//!
//! 1. Who connects says [`MAGIC`] and its number.
//! 2. Rank 0 says the same with its own number, and a keyed hash of both: only who knows the secret can make it, and it was
//!    never made before.
//! 3. Every message from then on bears a keyed hash of its place in the conversation and its text (`link`); the first one
//!    is the proof of who connected.
//!
//! Either side stops at the first thing that is not right. What is said can be read by who listens, but not changed,
//! repeated or left out. The two directions and the answer have keys of their own, so that nothing can be sent back to
//! where it came from.

use super::secret::{Secret, TAG};

/// What a conversation begins with.
pub(super) const MAGIC: [u8; 8] = *b"rcc meet";

/// How long a number is.
pub(super) const NONCE: usize = 32;

/// How long the greeting is, and the answer.
pub(super) const GREETING: usize = MAGIC.len() + NONCE;
pub(super) const ANSWER: usize = GREETING + TAG;

/// The numbers of a conversation, and the secret.
#[derive(Clone, Copy)]
pub(super) struct Meeting<'a> {
    pub(super) secret: &'a Secret,
    /// Of who connected.
    pub(super) caller: &'a [u8; NONCE],
    /// Of rank 0.
    pub(super) root: &'a [u8; NONCE],
}

/// The keys of a conversation: each side sends with one and receives with the other.
pub(super) struct Keys {
    pub(super) to_root: Secret,
    pub(super) from_root: Secret,
}

/// What is said first.
pub(super) fn greeting(own: &[u8; NONCE]) -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(own);
    bytes
}

/// The number of a greeting, if it is one.
pub(super) fn greeted(bytes: &[u8; GREETING]) -> Option<[u8; NONCE]> {
    let (magic, nonce) = bytes.split_first_chunk::<8>()?;
    (*magic == MAGIC).then(|| nonce.try_into().ok())?
}

impl Meeting<'_> {
    /// What rank 0 answers.
    pub(super) fn answer(self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..GREETING].copy_from_slice(&greeting(self.root));
        bytes[GREETING..].copy_from_slice(&self.secret.tag(&self.parts(b"rcc answer")));
        bytes
    }

    /// Whether the proof in rank 0's answer is right.
    pub(super) fn proves(self, proof: &[u8]) -> bool {
        self.secret.verifies(&self.parts(b"rcc answer"), proof)
    }

    /// The keys, which both sides find alone.
    pub(super) fn keys(self) -> Keys {
        let key = |direction: &'static [u8]| {
            Secret::new(self.secret.tag(&self.parts(direction))).expect("a hash is not empty")
        };
        Keys { to_root: key(b"rcc to root"), from_root: key(b"rcc from root") }
    }

    fn parts<'b>(&'b self, what: &'static [u8]) -> [&'b [u8]; 3] {
        [what, self.caller, self.root]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_answers_right() {
        let (right, wrong) = (Secret::new("right").unwrap(), Secret::new("wrong").unwrap());
        let meeting = Meeting { secret: &right, caller: &[1; NONCE], root: &[2; NONCE] };
        let answer = meeting.answer();
        let greeting: [u8; GREETING] = answer[..GREETING].try_into().unwrap();
        assert_eq!(greeted(&greeting), Some([2; NONCE]));
        let proof = &answer[GREETING..];
        assert!(meeting.proves(proof));
        assert!(!Meeting { secret: &wrong, ..meeting }.proves(proof));
        assert!(!Meeting { caller: &[3; NONCE], ..meeting }.proves(proof), "an answer of another time");
        let swapped = Meeting { secret: &right, caller: &[2; NONCE], root: &[1; NONCE] };
        assert!(!swapped.proves(proof));
        let keys = meeting.keys();
        assert!(keys.to_root.expose() != keys.from_root.expose() && keys.to_root.expose() != proof);
        let mut other = greeting;
        other[0] ^= 1;
        assert_eq!(greeted(&other), None);
    }
}
