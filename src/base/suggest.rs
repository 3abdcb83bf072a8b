//! Suggestions for misspelled names, and the list of known names in a message.

/// The known name that was most likely meant, if one is similar enough. The first of equally similar names wins.
pub fn closest<'a>(known: &[&'a str], name: &str) -> Option<&'a str> {
    let candidates = known
        .iter()
        .filter_map(|known| Some((typos(known, name)?, *known)));
    candidates.min_by_key(|(typos, _)| *typos).map(|(_, known)| known)
}

/// All known names, each once, as the end of a message.
pub fn known_names(known: &[&'static str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => "(none is known here)".to_string(),
        false => format!("(known: {})", names.join(", ")),
    }
}

/// The number of characters to change, if that is few for the length of the name, or if only the end of it is missing.
fn typos(known: &str, name: &str) -> Option<usize> {
    let (known, name): (Vec<char>, Vec<char>) = (known.chars().collect(), name.chars().take(42).collect());
    let typos_max = match known.len().max(name.len()) {
        0..=3 => 1,
        4..=8 => 2,
        _longer => 3,
    };
    if name.len() >= 4 && known.starts_with(&name) {
        return Some(known.len() - name.len());
    }
    if known.len().abs_diff(name.len()) > typos_max || name.len() > 40 {
        return None;
    }
    Some(edit_distance(&known, &name)).filter(|typos| *typos <= typos_max)
}

/// The Levenshtein distance.
pub fn edit_distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["timeout", "timeout_ms", "id"];
        for (name, expected) in [
            ("timout", Some("timeout")),
            ("time", Some("timeout")),
            ("timeout_s", Some("timeout_ms")),
            ("di", None),
            ("name", None),
        ] {
            assert_eq!(closest(&known, name), expected, "{name}");
        }
        assert_eq!(edit_distance(b"kitten", b"sitting"), 3);
    }
}
