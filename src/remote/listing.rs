//! The object that lists a remote, for readers that cannot: web servers list nothing. Writers replace it when they have
//! uploaded. It says where to look and nothing more: everything that it names is verified as anywhere else.
//!
//! ```text
//! compeval listing 1
//! segments/<digest> 4194304
//! index/<digest> 81920
//! ```

use std::fmt::Write;

use bytes::Bytes;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::{rollup, segment};

pub(super) const OBJECT: &str = "index/latest";
const HEADING: &str = "compeval listing";
const VERSION: u64 = 1;

/// Lists what is there now.
pub(super) async fn write(remote: &dyn Remote) -> Result<(), RemoteError> {
    let (segments, rollups) = futures::try_join!(remote.list(segment::FOLDER), remote.list(rollup::FOLDER))?;
    let mut text = format!("{HEADING} {VERSION}\n");
    let mut listed: Vec<ListedObject> = segments.into_iter().chain(rollups).collect();
    listed.sort_unstable();
    for ListedObject { name, bytes, .. } in listed.iter().filter(|object| object.name != OBJECT) {
        let _ = writeln!(text, "{name} {bytes}");
    }
    remote.replace(OBJECT, Bytes::from(text)).await
}

/// The objects of a folder. A line that cannot be read is left out.
#[cfg_attr(not(feature = "object-stores"), allow(dead_code, reason = "web servers alone are read by it"))]
pub(super) fn decode(bytes: &[u8], folder: &str, url: &str) -> Result<Vec<ListedObject>, RemoteError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix(HEADING)?.trim().parse::<u64>().ok());
    match version {
        Some(found) if found > VERSION => {
            return Err(RemoteError::NewerFormat { url: url.to_owned(), found, known: VERSION });
        }
        Some(_) => {}
        None => return Err(RemoteError::Foreign { url: url.to_owned(), found: OBJECT.to_owned() }),
    }
    let listed = lines.filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        let is_below = name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let object = ListedObject { name: name.to_owned(), bytes: bytes.parse().ok()?, written: None };
        is_below.then_some(object)
    });
    Ok(listed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_by_folder() {
        let text = b"compeval listing 1\nindex/aa 12\nsegments/bb 34\nsegments/cc\nsegmentsdd 5\n";
        let names = |folder: &str| {
            let found = decode(text, folder, "https://host/x").unwrap();
            found.into_iter().map(|object| (object.name, object.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(names("segments"), [("segments/bb".to_owned(), 34)]);
        assert_eq!(names("index"), [("index/aa".to_owned(), 12)]);
        let refused = |text: &[u8]| decode(text, "index", "https://host/x").unwrap_err();
        assert!(matches!(refused(b"compeval listing 2\n"), RemoteError::NewerFormat { found: 2, .. }));
        assert!(matches!(refused(b"<html>"), RemoteError::Foreign { .. }));
    }
}
