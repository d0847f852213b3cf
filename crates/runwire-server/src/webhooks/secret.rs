//! Signs webhook messages according to the Standard Webhooks specification.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The signing key of a webhook.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Why a secret is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Too short to be safe.
    #[error("must have at least 16 bytes")]
    Short,
    /// Has the prefix `whsec_`, but the rest is not Base64.
    #[error("begins with `whsec_`, and what follows is no Base64")]
    NotBase64,
}

/// Prefix of a Base64 key.
const PREFIX: &str = "whsec_";
/// Minimum length of a key.
const LEAST_BYTES: usize = 16;

impl Secret {
    /// Parses a secret: Base64 after `whsec_`, otherwise the bytes of the text.
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let key = match text.strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| BadSecret::NotBase64)?,
            None => text.as_bytes().to_vec(),
        };
        if key.len() < LEAST_BYTES {
            return Err(BadSecret::Short);
        }
        Ok(Self(key))
    }

    /// Returns the `webhook-signature` header of a message.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

/// Hides the key: debug output ends up in logs.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_specification_shows() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_can_be_guessed_or_read_wrongly_is_refused() {
        assert_eq!(Secret::parse("short"), Err(BadSecret::Short));
        assert_eq!(Secret::parse("whsec_AAAA"), Err(BadSecret::Short));
        assert_eq!(Secret::parse("whsec_not base64 at all"), Err(BadSecret::NotBase64));
        let plain = Secret::parse("a plain secret of some length").unwrap();
        assert!(!format!("{plain:?}").contains("plain"));
    }
}
