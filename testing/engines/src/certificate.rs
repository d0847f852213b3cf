//! Self-signed certificates for engines.

use std::path::{Path, PathBuf};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::error::EngineError;
use crate::folder::{User, write};

/// A certificate for `localhost` and `127.0.0.1`, and the paths of its files.
#[derive(Debug)]
pub(crate) struct Certificate {
    pub(crate) file: PathBuf,
    pub(crate) key_file: PathBuf,
    pub(crate) pem: String,
}

impl Certificate {
    /// Creates a certificate in a folder.
    pub(crate) fn sign(folder: &Path, owner: Option<User>) -> Result<Self, EngineError> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(|error| {
            EngineError::Failed { what: "sign a certificate".to_owned(), log: error.to_string() }
        })?;
        let (file, key_file) = (folder.join("certificate.pem"), folder.join("key.pem"));
        write(&file, &cert.pem(), owner)?;
        write(&key_file, &signing_key.serialize_pem(), owner)?;
        Ok(Self { file, key_file, pem: cert.pem() })
    }
}
