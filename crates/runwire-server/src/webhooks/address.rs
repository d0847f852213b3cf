//! Address check of webhooks: by default no private addresses (server-side request forgery).
//!
//! The resolved addresses are checked, which are the ones that are connected to, so DNS rebinding gains nothing.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

/// The target has a private address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its address is private; `allow_private = true` in the configuration allows that")]
pub(super) struct PrivateAddress;

/// Checks a literal IP address in a URL, which is not resolved.
pub(super) fn check(url: &Uri) -> Result<(), PrivateAddress> {
    let host = url.host().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(PrivateAddress),
        _ => Ok(()),
    }
}

/// Resolves names to allowed addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resolver {
    pub(super) allow_private: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<_> =
                found.iter().copied().filter(|found| allow_private || is_public(found.ip())).collect();
            if allowed.is_empty() && !found.is_empty() {
                return Err(io::Error::other(PrivateAddress));
            }
            Ok(allowed.into_iter())
        })
    }
}

/// Returns true if an address is public on the internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        // This network, multicast and reserved, broadcast included.
        || first == 0
        || first >= 224
        // Carrier-grade NAT.
        || (first == 100 && second & 0xc0 == 64)
        // Protocol assignments, and benchmarking.
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && second & 0xfe == 18);
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Mapped, translated and tunnelled addresses are judged by the IPv4 address in them.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo and other protocol assignments, and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        // All other public addresses lie in 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000 && !(0x3ff0..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_private_networks_are_not_public() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2002:101:101::",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn an_address_that_is_written_out_is_checked_too() {
        for url in ["http://127.0.0.1/", "https://[::1]:8443/x", "http://169.254.169.254/latest/meta-data"] {
            assert_eq!(check(&url.parse().unwrap()), Err(PrivateAddress), "{url}");
        }
        for url in ["https://example.org/", "http://[2606:4700::1111]/", "http://1.1.1.1:80/"] {
            assert_eq!(check(&url.parse().unwrap()), Ok(()), "{url}");
        }
    }
}
