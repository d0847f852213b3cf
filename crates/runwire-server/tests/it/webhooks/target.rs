//! A fake webhook target.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use runwire_server::webhooks::{Secret, Webhook};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::harness::within_timeout;

pub(super) const KEY: &str = "a secret that nobody guesses";

/// A message that came.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Got {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Returns type and run.
    pub(super) fn what(&self) -> String {
        let json = self.json();
        format!("{} {}", json["run_id"].as_str().unwrap(), json["type"].as_str().unwrap())
    }

    /// Checks the signature, with nothing but the specification.
    pub(super) fn is_signed(&self) -> bool {
        let signed = format!("{}.{}.", self.id(), self.headers["webhook-timestamp"]);
        let signed = [signed.as_bytes(), &self.body].concat();
        let signature = self.headers["webhook-signature"].strip_prefix("v1,").unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
        hmac::verify(&key, &signed, &STANDARD.decode(signature).unwrap()).is_ok()
    }
}

/// What a target says to a message.
pub(super) enum Say {
    /// Just this.
    Raw(String),
    /// Nothing, ever.
    Nothing,
    /// A body without an end.
    Endless,
    /// A head without an end, a byte now and then.
    Drip,
}

pub(super) fn status(status: u16) -> Say {
    Say::Raw(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n"))
}

pub(super) struct Target {
    pub(super) port: u16,
    got: Arc<Mutex<Vec<Got>>>,
    count: watch::Receiver<usize>,
}

impl Target {
    /// Starts a target that says something to each message; the first one is number 0.
    pub(super) async fn start(say: impl Fn(usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let (counting, count) = watch::channel(0);
        let (noted, say, counting) = (got.clone(), Arc::new(say), Arc::new(counting));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (noted, say, counting) = (noted.clone(), say.clone(), counting.clone());
                tokio::spawn(async move {
                    let Some(message) = message(&mut stream).await else { return };
                    let number = {
                        let mut noted: std::sync::MutexGuard<'_, Vec<Got>> = noted.lock().unwrap();
                        noted.push(message);
                        noted.len() - 1
                    };
                    counting.send_modify(|count| *count += 1);
                    answer(&mut stream, say(number)).await;
                });
            }
        });
        Self { port, got, count }
    }

    /// Makes a webhook of it that may be where it is, and does not wait for long.
    pub(super) fn webhook(&self) -> Webhook {
        let url = format!("http://127.0.0.1:{}/hook", self.port).parse().unwrap();
        let mut webhook = Webhook::new("w", url, Secret::parse(KEY).unwrap());
        webhook.allow_private = true;
        webhook.retry_time = Duration::from_millis(5);
        webhook
    }

    pub(super) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Waits until so many messages have come.
    pub(super) async fn until(&self, count: usize) -> Vec<Got> {
        let mut counted = self.count.clone();
        within_timeout(counted.wait_for(|came| *came >= count)).await.unwrap();
        self.got()
    }
}

async fn message(stream: &mut TcpStream) -> Option<Got> {
    let mut read = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..at].to_vec()).unwrap();
            let headers: HashMap<_, _> = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let length: usize = headers["content-length"].parse().unwrap();
            if read.len() >= at + 4 + length {
                return Some(Got { headers, body: read[at + 4..].to_vec() });
            }
        }
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&bytes[..count]),
        }
    }
}

async fn answer(stream: &mut TcpStream, say: Say) {
    match say {
        Say::Raw(text) => drop(stream.write_all(text.as_bytes()).await),
        Say::Nothing => until_closed(stream).await,
        Say::Endless => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 9223372036854775807\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(&[b'x'; 1 << 16]).await.is_ok() {}
        }
        Say::Drip => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
}

async fn until_closed(stream: &mut TcpStream) {
    let mut bytes = [0; 64];
    while matches!(stream.read(&mut bytes).await, Ok(count) if count > 0) {}
}
