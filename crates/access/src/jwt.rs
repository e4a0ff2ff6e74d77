//! Signed bearer tokens: JSON web tokens under HMAC-SHA256 and no other algorithm.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// A longer token is no token of ours.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The conditions on a token.
#[derive(Debug)]
pub(crate) struct JwtRules {
    pub(crate) key: hmac::Key,
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
    pub(crate) max_clock_skew_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JwtError {
    Invalid,
    Expired,
    NotYet,
    Issuer,
    Audience,
}

impl JwtError {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Invalid => "invalid websocket jwt",
            Self::Expired => "expired websocket jwt",
            Self::NotYet => "websocket jwt is not valid yet",
            Self::Issuer => "websocket jwt issuer mismatch",
            Self::Audience => "websocket jwt audience mismatch",
        }
    }
}

#[derive(Deserialize)]
struct JwtHeader {
    alg: String,
    /// Extensions that must be understood, and are not.
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<Audiences>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Many(Vec<String>),
}

impl JwtRules {
    /// The signature is checked before anything that the token claims is read.
    pub(crate) fn check(&self, token: &str, now: u64) -> Result<(), JwtError> {
        if token.len() > LONGEST_TOKEN {
            return Err(JwtError::Invalid);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Invalid)?;
        let (header, claims) = signed.split_once('.').ok_or(JwtError::Invalid)?;
        let header: JwtHeader = part(header)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return Err(JwtError::Invalid);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| JwtError::Invalid)?;
        hmac::verify(&self.key, signed.as_bytes(), &signature).map_err(|_| JwtError::Invalid)?;
        self.check_claims(&part(claims)?, now)
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
    fn check_claims(&self, claims: &Claims, now: u64) -> Result<(), JwtError> {
        let (now, skew) = (now as f64, self.max_clock_skew_seconds as f64);
        if now > claims.exp + skew {
            return Err(JwtError::Expired);
        }
        if claims.nbf.is_some_and(|from| now + skew < from) {
            return Err(JwtError::NotYet);
        }
        if self.issuer.is_some() && self.issuer != claims.iss {
            return Err(JwtError::Issuer);
        }
        match (&self.audience, &claims.aud) {
            (None, _) => Ok(()),
            (Some(expected), Some(Audiences::One(one))) if one == expected => Ok(()),
            (Some(expected), Some(Audiences::Many(many))) if many.contains(expected) => Ok(()),
            (Some(_), _) => Err(JwtError::Audience),
        }
    }
}

fn part<T: DeserializeOwned>(text: &str) -> Result<T, JwtError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| JwtError::Invalid)?;
    serde_json::from_slice(&bytes).map_err(|_| JwtError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn rules(issuer: Option<&str>, audience: Option<&str>) -> JwtRules {
        JwtRules {
            key: hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]),
            issuer: issuer.map(str::to_owned),
            audience: audience.map(str::to_owned),
            max_clock_skew_seconds: 30,
        }
    }

    fn token(header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = hmac::sign(&rules(None, None).key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

    #[test]
    fn claims_decide() {
        let open = rules(None, None);
        let strict = rules(Some("me"), Some("you"));
        for (rules, claims, expected) in [
            (&open, r#"{"exp":1000001}"#, Ok(())),
            (&open, r#"{"exp":999970}"#, Ok(())),
            (&open, r#"{"exp":999969}"#, Err(JwtError::Expired)),
            (&open, r#"{"exp":1000001,"nbf":1000030}"#, Ok(())),
            (&open, r#"{"exp":2000000,"nbf":1000031}"#, Err(JwtError::NotYet)),
            (&open, r"{}", Err(JwtError::Invalid)),
            (&open, r#"{"exp":"1000001"}"#, Err(JwtError::Invalid)),
            (&strict, r#"{"exp":1000001,"iss":"me","aud":"you"}"#, Ok(())),
            (&strict, r#"{"exp":1000001,"iss":"me","aud":["x","you"]}"#, Ok(())),
            (&strict, r#"{"exp":1000001,"iss":"other","aud":"you"}"#, Err(JwtError::Issuer)),
            (&strict, r#"{"exp":1000001,"aud":"you"}"#, Err(JwtError::Issuer)),
            (&strict, r#"{"exp":1000001,"iss":"me","aud":["x"]}"#, Err(JwtError::Audience)),
            (&strict, r#"{"exp":1000001,"iss":"me"}"#, Err(JwtError::Audience)),
        ] {
            assert_eq!(rules.check(&token(HS256, claims), NOW), expected, "{claims}");
        }
    }

    #[test]
    fn nothing_but_a_sound_signature_counts() {
        let rules = rules(None, None);
        let good = token(HS256, r#"{"exp":1000001}"#);
        let unsigned = good.rsplit_once('.').map(|(signed, _)| format!("{signed}.")).unwrap_or_default();
        for bad in [
            String::new(),
            "a.b.c".to_owned(),
            unsigned,
            format!("{good}A"),
            good.replace('.', ""),
            token(r#"{"alg":"none"}"#, r#"{"exp":1000001}"#),
            token(r#"{"alg":"HS512"}"#, r#"{"exp":1000001}"#),
            token(r#"{"alg":"HS256","crit":["x"]}"#, r#"{"exp":1000001}"#),
            token(HS256, &format!(r#"{{"exp":1000001,"x":"{}"}}"#, "x".repeat(LONGEST_TOKEN))),
        ] {
            assert_eq!(rules.check(&bad, NOW), Err(JwtError::Invalid));
        }
    }
}
