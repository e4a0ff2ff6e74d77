//! How two replicas prove to each other that they know the shared secret, before anything else is said. Each side signs
//! what both have chosen at random, so that no proof can be used again; the side that connects also signs on whose behalf
//! it does so.

use std::fmt;
use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use protocol::ClientRole;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use support::read_plain;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

const VERSION: u32 = 1;
/// The longest line of a challenge.
const MAX_LINE: u64 = 16 * 1024;
const MAX_SECRET_BYTES: u64 = 4 * 1024;
/// Shorter secrets can be guessed from one proof.
const LEAST_SECRET_BYTES: usize = 32;

/// The secret that all replicas of a store share.
#[derive(Clone)]
pub struct PeerSecret(hmac::Key);

impl fmt::Debug for PeerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeerSecret")
    }
}

impl PeerSecret {
    /// White space around it does not count.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < LEAST_SECRET_BYTES {
            return Err(format!("the secret has fewer than {LEAST_SECRET_BYTES} characters"));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = read_plain(path, MAX_SECRET_BYTES).map_err(|error| error.to_string())?;
        Self::new(&String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?)
    }

    fn signed(&self, side: ChallengeSide, said: &SignedFacts<'_>) -> String {
        HEXLOWER.encode(hmac::sign(&self.0, said.text(side).as_bytes()).as_ref())
    }

    fn verify(&self, side: ChallengeSide, said: &SignedFacts<'_>, proof: &str) -> io::Result<()> {
        let proof = HEXLOWER.decode(proof.as_bytes()).unwrap_or_default();
        hmac::verify(&self.0, said.text(side).as_bytes(), &proof)
            .map_err(|_| refused("the other host does not know the shared secret"))
    }
}

/// Both sides sign the same facts, each under its own name: a proof sent back to its maker proves nothing.
#[derive(Debug, Clone, Copy)]
enum ChallengeSide {
    Accepts,
    Connects,
}

struct SignedFacts<'a> {
    connecting: &'a Hello,
    accepting: &'a Hello,
    /// The caller as JSON, as far as it is known.
    caller: &'a str,
}

impl SignedFacts<'_> {
    fn text(&self, side: ChallengeSide) -> String {
        let side = match side {
            ChallengeSide::Accepts => "accepts",
            ChallengeSide::Connects => "connects",
        };
        // No part but the last can hold the line break that separates them.
        let Self { connecting, accepting, caller } = self;
        let names = format!("{:?}\n{:?}", connecting.replica, accepting.replica);
        format!(
            "oarlock peer {VERSION} {side}\n{names}\n{:?}\n{:?}\n{caller}",
            connecting.nonce, accepting.nonce
        )
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    version: u32,
    replica: String,
    nonce: String,
}

impl Hello {
    fn new(replica: &str) -> io::Result<Self> {
        let mut nonce = [0; 32];
        SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("no randomness"))?;
        Ok(Self { version: VERSION, replica: replica.to_owned(), nonce: HEXLOWER.encode(&nonce) })
    }
}

#[derive(Debug, Deserialize)]
struct SignedHello {
    hello: Hello,
    proof: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct SignedCaller {
    /// A `PeerCaller` as text, so that both sides sign the same bytes.
    caller: String,
    proof: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct PeerVerdict {
    admitted: bool,
}

/// On whose behalf a replica connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerCaller {
    pub name: String,
    role: String,
    pub is_local: bool,
}

impl PeerCaller {
    pub fn new(name: String, role: ClientRole, is_local: bool) -> Self {
        Self { name, role: role.word().to_owned(), is_local }
    }

    pub fn role(&self) -> Option<ClientRole> {
        ClientRole::parse(&self.role)
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

async fn write_line(stream: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

async fn read_line<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<T> {
    // The other side says nothing more until it is answered, so nothing is left in this buffer.
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_LINE)).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&line).map_err(|_| refused("the other side is no host of this release"))
}

fn check_version(hello: &Hello) -> io::Result<()> {
    match hello.version {
        VERSION => Ok(()),
        other => {
            Err(refused(&format!("the other host speaks version {other} of the relay, this one {VERSION}")))
        }
    }
}

/// The side that connects: it talks to the replica it means, or not at all.
pub async fn connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    secret: &PeerSecret,
    own: &str,
    wanted: &str,
    caller: &PeerCaller,
) -> io::Result<()> {
    let connecting = Hello::new(own)?;
    write_line(stream, &connecting).await?;
    let SignedHello { hello: accepting, proof } = read_line(stream).await?;
    check_version(&accepting)?;
    let said = SignedFacts { connecting: &connecting, accepting: &accepting, caller: "" };
    secret.verify(ChallengeSide::Accepts, &said, &proof)?;
    if accepting.replica != wanted {
        return Err(refused(&format!("{} answers where {wanted} should be", accepting.replica)));
    }
    let caller = serde_json::to_string(caller)?;
    let proof = secret.signed(ChallengeSide::Connects, &SignedFacts { caller: &caller, ..said });
    write_line(stream, &SignedCaller { caller, proof }).await?;
    match read_line::<PeerVerdict>(stream).await?.admitted {
        true => Ok(()),
        false => Err(refused("the other host refused the connection")),
    }
}

/// The side that is connected to. Says on whose behalf the other does so.
pub async fn accept(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    secret: &PeerSecret,
    own: &str,
) -> io::Result<(String, PeerCaller)> {
    let connecting: Hello = read_line(stream).await?;
    check_version(&connecting)?;
    let accepting = Hello::new(own)?;
    let said = SignedFacts { connecting: &connecting, accepting: &accepting, caller: "" };
    let proof = secret.signed(ChallengeSide::Accepts, &said);
    write_line(stream, &json!({ "hello": &accepting, "proof": proof })).await?;
    let SignedCaller { caller, proof } = read_line(stream).await?;
    secret.verify(ChallengeSide::Connects, &SignedFacts { caller: &caller, ..said }, &proof)?;
    let caller: PeerCaller =
        serde_json::from_str(&caller).map_err(|_| refused("the caller cannot be read"))?;
    write_line(stream, &PeerVerdict { admitted: caller.role().is_some() }).await?;
    Ok((connecting.replica, caller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::duplex;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn secret(text: &str) -> PeerSecret {
        PeerSecret::new(text).expect("long enough")
    }

    fn caller() -> PeerCaller {
        PeerCaller::new("ann".to_owned(), ClientRole::Approver, false)
    }

    async fn meet(
        connecting: &str,
        accepting: &str,
        wanted: &str,
    ) -> (io::Result<()>, io::Result<PeerCaller>) {
        let (mut here, mut there) = duplex(64 * 1024);
        let (connecting, accepting) = (secret(connecting), secret(accepting));
        let own = async {
            let met = connect(&mut here, &connecting, "b", wanted, &caller()).await;
            drop(here);
            met
        };
        let other = async {
            let met = accept(&mut there, &accepting, "a").await;
            drop(there);
            met.map(|(_, caller)| caller)
        };
        tokio::join!(own, other)
    }

    #[tokio::test]
    async fn who_knows_the_secret_is_admitted_with_its_callers_name_and_role() {
        let (connected, accepted) = meet(SECRET, SECRET, "a").await;
        connected.expect("admitted");
        assert_eq!(accepted.expect("admitted"), caller());
    }

    #[tokio::test]
    async fn neither_side_goes_on_with_another_secret_or_another_host() {
        let (connected, accepted) =
            meet("another secret, which is as long as it has to be", SECRET, "a").await;
        assert!(connected.is_err() && accepted.is_err());
        let (connected, accepted) = meet(SECRET, SECRET, "c").await;
        assert!(connected.is_err() && accepted.is_err());
    }

    /// A proof that is sent back to its maker, and a caller that was changed on the way, are both refused.
    #[test]
    fn a_proof_is_of_one_side_and_of_one_caller() {
        let (key, hello) = (secret(SECRET), |name: &str| Hello::new(name).expect("randomness"));
        let (connecting, accepting) = (hello("b"), hello("a"));
        let said = |caller| SignedFacts { connecting: &connecting, accepting: &accepting, caller };
        let proof = key.signed(ChallengeSide::Accepts, &said(""));
        assert!(key.verify(ChallengeSide::Accepts, &said(""), &proof).is_ok());
        assert!(key.verify(ChallengeSide::Connects, &said(""), &proof).is_err());
        let proof = key.signed(ChallengeSide::Connects, &said("viewer"));
        assert!(key.verify(ChallengeSide::Connects, &said("admin"), &proof).is_err());
    }

    #[test]
    fn a_short_secret_is_refused_and_none_is_shown() {
        assert!(PeerSecret::new("  short \n").is_err());
        assert_eq!(format!("{:?}", secret(SECRET)), "PeerSecret");
    }
}
