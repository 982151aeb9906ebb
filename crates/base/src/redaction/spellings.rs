//! The texts that stand for a key: the key itself, its base64 and its hexadecimal digits, and long parts of each.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// So many characters of a key in a row are removed wherever they stand. A server that cuts its error message must not
/// leave most of a key behind.
const PART: usize = 20;
/// Of two pieces of a spelling that a line break divides, the longer one has at least so many characters.
const GRAM: usize = PART / 2;

/// All texts that are to be removed for `key`.
pub(super) fn spellings(key: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    for (encoded, part) in encodings(key) {
        all.extend(encoded.windows(part.min(encoded.len()).max(1)).map(<[u8]>::to_vec));
        all.insert(encoded);
    }
    all
}

/// Pieces of which at least one occurs in a text that holds a spelling, also if a line break divides it once.
pub(super) fn grams(spellings: &BTreeSet<Vec<u8>>) -> BTreeSet<&[u8]> {
    spellings.iter().flat_map(|spelling| spelling.windows(GRAM.min(spelling.len() / 2).max(1))).collect()
}

/// A key as it is, in base64 and in hexadecimal, each with the length in which [`PART`] bytes of the key are spelled. At
/// each alignment only those characters of the base64 count that the key alone determines: the others depend on what is
/// before and after it.
pub(super) fn encodings(key: &[u8]) -> Vec<(Vec<u8>, usize)> {
    let mut all = vec![
        (key.to_vec(), PART),
        (hexadecimal(key, b"0123456789abcdef"), 2 * PART),
        (hexadecimal(key, b"0123456789ABCDEF"), 2 * PART),
    ];
    for before in 0..3 {
        let shifted = [vec![0; before], key.to_vec()].concat();
        let (first, end) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            all.extend(encoded.as_bytes().get(first..end).map(|text| (text.to_vec(), PART * 8 / 6)));
        }
    }
    all
}

fn hexadecimal(key: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    key.iter().flat_map(|byte| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]).collect()
}
