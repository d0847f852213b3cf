//! A minimal HTTP/1.1 client, so that generating the load costs little.
//!
//! Requests are rendered once and reused; of a response it parses only the status and the body's length.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Size of the read buffer.
const READ_BYTES: usize = 64 << 10;
/// Size of the kernel's send buffer: small, so that a slow server causes backpressure instead of a long queue.
const SEND_BYTES: u32 = 64 << 10;
/// Limits the bytes of a response head.
const HEAD_BYTES: usize = 16 << 10;

/// A keep-alive connection.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The unread part of the buffer.
    unread: std::ops::Range<usize>,
}

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    body: Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
    UntilClosed,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(SEND_BYTES)?;
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; READ_BYTES], unread: 0..0 })
    }

    /// Sends bytes of a request.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Sends a request and reads the response's body into `body`.
    pub(crate) async fn exchange(&mut self, request: &[u8], body: &mut Vec<u8>) -> io::Result<u16> {
        self.send(request).await?;
        self.answer(body).await
    }

    /// Reads a response's body into `body`.
    pub(crate) async fn answer(&mut self, body: &mut Vec<u8>) -> io::Result<u16> {
        body.clear();
        let head = self.head().await?;
        self.body(head, |piece| body.extend_from_slice(piece)).await?;
        Ok(head.status)
    }

    /// Reads the head of a response.
    pub(crate) async fn head(&mut self) -> io::Result<ResponseHead> {
        loop {
            let read = &self.buffer[self.unread.clone()];
            if let Some(end) = memchr::memmem::find(read, b"\r\n\r\n") {
                let head = parse_head(&read[..end + 2])?;
                self.unread.start += end + 4;
                return Ok(head);
            }
            if read.len() > HEAD_BYTES {
                return Err(malformed("a head without an end"));
            }
            self.read_more().await?;
        }
    }

    /// Reads a body piece by piece.
    pub(crate) async fn body(&mut self, head: ResponseHead, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        match head.body {
            Length::Known(length) => self.forward(length, &mut take).await,
            Length::Chunked => loop {
                let length = self.chunk_length().await?;
                self.forward(length, &mut take).await?;
                self.line_end().await?;
                if length == 0 {
                    return Ok(());
                }
            },
            Length::UntilClosed => loop {
                take(&self.buffer[self.unread.clone()]);
                self.unread = 0..0;
                match self.read_more().await {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    Err(error) => return Err(error),
                }
            },
        }
    }

    /// Waits for more bytes of an endless body; returns them raw, with chunk headers.
    pub(crate) async fn wait_for_bytes(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.read_more().await?;
        }
        let taken = self.unread.clone();
        self.unread = 0..0;
        Ok(&self.buffer[taken])
    }

    /// Shrinks the buffer, for thousands of idle connections.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        self.buffer.resize(bytes.max(self.unread.len()), 0);
        self.buffer.shrink_to_fit();
    }

    async fn forward(&mut self, length: usize, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = length;
        while left > 0 {
            if self.unread.is_empty() {
                self.read_more().await?;
            }
            let piece = self.unread.start..self.unread.end.min(self.unread.start + left);
            take(&self.buffer[piece.clone()]);
            left -= piece.len();
            self.unread.start = piece.end;
        }
        Ok(())
    }

    async fn chunk_length(&mut self) -> io::Result<usize> {
        loop {
            let read = &self.buffer[self.unread.clone()];
            if let Some(end) = memchr::memchr(b'\n', read) {
                let digits =
                    read[..end].split(|byte| matches!(byte, b'\r' | b';')).next().unwrap_or_default();
                let length = std::str::from_utf8(digits)
                    .ok()
                    .and_then(|digits| usize::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| malformed("a chunk without a length"))?;
                self.unread.start += end + 1;
                return Ok(length);
            }
            self.read_more().await?;
        }
    }

    async fn line_end(&mut self) -> io::Result<()> {
        while self.unread.len() < 2 {
            self.read_more().await?;
        }
        if &self.buffer[self.unread.start..self.unread.start + 2] != b"\r\n" {
            return Err(malformed("a chunk without an end"));
        }
        self.unread.start += 2;
        Ok(())
    }

    async fn read_more(&mut self) -> io::Result<()> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.buffer.len() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.unread.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.stream.read(&mut self.buffer[self.unread.end..]).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.unread.end += read;
                Ok(())
            }
        }
    }
}

fn parse_head(head: &[u8]) -> io::Result<ResponseHead> {
    let head = std::str::from_utf8(head).map_err(|_| malformed("a head that is no text"))?;
    let mut lines = head.split("\r\n");
    let status: u16 = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 "))
        .and_then(|line| line.get(..3)?.parse().ok())
        .ok_or_else(|| malformed("no status line"))?;
    let mut body = if matches!(status, 204 | 304) { Length::Known(0) } else { Length::UntilClosed };
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.trim().parse().map_err(|_| malformed("no length"))?;
            body = Length::Known(length);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            body = Length::Chunked;
        }
    }
    Ok(ResponseHead { status, body })
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Renders a request without a body.
pub(crate) fn get(path: &str, accept: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n").into_bytes()
}

/// Renders a request with a body.
pub(crate) fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    post_with(path, content_type, &[], body)
}

/// Renders a request with a body and additional header fields.
pub(crate) fn post_with(path: &str, content_type: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    request("POST", path, content_type, fields, body)
}

/// Renders a request of any method with a body.
pub(crate) fn request(
    method: &str,
    path: &str,
    content_type: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in fields {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    request
}

/// Renders the head of a streamed request.
pub(crate) fn post_open(path: &str, content_type: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

/// Appends bytes as a chunk.
pub(crate) fn push_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves these bytes to one connection, a few at a time, and closes it.
    async fn connected_to(answer: &'static [u8]) -> io::Result<HttpConnection> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            for piece in answer.chunks(7) {
                stream.write_all(piece).await?;
                tokio::task::yield_now().await;
            }
            io::Result::Ok(())
        });
        HttpConnection::open(address).await
    }

    #[tokio::test]
    async fn a_body_ends_where_its_head_says() -> io::Result<()> {
        let mut connection = connected_to(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
              HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nhello \r\n5;x=y\r\nworld\r\n0\r\n\r\n\
              HTTP/1.1 204 No Content\r\n\r\n\
              HTTP/1.1 400 Bad Request\r\n\r\nuntil it closes",
        )
        .await?;
        let mut body = Vec::new();
        for expected in [(200, "hello"), (200, "hello world"), (204, ""), (400, "until it closes")] {
            let status = connection.answer(&mut body).await?;
            assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), expected);
        }
        Ok(())
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_an_error() -> io::Result<()> {
        let mut connection = connected_to(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello").await?;
        let error = connection.answer(&mut Vec::new()).await.map_err(|error| error.kind());
        assert_eq!(error, Err(io::ErrorKind::UnexpectedEof));
        Ok(())
    }
}
