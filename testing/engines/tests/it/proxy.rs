//! Tests of the proxy's modes.

use std::time::Duration;

use runwire_engines::{Mode, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

const MOMENT: Duration = Duration::from_millis(50);

/// Starts an echo server, and a proxy to it.
async fn echo() -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    Proxy::start(address).await.unwrap()
}

async fn says_back(stream: &mut TcpStream, words: &[u8]) {
    stream.write_all(words).await.unwrap();
    hears(stream, words).await;
}

async fn hears(stream: &mut TcpStream, words: &[u8]) {
    let mut answer = vec![0; words.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, words);
}

#[tokio::test]
async fn everything_passes_in_order_also_the_end() {
    let proxy = echo().await;
    let stream = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let words: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[n as usize % 4]).collect();
    let sent = words.clone();
    tokio::spawn(async move { to.write_all(&sent).await });
    let mut answer = Vec::new();
    from.read_to_end(&mut answer).await.unwrap();
    assert!(answer == words);
}

#[tokio::test]
async fn a_stalled_way_is_silent_and_loses_nothing() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut stream, b"before").await;
    proxy.set(Mode::Stall);
    stream.write_all(b"during").await.unwrap();
    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    other.write_all(b"new").await.unwrap();
    assert!(timeout(MOMENT, stream.read(&mut [0])).await.is_err());
    assert!(timeout(MOMENT, other.read(&mut [0])).await.is_err());
    proxy.set(Mode::Pass);
    hears(&mut stream, b"during").await;
    hears(&mut other, b"new").await;
}

#[tokio::test]
async fn what_is_asked_with_the_words_is_done_and_not_answered() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.set(Mode::MuteAfter("COMMIT"));
    says_back(&mut stream, b"before").await;
    stream.write_all(b"COMMIT").await.unwrap();
    assert!(timeout(MOMENT, stream.read(&mut [0])).await.is_err());
    // Other clients get responses.
    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut other, b"new").await;
    proxy.set(Mode::Pass);
    hears(&mut stream, b"COMMIT").await;
}

#[tokio::test]
async fn cut_connections_end_and_new_ones_pass() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut stream, b"before").await;
    assert_eq!(proxy.connections(), 1);
    proxy.cut();
    assert!(stream.read(&mut [0]).await.is_err());
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut stream, b"after").await;
}

#[tokio::test]
async fn a_refusing_proxy_resets_new_connections_only() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut stream, b"before").await;
    proxy.set(Mode::Refuse);
    // The reset may come before or after the connection counts as open.
    if let Ok(mut refused) = TcpStream::connect(proxy.address()).await {
        assert!(refused.read(&mut [0]).await.is_err());
    }
    says_back(&mut stream, b"still").await;
}

#[tokio::test]
async fn a_slow_way_takes_its_time_in_both_directions() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.set(Mode::Delay(MOMENT));
    let began = Instant::now();
    says_back(&mut stream, b"slow").await;
    assert!(began.elapsed() >= 2 * MOMENT);
}

#[tokio::test]
async fn a_dropped_proxy_takes_its_connections_with_it() {
    let proxy = echo().await;
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says_back(&mut stream, b"before").await;
    drop(proxy);
    assert!(stream.read(&mut [0]).await.is_err());
}
