//! A cache of values parsed from text, bounded in entries and in bytes, because an isolate may run for days.

use std::rc::Rc;

/// Evicts the least recently used entry first.
#[derive(Debug)]
pub struct LruCache<T> {
    /// The most recently used entry is last.
    entries: Vec<Entry<T>>,
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
            entries: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> LruCache<T> {
    const ENTRIES_MAX: usize = 64;
    pub const BYTES_MAX: usize = 2 << 20;

    pub fn get(&mut self, key: &str) -> Option<Rc<T>> {
        let index = self.entries.iter().rposition(|entry| *entry.key == *key)?;
        self.entries[index..].rotate_left(1);
        Some(Rc::clone(&self.entries.last()?.value))
    }

    /// Replaces the entry with this key. `bytes` is the approximate size of the value.
    pub fn insert(&mut self, key: &str, value: &Rc<T>, bytes: usize) {
        self.entries.retain(|entry| *entry.key != *key);
        self.entries.push(Entry {
            key: key.into(),
            value: Rc::clone(value),
            bytes,
        });
        self.bytes = self.entries.iter().map(|entry| entry.bytes).sum();
        while self.entries.len() > Self::ENTRIES_MAX || self.bytes > Self::BYTES_MAX {
            self.bytes -= self.entries.remove(0).bytes;
        }
    }

    /// The cached value for `text`, or the one that `parse` returns. Errors are not cached.
    pub fn get_or_try_insert<E>(
        &mut self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Rc<T>, E> {
        if let Some(value) = self.get(text) {
            return Ok(value);
        }
        let value = Rc::new(parse(text)?);
        self.insert(text, &value, text.len());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(cache: &LruCache<usize>) -> Vec<&str> {
        cache.entries.iter().map(|entry| &*entry.key).collect()
    }

    #[test]
    fn a_value_is_parsed_once_and_an_error_is_not_cached() {
        let mut cache = LruCache::default();
        let first = cache.get_or_try_insert("a", |_| Ok::<_, ()>(1)).expect("parsed");
        let second = cache
            .get_or_try_insert("a", |_| Err::<usize, _>(()))
            .expect("cached");
        assert!(Rc::ptr_eq(&first, &second));
        assert_eq!(cache.get_or_try_insert("b", |_| Err("no")), Err("no"));
        assert_eq!(keys(&cache), ["a"]);
    }

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let mut cache = LruCache::default();
        for number in 0..LruCache::<usize>::ENTRIES_MAX {
            cache.insert(&number.to_string(), &Rc::new(number), 1);
        }
        assert_eq!(cache.get("0").as_deref(), Some(&0));
        cache.insert("one more", &Rc::new(64), 1);
        assert_eq!(cache.get("1"), None);
        assert_eq!(cache.get("0").as_deref(), Some(&0));
    }

    #[test]
    fn bytes_are_bounded() {
        let half = LruCache::<usize>::BYTES_MAX / 2;
        let mut cache = LruCache::default();
        cache.insert("a", &Rc::new(1), half);
        cache.insert("b", &Rc::new(2), half);
        assert_eq!(keys(&cache), ["a", "b"]);
        cache.insert("a", &Rc::new(3), half);
        assert_eq!(keys(&cache), ["b", "a"]);
        cache.insert("c", &Rc::new(4), 1);
        assert_eq!(keys(&cache), ["a", "c"]);
        cache.insert("too large", &Rc::new(5), LruCache::<usize>::BYTES_MAX + 1);
        assert_eq!(keys(&cache), Vec::<&str>::new());
    }
}
