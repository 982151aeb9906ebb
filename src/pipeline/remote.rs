//! The table `[cache]`: a remote cache and its trusted writers.

use super::file::Located;
use super::file::tables::{CacheTable, Declared};
use super::model::SourceFile;
use super::problem::{Problem, Problems, suggest};
use store::remote::{DeclaredRemote, RemoteMode, RemoteUrl, TrustedWriter};

/// What the pipeline says about a remote.
pub(super) fn declared_remote(declared: &Declared, file: &SourceFile, problems: &mut Problems) -> DeclaredRemote {
    let nothing = CacheTable::default();
    let table = declared.cache.as_ref().map_or(&nothing, |table| &table.value);
    let CacheTable { remote, trust, remote_mode, remote_texts } = table;
    let mut error = |at: &Located<String>, message: String, help: String| {
        problems.push(Problem::error(message).at(file, at.place.clone()).help(help));
    };
    let url = remote.as_ref().and_then(|url| {
        let parsed = url.value.parse::<RemoteUrl>();
        parsed.map_err(|why| error(url, why.to_string(), "docs/shared-cache.md has examples".into())).ok()
    });
    let trust = trust.as_ref().map(|list| {
        let read = |writer: &Located<String>| {
            let parsed = writer.value.parse::<TrustedWriter>();
            let help = "compeval cache key   makes a key and prints this line";
            parsed.map_err(|why| error(writer, format!("this is no writer: {why}"), help.into())).ok()
        };
        list.value.iter().filter_map(read).collect()
    });
    let mode = remote_mode.as_ref().and_then(|word| {
        let found = RemoteMode::from_name(&word.value);
        if found.is_none() {
            let help = suggest(&word.value, RemoteMode::ALL.map(RemoteMode::name));
            error(word, format!("unknown remote_mode `{}`", word.value), help);
        }
        found
    });
    DeclaredRemote { url, trust, mode, texts: remote_texts.as_ref().map(|texts| texts.value) }
}
