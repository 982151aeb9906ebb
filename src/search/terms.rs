//! Terms: the units that texts are matched by. Words in lower case, identifiers whole and in parts, Chinese, Japanese
//! and Korean in pairs of characters.

use base::words::is_east_asian;

/// A term by its hash: terms are compared, never shown.
pub(super) type Term = u64;

/// Calls `each` with every term of `text`, repeats included.
pub(super) fn each_term(text: &str, mut each: impl FnMut(Term)) {
    let mut word = Word::default();
    let mut wide: Option<char> = None;
    let mut was_paired = false;
    for c in text.chars() {
        if is_east_asian(c) {
            word.end(&mut each);
            if let Some(before) = wide {
                each(hash_of([before, c]));
            }
            was_paired = wide.is_some();
            wide = Some(c);
            continue;
        }
        if let Some(alone) = wide.take().filter(|_| !was_paired) {
            each(hash_of([alone]));
        }
        was_paired = false;
        if c.is_alphanumeric() || c == '_' {
            word.push(c)
        } else {
            word.end(&mut each)
        }
    }
    word.end(&mut each);
    if let Some(alone) = wide.filter(|_| !was_paired) {
        each(hash_of([alone]));
    }
}

/// The distinct terms of `text`, in order of appearance.
pub(super) fn distinct_terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    each_term(text, |term| {
        if !terms.contains(&term) {
            terms.push(term);
        }
    });
    terms
}

/// The word that is being read, with the parts of an identifier: `lease_until` and `leaseUntil` have two.
#[derive(Default)]
struct Word {
    whole: Fnv,
    part: Fnv,
    parts: Vec<Term>,
    after_lower: bool,
}

impl Word {
    fn push(&mut self, c: char) {
        let begins_part = c == '_' || self.after_lower && c.is_uppercase();
        if begins_part {
            self.end_part();
        }
        self.after_lower = c.is_lowercase() || c.is_numeric();
        for lower in c.to_lowercase() {
            self.whole.add(lower);
            if c != '_' {
                self.part.add(lower);
            }
        }
    }

    fn end_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        if !part.is_empty {
            self.parts.push(part.hash);
        }
    }

    fn end(&mut self, each: &mut impl FnMut(Term)) {
        if self.whole.is_empty {
            return;
        }
        self.end_part();
        if self.parts.len() > 1 {
            self.parts.iter().for_each(|part| each(*part));
        }
        // Underscores alone are not a word.
        if !self.parts.is_empty() {
            each(self.whole.hash);
        }
        self.parts.clear();
        self.whole = Fnv::default();
        self.after_lower = false;
    }
}

/// FNV-1a: small, and the same on every machine.
struct Fnv {
    hash: Term,
    is_empty: bool,
}

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv {
            hash: 0xcbf2_9ce4_8422_2325,
            is_empty: true,
        }
    }
}

impl Fnv {
    fn add(&mut self, c: char) {
        let mut bytes = [0; 4];
        for byte in c.encode_utf8(&mut bytes).bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.is_empty = false;
    }
}

fn hash_of<const N: usize>(characters: [char; N]) -> Term {
    let mut fnv = Fnv::default();
    characters.into_iter().for_each(|c| fnv.add(c));
    fnv.hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(a: &str, b: &str) -> bool {
        let of_b = distinct_terms(b);
        distinct_terms(a).iter().any(|term| of_b.contains(term))
    }

    #[test]
    fn identifiers_meet_whole_and_in_parts() {
        assert!(
            share("lease_until", "the lease")
                && share("leaseUntil", "UNTIL")
                && share("RETRY_COUNT", "retry_count")
        );
        assert!(share("jobq/store.py", "the store module") && share("port 8081", "(8081)"));
        assert!(!share("port", "report") && !share("a", "b"));
        assert!(distinct_terms("__ -- !").is_empty());
        assert_eq!(distinct_terms("retry retry").len(), 1);
    }

    #[test]
    fn scripts_without_blanks_meet_in_pairs() {
        assert!(share("端口号是多少", "改端口为 8081"));
        assert!(!share("端口", "口端"));
        assert!(share("库", "第 库 页"), "a character by itself is a term");
        assert!(share("改为8081", "8081"));
    }
}
