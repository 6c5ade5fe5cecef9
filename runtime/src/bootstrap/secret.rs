//! What the ranks of one job know and nobody else.
//!
//! In: bytes that the caller has, or nothing. Out: a [`Secret`], which proves who sent what without being sent itself.
//! It is never printed, and its memory is wiped when it goes.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::{Error, Kind};

/// The length of a keyed hash.
pub(super) const TAG: usize = 32;

/// A shared secret: whoever holds it may take part.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The secret that the caller has. Anyone who can listen to a connection can try secrets at leisure: it should be
    /// random, and 16 bytes or more. An empty one is refused.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Secret, Error> {
        let bytes = Zeroizing::new(bytes.into());
        if bytes.is_empty() {
            return Err(Error::new(Kind::Invalid, "the secret is empty").help(
                "set RCC_SECRET to the same random text on all ranks, or unset it: then a file of the user's is taken",
            ));
        }
        Ok(Secret(bytes))
    }

    /// A new one, as text of 64 letters and digits, so that it can stand in an environment.
    pub fn random() -> Result<Secret, Error> {
        let mut text = Zeroizing::new(Vec::with_capacity(64));
        for byte in random::<32>()? {
            text.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        Ok(Secret(text))
    }

    /// The bytes themselves, for who must hand them on.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// One that only those know who know this one and are of the same job.
    pub(super) fn of_job(&self, job: &str) -> Secret {
        Secret(Zeroizing::new(self.tag(&[b"rcc job", job.as_bytes()]).to_vec()))
    }

    /// A keyed hash of `parts`, each taken with its length, so that no two lists of parts look the same.
    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        self.keyed(parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is the keyed hash of `parts`, in a time that does not tell how much of it is right.
    pub(super) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        self.keyed(parts).verify_slice(tag).is_ok()
    }

    fn keyed(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Bytes that nobody can foresee.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(Kind::Resource, format!("the system gives no random bytes: {e}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_neither_empty_nor_printed() {
        assert_eq!(Secret::new("").unwrap_err().kind, Kind::Invalid);
        let secret = Secret::new("swordfish").unwrap();
        assert!(!format!("{secret:?}").contains("sword"));
        assert_eq!(secret.expose(), b"swordfish");
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert!(one.expose() != other.expose() && one.expose().len() == 64);
        assert!(std::str::from_utf8(one.expose()).unwrap().bytes().all(|b| b.is_ascii_alphanumeric()));
    }

    /// The second test case of RFC 4231, by way of one part without its length.
    #[test]
    fn the_hash_is_hmac_sha256() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        let expected = [
            0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
            0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
        ];
        assert_eq!(<[u8; TAG]>::from(mac.finalize().into_bytes()), expected);
    }

    #[test]
    fn a_tag_depends_on_everything() {
        let secret = Secret::new("a").unwrap();
        let tag = secret.tag(&[b"ab", b"c"]);
        assert!(secret.verifies(&[b"ab", b"c"], &tag));
        assert!(!secret.verifies(&[b"a", b"bc"], &tag), "where a part ends counts");
        assert!(!secret.verifies(&[b"ab", b"c"], &tag[..31]));
        assert!(!Secret::new("b").unwrap().verifies(&[b"ab", b"c"], &tag));
        assert_ne!(secret.of_job("1").expose(), secret.of_job("2").expose());
    }
}
