//! Slows down guessing: an address that sent too many wrong credentials is refused for a while, with right ones, too, so that a
//! refusal does not show whether a guess was right. Each isolate counts for itself: it bounds the load of guessing, and only the
//! length of the tokens bounds its success.

use std::net::IpAddr;

use crate::api::error::Error;
use crate::base::time::Millis;

const WRONG_MAX: usize = 10;
const WINDOW_MS: Millis = 60_000;
const LOCKED_MS: Millis = 60_000;
/// An isolate may run for days.
const SENDERS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct Lockout {
    senders: Vec<Sender>,
}

/// The sender of requests. One IPv6 network of 64 bits is one sender: it has all of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    V4(u32),
    V6Network(u64),
}

#[derive(Debug)]
struct Sender {
    address: Address,
    /// When the latest wrong credentials came, the oldest first.
    wrong_at: Vec<Millis>,
    locked_until: Millis,
}

impl Address {
    /// `text` is the header `cf-connecting-ip`.
    pub fn parse(text: &str) -> Option<Address> {
        Some(match text.trim().parse::<IpAddr>().ok()?.to_canonical() {
            IpAddr::V4(address) => Address::V4(address.to_bits()),
            IpAddr::V6(address) => Address::V6Network((address.to_bits() >> 64) as u64),
        })
    }

    /// A text that stands for this sender only.
    pub fn key(self) -> String {
        match self {
            Address::V4(bits) => format!("v4:{bits:x}"),
            Address::V6Network(bits) => format!("v6:{bits:x}"),
        }
    }
}

impl Lockout {
    /// A 429 while the address is locked out.
    pub fn check(&self, address: Address, now: Millis) -> Result<(), Error> {
        let sender = self.senders.iter().find(|sender| sender.address == address);
        let locked_until = sender.map_or(0, |sender| sender.locked_until);
        match locked_until.saturating_sub(now) {
            0 => Ok(()),
            remaining_ms => Err(Error::rate_limited(
                "too many wrong credentials came from this address; no credential is checked for a minute",
                remaining_ms.div_ceil(1_000),
            )),
        }
    }

    pub fn count_wrong(&mut self, address: Address, now: Millis) {
        let sender = self.sender(address, now);
        sender
            .wrong_at
            .retain(|moment| now.saturating_sub(*moment) < WINDOW_MS);
        sender.wrong_at.push(now);
        if sender.wrong_at.len() >= WRONG_MAX {
            sender.wrong_at.clear();
            sender.locked_until = now + LOCKED_MS;
        }
    }

    fn sender(&mut self, address: Address, now: Millis) -> &mut Sender {
        let known = self.senders.iter().position(|sender| sender.address == address);
        let index = known.unwrap_or_else(|| {
            self.make_room(now);
            self.senders.push(Sender {
                address,
                wrong_at: Vec::new(),
                locked_until: 0,
            });
            self.senders.len() - 1
        });
        &mut self.senders[index]
    }

    /// Where there are too many, forgets those that no longer matter, or else the one that was quiet for longest.
    fn make_room(&mut self, now: Millis) {
        if self.senders.len() < SENDERS_MAX {
            return;
        }
        self.senders
            .retain(|sender| now.saturating_sub(sender.last_at()) < WINDOW_MS);
        if self.senders.len() < SENDERS_MAX {
            return;
        }
        let indexes = 0..self.senders.len();
        if let Some(quietest) = indexes.min_by_key(|index| self.senders[*index].last_at()) {
            self.senders.swap_remove(quietest);
        }
    }
}

impl Sender {
    /// One that is locked out counts as active until the end of the lock-out.
    fn last_at(&self) -> Millis {
        let wrong_at = self.wrong_at.last().copied().unwrap_or_default();
        wrong_at.max(self.locked_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Millis = 1_800_000_000_000;

    fn address(text: &str) -> Address {
        Address::parse(text).expect("an address")
    }

    fn retry_after(lockout: &Lockout, from: &str, now: Millis) -> Option<String> {
        let error = lockout.check(address(from), now).err()?;
        assert_eq!((error.status, error.code), (429, "rate_limited"));
        let (name, value) = error.headers.first().cloned().expect("a header");
        assert_eq!(name, "retry-after");
        Some(value)
    }

    fn count(lockout: &mut Lockout, from: &str, times: usize, now: Millis) {
        (0..times).for_each(|_| lockout.count_wrong(address(from), now));
    }

    #[test]
    fn the_tenth_wrong_one_locks_for_a_minute() {
        let mut lockout = Lockout::default();
        count(&mut lockout, "192.0.2.1", 9, T);
        assert_eq!(retry_after(&lockout, "192.0.2.1", T), None);
        count(&mut lockout, "192.0.2.1", 1, T + 30_000);
        assert_eq!(
            retry_after(&lockout, "192.0.2.1", T + 30_000).as_deref(),
            Some("60")
        );
        assert_eq!(
            retry_after(&lockout, "192.0.2.1", T + 89_999).as_deref(),
            Some("1")
        );
        assert_eq!(retry_after(&lockout, "192.0.2.1", T + 90_000), None);
        assert_eq!(retry_after(&lockout, "192.0.2.2", T + 30_000), None);
    }

    #[test]
    fn wrong_ones_over_more_than_a_minute_do_not_lock() {
        let mut lockout = Lockout::default();
        for number in 0..100 {
            lockout.count_wrong(address("192.0.2.1"), T + number * 7_000);
        }
        assert_eq!(retry_after(&lockout, "192.0.2.1", T + 700_000), None);
        // A window that moves: nine before a full minute and one after it are ten within a minute.
        let mut lockout = Lockout::default();
        count(&mut lockout, "192.0.2.1", 9, T + 59_000);
        count(&mut lockout, "192.0.2.1", 1, T + 61_000);
        assert!(retry_after(&lockout, "192.0.2.1", T + 61_000).is_some());
    }

    #[test]
    fn after_the_lock_ten_more_are_needed() {
        let mut lockout = Lockout::default();
        count(&mut lockout, "192.0.2.1", 10, T);
        count(&mut lockout, "192.0.2.1", 9, T + 60_000);
        assert_eq!(retry_after(&lockout, "192.0.2.1", T + 60_000), None);
        count(&mut lockout, "192.0.2.1", 1, T + 60_000);
        assert!(retry_after(&lockout, "192.0.2.1", T + 60_000).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_sender() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:0:0:9"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_eq!(address("192.0.2.1").key(), "v4:c0000201");
        assert_eq!(address("2001:db8::1").key(), "v6:20010db800000000");
        for text in ["", "localhost", "192.0.2", "192.0.2.1:80"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_map_is_bounded_and_keeps_those_who_are_locked_out() {
        let mut lockout = Lockout::default();
        count(&mut lockout, "192.0.2.1", 10, T);
        for number in 0..5_000_u32 {
            lockout.count_wrong(Address::V4(number), T + u64::from(number));
        }
        assert_eq!(lockout.senders.len(), SENDERS_MAX);
        assert!(retry_after(&lockout, "192.0.2.1", T + 5_000).is_some());
        lockout.count_wrong(address("192.0.2.9"), T + 1_000_000);
        assert_eq!(lockout.senders.len(), 1);
    }
}
