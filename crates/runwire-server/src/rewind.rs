//! A socket with a buffer of bytes to read first: for handing a connection over to hyper.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Reads a buffered prefix, then the socket.
pub(crate) struct RewindStream {
    prefix: Vec<u8>,
    consumed: usize,
    socket: TcpStream,
}

impl RewindStream {
    pub(crate) fn new(prefix: Vec<u8>, socket: TcpStream) -> Self {
        Self { prefix, consumed: 0, socket }
    }

    /// Returns the local address of the connection.
    pub(crate) fn local_ip(&self) -> Option<IpAddr> {
        self.socket.local_addr().ok().map(|local| local.ip())
    }
}

impl AsyncRead for RewindStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.prefix[self.consumed..];
        if rest.is_empty() {
            return Pin::new(&mut self.socket).poll_read(context, buffer);
        }
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.consumed += count;
        if self.consumed == self.prefix.len() {
            (self.prefix, self.consumed) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for RewindStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
