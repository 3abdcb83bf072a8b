//! What was made of a text not long ago, so that it need not be made again.

use std::rc::Rc;

/// Values by the text they were made of or stand for, the least used one first. Bounded in number and in bytes: an isolate
/// lives as long as the platform likes.
#[derive(Debug)]
pub struct LruCache<T> {
    known: Vec<Entry<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    key: Box<str>,
    value: Rc<T>,
    bytes: usize,
}

impl<T> Default for LruCache<T> {
    fn default() -> LruCache<T> {
        LruCache {
            known: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> LruCache<T> {
    const MOST: usize = 64;
    pub const BYTES_MOST: usize = 2 << 20;

    pub fn get(&mut self, key: &str) -> Option<Rc<T>> {
        let index = self.known.iter().rposition(|entry| *entry.key == *key)?;
        self.known[index..].rotate_left(1);
        Some(Rc::clone(&self.known.last()?.value))
    }

    /// Keeps the value, whose size is about `bytes`, in the place of whatever had this key.
    pub fn put(&mut self, key: &str, value: &Rc<T>, bytes: usize) {
        self.known.retain(|entry| *entry.key != *key);
        self.known.push(Entry {
            key: key.into(),
            value: Rc::clone(value),
            bytes,
        });
        self.bytes = self.known.iter().map(|entry| entry.bytes).sum();
        while self.known.len() > Self::MOST || self.bytes > Self::BYTES_MOST {
            self.bytes -= self.known.remove(0).bytes;
        }
    }

    /// What was made of the text before, or what `make` makes of it now.
    pub fn of<E>(&mut self, text: &str, make: impl FnOnce(&str) -> Result<T, E>) -> Result<Rc<T>, E> {
        if let Some(value) = self.get(text) {
            return Ok(value);
        }
        let value = Rc::new(make(text)?);
        self.put(text, &value, text.len());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(recent: &LruCache<usize>) -> Vec<&str> {
        recent.known.iter().map(|entry| &*entry.key).collect()
    }

    #[test]
    fn what_was_made_is_not_made_again() {
        let mut recent = LruCache::default();
        let first = recent.of("a", |_| Ok::<_, ()>(1)).expect("made");
        let second = recent.of("a", |_| Err::<usize, _>(())).expect("known");
        assert!(Rc::ptr_eq(&first, &second));
        assert_eq!(recent.of("b", |_| Err("no")), Err("no"));
        assert_eq!(keys(&recent), ["a"]);
    }

    #[test]
    fn the_least_used_goes_first() {
        let mut recent = LruCache::default();
        for number in 0..LruCache::<usize>::MOST {
            recent.put(&number.to_string(), &Rc::new(number), 1);
        }
        assert_eq!(recent.get("0").as_deref(), Some(&0));
        recent.put("one more", &Rc::new(64), 1);
        assert_eq!(recent.get("1"), None);
        assert_eq!(recent.get("0").as_deref(), Some(&0));
    }

    #[test]
    fn it_holds_no_more_than_its_bytes() {
        let half = LruCache::<usize>::BYTES_MOST / 2;
        let mut recent = LruCache::default();
        recent.put("a", &Rc::new(1), half);
        recent.put("b", &Rc::new(2), half);
        assert_eq!(keys(&recent), ["a", "b"]);
        recent.put("a", &Rc::new(3), half);
        assert_eq!(keys(&recent), ["b", "a"]);
        recent.put("c", &Rc::new(4), 1);
        assert_eq!(keys(&recent), ["a", "c"]);
        recent.put("too large", &Rc::new(5), LruCache::<usize>::BYTES_MOST + 1);
        assert_eq!(keys(&recent), Vec::<&str>::new());
    }
}
