//! Refuses requests to this machine, to private networks and to the metadata services of clouds: the author of a workflow must
//! not be able to explore the executor's network.
//!
//! The URL parser has normalized every spelling of an address before it is checked. A public name that resolves to a private
//! address is not refused, because a Worker cannot resolve names.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::base::failure::Failure;

/// The executor's variable that allows these requests.
pub const ALLOW_PRIVATE: &str = "CURFEW_ALLOW_PRIVATE";

/// Names of metadata services, which only machines of the cloud should reach.
const METADATA_HOSTS: &[&str] = &[
    "metadata",
    "instance-data",
    "metadata.azure.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// Domains that only a private network resolves.
const PRIVATE_DOMAINS: &[&str] = &[
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
];

pub fn check(url: &Url) -> Result<(), Failure> {
    let Some(what) = url.host().and_then(|host| private(&host)) else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    Err(Failure::permanent(
        "private_address",
        format!(
            "\"{host}\" is {what}, which no action may call; the variable {ALLOW_PRIVATE} = \"on\" of the executor allows it"
        ),
    ))
}

/// Why a host is private; none if it is not.
pub fn private(host: &Host<&str>) -> Option<&'static str> {
    match host {
        Host::Domain(name) => private_name(name),
        Host::Ipv4(address) => private_v4(*address),
        Host::Ipv6(address) => private_v6(*address),
    }
}

fn private_name(name: &str) -> Option<&'static str> {
    // A name with a trailing dot is the same host.
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if METADATA_HOSTS.contains(&name.as_str()) {
        return Some("a metadata service");
    }
    let is_in = |domain: &&str| {
        let before = name.strip_suffix(*domain);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    if PRIVATE_DOMAINS.iter().any(is_in) {
        return Some("a private name");
    }
    // The executor's network would complete it by a domain of its own.
    (!name.contains('.')).then_some("a name without a domain")
}

fn private_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, d] = address.octets();
    match (a, b, c, d) {
        (0, ..) => Some("an unspecified address"),
        (127, ..) => Some("a loopback address"),
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Some("a private address"),
        (100, 64..=127, ..) => Some("an address behind a carrier's translation"),
        (169, 254, ..) => Some("a link-local address"),
        // Azure's service has a public address.
        (168, 63, 129, 16) => Some("a metadata service"),
        (192, 0, 0, _) | (198, 18..=19, ..) => Some("a reserved address"),
        (224..=239, ..) => Some("a multicast address"),
        (240..=255, ..) => Some("a reserved address"),
        _ => None,
    }
}

fn private_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let last_v4 = || Ipv4Addr::from(((u32::from(segments[6])) << 16) | u32::from(segments[7]));
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        // IPv4 addresses as IPv6: mapped, compatible, translated (in two ways), NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            private_v4(last_v4())
        }
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => private_v4(last_v4()),
        // Local NAT64, and 6to4.
        [0x64, 0xff9b, 1, ..] => Some("a private address"),
        [0x2002, high, low, ..] => private_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
        // Teredo is no longer in use, and hides an IPv4 address behind a server's.
        [0x2001, 0, ..] => Some("a tunnel's address"),
        [first, ..] => match first {
            0xfc00..=0xfdff => Some("a private address"),
            0xfe80..=0xfebf => Some("a link-local address"),
            0xfec0..=0xfeff => Some("a private address"),
            0xff00..=0xffff => Some("a multicast address"),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> Option<String> {
        let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        check(&url).err().map(|failure| failure.message)
    }

    #[test]
    fn what_is_private_however_it_is_spelt() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.255.255.254:8080/x",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.０.０.１/",
            "http://0/",
            "http://0.0.0.0/",
            "http://10.0.0.1/",
            "http://10.255.255.255/",
            "http://172.16.0.1/",
            "http://172.31.255.255/",
            "http://192.168.1.1/",
            "http://3232235777/",
            "http://100.64.0.1/",
            "http://100.100.100.200/",
            "http://100.127.255.255/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://168.63.129.16/",
            "http://192.0.0.192/",
            "http://198.18.0.1/",
            "http://198.19.255.255/",
            "http://224.0.0.1/",
            "http://239.255.255.255/",
            "http://240.0.0.1/",
            "http://255.255.255.255/",
            "http://[::]/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:10.1.2.3]/",
            "http://[::127.0.0.1]/",
            "http://[::ffff:0:127.0.0.1]/",
            "http://[64:ff9b::10.0.0.1]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::8.8.8.8]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:c0a8:101::1]/",
            "http://[2001:0:53aa:64c::1]/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/",
            "http://[fdff:ffff::1]/",
            "http://[fe80::1]/",
            "http://[febf::1]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://localhost/",
            "http://LOCALHOST:3000/",
            "http://localhost./",
            "http://a.b.localhost/",
            "http://metadata.google.internal/",
            "http://metadata.google.internal./",
            "http://db.internal/",
            "http://printer.local/",
            "http://metadata/",
            "http://instance-data/latest",
            "http://metadata.azure.com/",
            "https://ｌｏｃａｌｈｏｓｔ/",
            // Names of private networks.
            "http://nas.lan/",
            "http://NAS.LAN./",
            "http://router.home.arpa/",
            "http://home.arpa/",
            "http://wiki.intranet/",
            "http://wiki.corp:8080/",
            "http://tv.home/",
            "http://db.private/",
            "http://db.%6Cocal/",
            "http://db%2Einternal/",
            "http://db。ｌａｎ/",
            // A name without a dot is looked up in the search list of the network.
            "http://db/",
            "http://db./",
            "http://DB:5432/",
            "http://notlocal/",
            "http://xn--bcher-kva/",
            "http://bücher/",
            "http://db../",
            "http://./",
            "http://[::ffff:7f00:1]:80/",
            "http://[64:ff9b::7f00:1]/",
            "http://0x0/",
            "http://00000/",
        ] {
            assert!(refused(url).is_some(), "{url} got through");
        }
    }

    #[test]
    fn what_is_public() {
        for url in [
            "http://example.com/",
            "https://1.1.1.1/",
            "http://9.255.255.255/",
            "http://11.0.0.1/",
            "http://100.63.255.255/",
            "http://100.128.0.1/",
            "http://126.255.255.255/",
            "http://128.0.0.1/",
            "http://169.253.1.1/",
            "http://172.15.255.255/",
            "http://172.32.0.1/",
            "http://192.167.1.1/",
            "http://198.20.0.1/",
            "http://223.255.255.255/",
            "http://[2606:4700:4700::1111]/",
            "http://[::ffff:1.1.1.1]/",
            "http://[64:ff9b::8.8.8.8]/",
            "http://[2002:808:808::]/",
            "http://localhost.example.com/",
            "http://mylocalhost.com/",
            "http://internal.example.com/",
            "http://lan.example.com./",
            "http://home.arpa.example.com/",
            "http://atlan.dev/",
            "http://metadata.example.com/",
            "http://xn--bcher-kva.example/",
        ] {
            assert_eq!(refused(url), None, "{url}");
        }
    }

    #[test]
    fn a_refusal_names_the_host_and_the_way_out() {
        assert_eq!(
            refused("http://user@0x7f.1:99/path?token=x").as_deref(),
            Some(
                "\"127.0.0.1\" is a loopback address, which no action may call; the variable CURFEW_ALLOW_PRIVATE = \"on\" of the executor allows it"
            )
        );
        for (url, what) in [
            ("http://db/", "\"db\" is a name without a domain, "),
            ("http://nas.lan/", "\"nas.lan\" is a private name, "),
            ("http://metadata/", "\"metadata\" is a metadata service, "),
        ] {
            assert!(
                refused(url).is_some_and(|message| message.starts_with(what)),
                "{url}"
            );
        }
    }
}
