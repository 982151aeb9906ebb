//! Whether a fact stands in an answer: folded, at word boundaries, a path also by its file name.

use crate::fixture::fold;
use crate::probe::Fact;

/// Whether one spelling of `fact` stands in `folded`, a text that [`fold`] made.
pub(super) fn stands_in(folded: &str, fact: &Fact) -> bool {
    fact.spellings.iter().any(|spelling| {
        let needle = fold(spelling);
        stands(folded, &needle) || file_name(&needle).is_some_and(|name| stands(folded, name))
    })
}

fn file_name(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    (!folder.is_empty() && name.contains('.') && !path.contains(' ')).then_some(name)
}

fn stands(text: &str, needle: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (Some(first), Some(last)) = (needle.chars().next(), needle.chars().next_back()) else {
        return false;
    };
    text.match_indices(needle).any(|(at, found)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let mut after = text.get(at + found.len()..).unwrap_or_default().chars();
        let open_start = is_word(first) && before.is_some_and(is_word);
        let next = after.next();
        let number_goes_on = last.is_ascii_digit()
            && matches!(next, Some('.' | ','))
            && after.next().is_some_and(|c| c.is_ascii_digit());
        let open_end = is_word(last) && next.is_some_and(is_word) || number_goes_on;
        !open_start && !open_end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_stands_at_its_boundaries_only() {
        let fact = |text: &str| Fact { spellings: vec![text.to_owned()] };
        assert!(stands_in("port 5, then", &fact("5")));
        assert!(!stands_in("port 15", &fact("5")) && !stands_in("v1.2.3", &fact("1.2")));
        assert!(stands_in("see store.py", &fact("jobq/Store.py")));
        assert!(!stands_in("restore.py", &fact("jobq/store.py")));
        assert!(stands_in("改用端口8081。", &fact("端口8081")));
    }
}
