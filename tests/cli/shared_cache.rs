//! A cache that machines share: an object for each key, pulled as needed and put as made; and what happens with objects
//! that do not verify, and a remote that fails.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::brain::Wanted;
use super::project::{Ended, Project};
use super::server::{Reply, Server};

const RUN: &str = "run --label a --runs 1";
const WRITE: &str = "run --label a --runs 1 --remote-mode write";

/// A folder that projects share.
pub struct Remote(TempDir);

impl Remote {
    pub fn new() -> Remote {
        let remote = Remote(tempfile::tempdir().expect("a folder"));
        remote.create();
        remote
    }

    fn create(&self) {
        fs::create_dir(self.folder()).expect("a folder");
        fs::set_permissions(self.folder(), fs::Permissions::from_mode(0o700)).expect("a mode");
    }

    pub fn folder(&self) -> PathBuf {
        self.0.path().join("shared")
    }

    pub fn url(&self) -> String {
        format!("fs://{}", self.folder().display())
    }

    /// The objects, by their paths.
    pub fn objects(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let mut objects: Vec<PathBuf> = folders
            .flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten())
            .map(|object| object.path())
            .collect();
        objects.sort();
        objects
    }
}

fn sharing(server: &Server, remote: &Remote) -> Project {
    let project = Project::new(server);
    project.share(&remote.url());
    project
}

fn overwrite(path: &PathBuf, bytes: &[u8]) {
    fs::remove_file(path).expect("an object");
    fs::write(path, bytes).expect("an object");
}

fn warnings(ended: &Ended) -> usize {
    ended.stderr.matches("remote:").count()
}

#[test]
fn a_second_checkout_sends_no_request_and_knows_where_its_entries_are_from() {
    let (server, remote) = (Server::start(), Remote::new());
    let first = sharing(&server, &remote);
    first.expect(0, WRITE).says(&["put there"]);
    assert!(server.count() > 0 && !remote.objects().is_empty());
    server.forget();
    let second = sharing(&server, &remote);
    second.expect(0, RUN).says(&["pulled"]);
    assert_eq!(server.count(), 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
    let used = second.result("a", "manifest.json")["remote"].clone();
    assert_eq!(used["url"], remote.url());
    let pulled = second.expect(0, &format!("cache ls --remote {} --json", remote.url()));
    assert_eq!(
        pulled.json().as_array().map(|all| all.len() as u64),
        used["pulled"].as_u64()
    );
    // Such entries can be removed.
    second.expect(0, &format!("cache prune --remote {}", remote.url()));
    let left = second.expect(0, &format!("cache ls --remote {} --json", remote.url()));
    assert_eq!(left.json(), serde_json::json!([]));
    // A reader puts nothing.
    let objects = remote.objects();
    second.expect(0, "run --label b --runs 2");
    assert_eq!(remote.objects(), objects);
}

#[test]
fn objects_that_do_not_verify_are_misses_with_one_warning() {
    let (server, remote) = (Server::start(), Remote::new());
    let first = sharing(&server, &remote);
    first.expect(0, WRITE);
    let objects = remote.objects();
    let sound: Vec<Vec<u8>> = objects.iter().map(|path| fs::read(path).unwrap()).collect();
    type Damage<'d> = (&'d str, &'d dyn Fn(usize, &[u8]) -> Vec<u8>);
    let damage: [Damage<'_>; 5] = [
        ("cut", &|_, bytes| bytes[..bytes.len() / 2].to_vec()),
        ("empty", &|_, _| Vec::new()),
        ("HTML", &|_, _| b"<html>Sign in</html>".to_vec()),
        ("swapped", &|at, _| sound[(at + 1) % sound.len()].clone()),
        ("flipped", &|_, bytes| {
            let mut bytes = bytes.to_vec();
            let at = bytes.len() * 2 / 3;
            bytes[at] ^= 0x55;
            bytes
        }),
    ];
    for (what, change) in damage {
        for (at, path) in objects.iter().enumerate() {
            overwrite(path, &change(at, &sound[at]));
        }
        server.forget();
        let other = sharing(&server, &remote);
        let ended = other.expect(0, RUN);
        ended.says(&["is not used"]);
        assert_eq!(warnings(&ended), 1, "{what}: {}", ended.stderr);
        assert!(server.count() > 0, "{what}: made again");
        assert_eq!(
            other.read("results/a/cells.jsonl"),
            first.read("results/a/cells.jsonl"),
            "{what}"
        );
    }
    // Who writes replaces them, from what it has or from what it has paid for; sound ones stay as they are.
    for writer in [&first, &sharing(&server, &remote)] {
        let kept = &objects[0];
        for (path, sound) in objects.iter().zip(&sound).skip(1) {
            overwrite(path, &sound[..sound.len() / 2]);
        }
        overwrite(kept, &sound[0]);
        writer.expect(0, WRITE);
        assert_eq!(fs::read(kept).unwrap(), sound[0]);
        server.forget();
        sharing(&server, &remote).expect(0, RUN);
        assert_eq!(server.count(), 0);
    }
}

#[test]
fn folders_that_are_links_are_misses() {
    let (server, remote) = (Server::start(), Remote::new());
    sharing(&server, &remote).expect(0, WRITE);
    for folder in fs::read_dir(remote.folder()).unwrap().flatten() {
        let moved = remote.0.path().join(folder.file_name());
        fs::rename(folder.path(), &moved).unwrap();
        symlink(&moved, folder.path()).unwrap();
    }
    server.forget();
    let ended = sharing(&server, &remote).expect(0, RUN);
    ended.says(&["is not used", "a link"]);
    assert!(warnings(&ended) == 1 && server.count() > 0);
}

#[test]
fn with_a_key_only_objects_with_its_code_are_used() {
    let (server, remote) = (Server::start(), Remote::new());
    let keyed = |secret: Option<&str>| {
        let mut project = sharing(&server, &remote);
        if let Some(secret) = secret {
            project.set("COMPEVAL_REMOTE_KEY", secret);
        }
        project
    };
    keyed(Some("a secret of our team")).expect(0, WRITE);
    for (secret, is_used) in [
        (Some("a secret of our team"), true),
        (None, true),
        (Some("a secret of another team"), false),
    ] {
        server.forget();
        let ended = keyed(secret).expect(0, RUN);
        assert_eq!(server.count() == 0, is_used, "{}", ended.stderr);
        assert_eq!(warnings(&ended), usize::from(!is_used));
        assert!(!ended.stderr.contains("secret of"), "{}", ended.stderr);
    }
    // A secret that was changed: the first machine that writes pays, and no other.
    let another = Some("a secret of another team");
    keyed(another).expect(0, WRITE);
    server.forget();
    let ended = keyed(another).expect(0, RUN);
    assert_eq!((server.count(), warnings(&ended)), (0, 0));
    // With a remote on the command line, one that CI did not pass is refused like any that is too short.
    let named = format!("{RUN} --remote {}", remote.url());
    for (secret, command, code) in [("short", RUN, 2), ("", &named, 2), ("", "plan", 0)] {
        let ended = keyed(Some(secret)).expect(code, command);
        let is_refused = ended
            .stderr
            .contains("COMPEVAL_REMOTE_KEY: expected a secret of at least 16");
        assert_eq!(is_refused, code == 2, "{}", ended.stderr);
    }
}

#[test]
fn a_remote_that_is_away_is_one_warning_and_is_written_later() {
    let (server, remote) = (Server::start(), Remote::new());
    fs::remove_dir(remote.folder()).unwrap();
    let project = sharing(&server, &remote);
    let ended = project.expect(0, WRITE);
    ended.says(&["does not exist", "mkdir -m 700", "continues without"]);
    assert_eq!(warnings(&ended), 1, "{}", ended.stderr);
    remote.create();
    server.forget();
    project.expect(0, WRITE).says(&["put there"]);
    sharing(&server, &remote).expect(0, RUN);
    assert_eq!(server.count(), 0);
}

#[test]
fn what_is_there_is_used_before_anything_depends_on_it() {
    let (server, remote) = (Server::start(), Remote::new());
    let answers = |text: &'static str| {
        server.script(move |asked| match asked.wanted {
            Wanted::Answer => Reply::Text(text.into()),
            _ => Reply::Sensible,
        });
    };
    answers("The port is 9091.");
    let first = sharing(&server, &remote);
    first.expect(0, WRITE);
    // Another machine has made other outputs before it shared anything.
    answers("The port is 8080.");
    let second = Project::new(&server);
    second.expect(0, RUN);
    second.share(&remote.url());
    server.forget();
    second.expect(0, WRITE);
    assert_eq!(server.count(), 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
    // A refresh replaces the objects.
    second.expect(0, &format!("{WRITE} --refresh answer"));
    server.forget();
    let third = sharing(&server, &remote);
    third.expect(0, RUN);
    assert_eq!(server.count(), 0);
    assert_eq!(
        third.read("results/a/cells.jsonl"),
        second.read("results/a/cells.jsonl")
    );
    assert_ne!(
        third.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
}

#[test]
fn a_pull_request_chooses_neither_place_nor_mode() {
    let (server, ours, theirs) = (Server::start(), Remote::new(), Remote::new());
    let mut job = sharing(&server, &theirs);
    job.edit(
        "pipeline.toml",
        "[cache]\n",
        "[cache]\nremote_mode = \"write\"\n",
    );
    job.set("CI", "true");
    job.expect(0, RUN).says(&["CI is set", "not used"]);
    job.set("COMPEVAL_REMOTE", &ours.url());
    job.expect(0, RUN);
    assert!(theirs.objects().is_empty() && ours.objects().is_empty());
    job.set("COMPEVAL_REMOTE_MODE", "write");
    job.expect(0, RUN);
    assert!(theirs.objects().is_empty() && !ours.objects().is_empty());
    assert_eq!(
        job.result("a", "manifest.json")["remote"]["url"],
        ours.url()
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let (server, remote) = (Server::start(), Remote::new());
    let project = sharing(&server, &remote);
    project
        .expect(2, &format!("{WRITE} --remote https://host/x"))
        .says(&["a web server is only read", "--remote-mode read"]);
    for (url, why) in [
        ("s3://AKIA:hunter2secret@bucket/x", "credentials"),
        ("s3://bucket/x?token=hunter2secret", "environment"),
        ("/srv/cache", "fs:///FOLDER"),
        ("http://example.com/x", "use https://"),
        #[cfg(not(feature = "object-stores"))]
        (
            "s3://bucket/x",
            "cargo install compeval --features object-stores",
        ),
    ] {
        let ended = project.expect(2, &format!("{RUN} --remote {url}"));
        ended.says(&[why]);
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
    project.edit(
        "pipeline.toml",
        "remote = \"fs://",
        "remote = \"s3://a:hunter2secret@",
    );
    let ended = project.expect(2, "check");
    assert!(
        !ended.stderr.contains("hunter2") && !ended.stdout.contains("hunter2"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_variable_of_other_bytes_is_refused_by_its_name_if_it_is_read() {
    let bytes = OsStr::from_bytes(b"/tmp/\xff and 16 or more");
    let project = Project::offline();
    for (name, code) in [
        ("COMPEVAL_REMOTE_KEY", 2),
        ("COMPEVAL_CACHE", 2),
        ("COMPEVAL_REMOTE", 2),
        ("https_proxy", 2),
        ("MOCK_API_KEY", 2),
        ("PWD", 0),
        ("LS_COLORS", 0),
        ("MY_HTTP_PROXY", 0),
    ] {
        let is_key = name == "MOCK_API_KEY";
        let mut command = project.command(if is_key { "run --label a" } else { "check" });
        let ended = Ended::of(&command.env(name, bytes).output().unwrap());
        assert_eq!(ended.code, code, "{name}: {}", ended.stderr);
        let is_named = ended.stderr.contains(name) && ended.stderr.contains("is not UTF-8");
        assert_eq!(is_named, code == 2, "{name}: {}", ended.stderr);
    }
}

#[test]
fn a_plan_counts_what_the_remote_has() {
    let (server, remote) = (Server::start(), Remote::new());
    sharing(&server, &remote).expect(0, WRITE);
    server.forget();
    let project = sharing(&server, &remote);
    let ended = project.expect(0, "plan --runs 1 --exit-code");
    ended.says(&["downloaded at no cost", &remote.url()]);
    let stages = project.expect(0, "plan --runs 1 --json").json()["stages"].clone();
    for stage in ["compress", "answer", "judge", "selftest"] {
        let [actions, cached, remote] =
            ["actions", "cached", "remote"].map(|name| stages[stage][name].as_u64());
        assert!(remote > Some(0) && actions == cached, "{stage}: {stages}");
    }
    project.expect(0, "judge selftest");
    assert_eq!(server.count(), 0, "pulled");
    fs::rename(remote.folder(), remote.folder().with_extension("away")).unwrap();
    let away = sharing(&server, &remote).expect(0, "plan --runs 1 --json");
    assert_eq!(warnings(&away), 1, "{}", away.stderr);
    assert!(away.json()["estimate"]["requests"].as_f64() > Some(0.0));
}
