//! A cache that machines share: signed, pulled as needed, uploaded as made; and what happens with entries of unknown
//! writers, damage, and a remote that is unavailable.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::brain::Wanted;
use super::project::{Ended, Key, Project, key};
use super::server::{Reply, Server};

const RUN: &str = "run --label a --runs 1";

/// A folder that projects share.
struct Remote(TempDir);

impl Remote {
    fn new() -> Remote {
        Remote(tempfile::tempdir().expect("a folder"))
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("shared")
    }

    fn create(&self) -> &Remote {
        fs::create_dir(self.folder()).expect("a folder");
        self.mode(0o700);
        self
    }

    fn mode(&self, mode: u32) {
        fs::set_permissions(self.folder(), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn url(&self) -> String {
        format!("fs://{}", self.folder().display())
    }

    fn packs(&self) -> BTreeSet<PathBuf> {
        let files = fs::read_dir(self.folder().join("packs"))
            .into_iter()
            .flatten()
            .flatten();
        files.map(|entry| entry.path()).collect()
    }

    /// Changes a byte of each pack at each of these fractions of its length.
    fn damage(&self, parts: &[f64]) {
        for path in self.packs() {
            let mut bytes = fs::read(&path).expect("a pack");
            for part in parts {
                let at = (bytes.len() as f64 * part) as usize;
                bytes[at] ^= 0x55;
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
            fs::write(&path, bytes).expect("a pack");
        }
    }
}

/// A project that uses the remote and trusts these writers.
fn sharing(server: &Server, remote: &Remote, trust: &[(&str, &Key)]) -> Project {
    let project = Project::new(server);
    project.share(&remote.url(), trust);
    project
}

/// A project that also uploads.
fn writing(server: &Server, remote: &Remote, trust: &[(&str, &Key)], key: &Key) -> Project {
    sharing(server, remote, trust).upload(key)
}

fn manifest(project: &Project) -> Value {
    project.result("a", "manifest.json")
}

#[test]
fn a_second_checkout_sends_no_request_and_knows_who_wrote() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    let first = writing(&server, &remote, &[("ci", &ci)], &ci);
    let ended = first.expect(0, RUN);
    ended.says(&["uploaded"]);
    let asked = server.count();
    assert!(asked > 0 && manifest(&first)["remote"]["uploaded"].as_u64() > Some(0));
    assert!(
        manifest(&first).get("writers").is_none(),
        "all was made here"
    );

    server.forget();
    let second = sharing(&server, &remote, &[("ci", &ci)]);
    second.expect(0, RUN).says(&["pulled"]);
    assert_eq!(server.count(), 0);
    assert_eq!(
        second.read("results/a/cells.jsonl"),
        first.read("results/a/cells.jsonl")
    );
    let made = manifest(&second);
    assert_eq!(
        (&made["writers"][0]["name"], &made["writers"][0]["key"]),
        (&"ci".into(), &ci.public.clone().into())
    );
    assert_eq!(made["writers"][0]["entries"], made["remote"]["pulled"]);
    let pulled = made["pulled"]
        .as_object()
        .expect("digests")
        .keys()
        .next()
        .expect("an entry")
        .clone();
    let shown = second.expect(0, &format!("cache show {pulled}")).stdout;
    assert!(
        shown.contains(&format!("ci ({})", ci.public)) && shown.contains(&remote.url()),
        "{shown}"
    );
    assert_eq!(
        second
            .expect(0, &format!("cache show {pulled} --json"))
            .json()["writer"]["name"],
        "ci"
    );
    let why = second
        .expect(0, "why harbor --label a --method anchored --probe port")
        .stdout;
    assert!(why.contains(&ci.public), "{why}");

    // Neither has anything more to do.
    let packs = remote.packs();
    first.expect(0, RUN);
    second.expect(0, &format!("{RUN} --offline"));
    assert_eq!((server.count(), remote.packs()), (0, packs));
    let entries = made["remote"]["pulled"].as_u64();
    assert_eq!(
        second
            .expect(0, "cache ls --writer ci --json")
            .json()
            .as_array()
            .map(|all| all.len() as u64),
        entries
    );
    assert!(
        !is_stored(&ci.secret, &first, &remote),
        "the secret is nowhere"
    );
}

#[test]
fn what_the_own_cache_has_only_as_broken_replies_is_pulled() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    let broken = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Grades => Reply::Text("A fine answer.".into()),
        _ => Reply::Sensible,
    });
    broken.expect(5, &format!("{RUN} --allow-weak-judge"));
    server.script(|_| Reply::Sensible);
    writing(&server, &remote, &[("ci", &ci)], &ci).expect(0, RUN);
    broken.share(&remote.url(), &[("ci", &ci)]);
    server.forget();
    broken.expect(0, RUN);
    assert_eq!(server.count(), 0);
}

/// Whether a secret occurs in a file of the project or the remote.
fn is_stored(secret: &str, project: &Project, remote: &Remote) -> bool {
    let mut files = project.files("");
    files.extend(remote.packs());
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes())
    };
    files.iter().any(holds)
}

#[test]
fn entries_of_an_unknown_writer_are_ignored_and_counted_even_if_he_was_trusted_before() {
    let (server, remote, (ci, stranger)) = (Server::start(), Remote::new(), (key(), key()));
    remote.create();
    writing(&server, &remote, &[("stranger", &stranger)], &stranger).expect(0, RUN);
    let other = sharing(&server, &remote, &[("ci", &ci)]);
    server.forget();
    let ended = other.expect(0, RUN);
    ended.says(&["1 pack", "not in `trust`", &stranger.public]);
    assert!(server.count() > 0);

    let mut believing = sharing(&server, &remote, &[("stranger", &stranger)]);
    server.forget();
    believing.expect(0, RUN);
    assert_eq!(server.count(), 0);
    believing.set("COMPEVAL_TRUST", &format!("ci {}", ci.public));
    assert!(
        !believing.expect(0, "plan --runs 1 --json").json()["estimate"]["requests"]
            .as_f64()
            .is_none_or(|n| n == 0.0)
    );
    believing.remove("cache/WRITERS");
    believing.expect(0, RUN).says(&["not in `trust`"]);
    assert!(server.count() > 0, "what he wrote is not used any more");
}

#[test]
fn a_damaged_pack_is_set_aside_by_name_and_its_entries_are_made_again() {
    let (server, ci) = (Server::start(), key());
    let (entries, footer): (&[f64], &[f64]) = (&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], &[0.97]);
    for parts in [entries, footer] {
        let remote = Remote::new();
        remote.create();
        writing(&server, &remote, &[("ci", &ci)], &ci).expect(0, RUN);
        remote.damage(parts);
        server.forget();
        let other = sharing(&server, &remote, &[("ci", &ci)]);
        let name = remote
            .packs()
            .first()
            .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .unwrap();
        let ended = other.expect(0, RUN);
        ended.says(&[&name, "damaged", "is not used"]);
        assert!(server.count() > 0, "made again: {}", ended.stderr);
    }
}

#[test]
fn a_pack_of_another_remote_is_not_used_where_it_is_copied_to() {
    let (server, ci) = (Server::start(), key());
    let (staging, production) = (Remote::new(), Remote::new());
    for remote in [&staging, &production] {
        remote.create();
    }
    writing(&server, &staging, &[("ci", &ci)], &ci).expect(0, RUN);
    let small = writing(&server, &production, &[("ci", &ci)], &ci);
    small.expect(0, "run --label small --runs 1 --methods nothing");
    for path in staging.packs() {
        fs::copy(
            &path,
            production
                .folder()
                .join("packs")
                .join(path.file_name().unwrap()),
        )
        .unwrap();
    }
    server.forget();
    sharing(&server, &production, &[("ci", &ci)])
        .expect(0, RUN)
        .says(&["signed for another remote"]);
    assert!(server.count() > 0);
}

#[test]
fn a_remote_that_is_away_is_one_warning_and_is_written_later() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    let project = writing(&server, &remote, &[("ci", &ci)], &ci);
    let ended = project.expect(0, RUN);
    ended.says(&["does not exist", "this run continues without it"]);
    assert_eq!(
        ended.stderr.matches("remote:").count(),
        1,
        "{}",
        ended.stderr
    );
    remote.create();
    server.forget();
    project.expect(0, RUN).says(&["uploaded"]);
    sharing(&server, &remote, &[("ci", &ci)]).expect(0, RUN);
    assert_eq!(server.count(), 0);
}

#[test]
fn eight_processes_share_one_remote() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    let projects: Vec<Project> = (0..8)
        .map(|_| writing(&server, &remote, &[("ci", &ci)], &ci))
        .collect();
    let run = "run --label a --runs 1 --methods anchored";
    let children: Vec<_> = projects
        .iter()
        .map(|project| project.command(run).spawn().expect("the program"))
        .collect();
    for child in children {
        let ended = Ended::of(&child.wait_with_output().expect("an end"));
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(!ended.stderr.contains("remote:"), "{}", ended.stderr);
    }
    let leftovers = fs::read_dir(remote.folder()).unwrap().flatten();
    assert!(leftovers.count() <= 3 && !remote.packs().is_empty());
    server.forget();
    sharing(&server, &remote, &[("ci", &ci)]).expect(0, run);
    assert_eq!(server.count(), 0);
}

#[test]
fn push_and_pull_move_everything_and_sign_nothing_of_others() {
    let (server, remote, (alice, bob)) = (Server::start(), Remote::new(), (key(), key()));
    remote.create();
    let trust = [("alice", &alice), ("bob", &bob)];
    let mut first = sharing(&server, &remote, &trust);
    first.expect(0, &format!("{RUN} --methods nothing"));
    first.expect(2, "cache push").says(&["only read"]);
    first.set("COMPEVAL_REMOTE_MODE", "write");
    first
        .expect(2, "cache push")
        .says(&["COMPEVAL_SIGNING_KEY is not set", "cache key"]);
    first.set("COMPEVAL_SIGNING_KEY", &alice.secret);
    let pushed = first.expect(0, "cache push --json").json();
    assert!(
        pushed["entries"].as_u64() > Some(0) && pushed["texts"] == 0,
        "{pushed}"
    );
    assert_eq!(first.expect(0, "cache push --json").json()["entries"], 0);

    let mut second = sharing(&server, &remote, &trust);
    let pulled = second.expect(0, "cache pull --json").json();
    assert_eq!(pulled["entries"], pushed["entries"]);
    assert_eq!(
        second
            .expect(0, "cache prune --writer alice --dry-run --json")
            .json()["entries"],
        pushed["entries"]
    );
    second.set("COMPEVAL_REMOTE_MODE", "write");
    second.set("COMPEVAL_SIGNING_KEY", &bob.secret);
    let elsewhere = Remote::new();
    elsewhere.create();
    let pushed = second
        .expect(
            0,
            &format!("cache push --remote {} --json", elsewhere.url()),
        )
        .json();
    assert_eq!(
        (&pushed["entries"], &pushed["of_others"]),
        (&0.into(), &pulled["entries"])
    );
    first.set("COMPEVAL_REMOTE_TEXTS", "true");
    let texts = first
        .expect(
            0,
            &format!("cache push --remote {} --json", elsewhere.url()),
        )
        .json();
    assert!(texts["texts"].as_u64() > Some(0));
}

#[test]
fn a_prune_that_only_counts_suggests_a_command_that_may_delete() {
    let (remote, ci) = (Remote::new(), key());
    remote.create();
    let count = format!("cache prune --remote {}", remote.url());
    let delete = format!("compeval {count} --delete");
    let mut project = Project::offline();
    project
        .expect(0, &count)
        .says(&[&format!("next: COMPEVAL_REMOTE_MODE=write {delete}")]);
    project.set("COMPEVAL_REMOTE_TEXTS", "yes");
    project
        .expect(2, &count)
        .says(&["COMPEVAL_REMOTE_TEXTS: expected `true` or `false`"]);
    project.unset("COMPEVAL_REMOTE_TEXTS");
    project
        .upload(&ci)
        .expect(0, &count)
        .says(&[&format!("next: {delete}")]);
}

#[test]
fn a_folder_on_the_command_line_takes_an_export_and_gives_an_import_without_keys() {
    let (server, remote) = (Server::start(), Remote::new());
    remote.create();
    let (first, second) = (Project::new(&server), Project::new(&server));
    first.expect(0, &format!("{RUN} --methods nothing"));
    let pushed = first
        .expect(0, &format!("cache push --remote {} --json", remote.url()))
        .json();
    assert!(pushed["entries"].as_u64() > Some(0), "{pushed}");
    let pulled = second
        .expect(0, &format!("cache pull --remote {} --json", remote.url()))
        .json();
    assert_eq!(pulled["entries"], pushed["entries"]);
    server.forget();
    second.expect(0, &format!("{RUN} --methods nothing"));
    assert_eq!(server.count(), 0);
    let imported = manifest(&second)["imported"][0].clone();
    assert_eq!(imported["file"], remote.url());
}

#[test]
fn a_pull_request_chooses_neither_place_nor_trust() {
    let (server, (ours, theirs), (ci, stranger)) = (
        Server::start(),
        (Remote::new(), Remote::new()),
        (key(), key()),
    );
    for remote in [&ours, &theirs] {
        remote.create();
    }
    let mut job = writing(
        &server,
        &theirs,
        &[("ci", &ci), ("stranger", &stranger)],
        &ci,
    );
    job.set("CI", "true");
    job.expect(0, RUN).says(&["CI is set", "not used"]);
    assert!(theirs.packs().is_empty());
    job.set("COMPEVAL_REMOTE", &ours.url());
    job.set("COMPEVAL_TRUST", &format!("ci {}", ci.public));
    job.expect(0, RUN);
    assert!(theirs.packs().is_empty() && !ours.packs().is_empty());
    assert_eq!(manifest(&job)["remote"]["url"], ours.url());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    let mut project = writing(&server, &remote, &[("ci", &ci)], &ci);
    project
        .expect(2, "cache pull")
        .says(&["does not exist", "mkdir -m 700"]);
    project
        .expect(2, "cache pull --remote https://host/x")
        .says(&["a web server is only read"]);
    project.set("COMPEVAL_REMOTE_MODE", "read");
    #[cfg(not(feature = "object-stores"))]
    project
        .expect(2, &format!("{RUN} --remote gs://bucket/x"))
        .says(&["built without object stores"]);
    project.set("COMPEVAL_REMOTE_MODE", "write");
    remote.create().mode(0o755);
    project
        .expect(0, RUN)
        .says(&["can be read by anybody", "chmod o="]);
    project
        .expect(2, "cache push")
        .says(&["can be read by anybody"]);
    remote.mode(0o700);
    fs::write(remote.folder().join("photo.jpg"), "not ours").unwrap();
    project
        .expect(2, "cache push")
        .says(&["photo.jpg", "no cache of compeval"]);
    fs::remove_file(remote.folder().join("photo.jpg")).unwrap();
    fs::write(
        remote.folder().join("compeval-cache.json"),
        r#"{"format": 7, "id": "00"}"#,
    )
    .unwrap();
    project
        .expect(2, "cache pull")
        .says(&["format 7", "newer compeval"]);
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
        let ended = project.expect(2, &format!("cache pull --remote {url}"));
        ended.says(&[why]);
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
    project.set("COMPEVAL_SIGNING_KEY", &ci.public);
    project
        .expect(2, RUN)
        .says(&["COMPEVAL_SIGNING_KEY", "public key"]);
    project.edit("pipeline.toml", &ci.public, &ci.secret);
    let ended = project.expect(2, "check");
    ended.says(&["secret key", "pipeline.toml"]);
    assert!(!ended.stderr.contains(&ci.secret), "{}", ended.stderr);
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
fn a_run_goes_on_where_the_remote_answers_differently() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    writing(&server, &remote, &[("ci", &ci)], &ci).expect(0, RUN);
    let project = sharing(&server, &remote, &[("ci", &ci)]);
    project.expect(0, RUN);
    // Another remote has other outputs of the same actions.
    let other = Remote::new();
    other.create();
    server.script(|asked| match asked.wanted {
        super::brain::Wanted::Answer => Reply::Text("The port is 9999.".into()),
        _ => Reply::Sensible,
    });
    writing(&server, &other, &[("ci", &ci)], &ci).expect(0, RUN);
    fs::remove_dir_all(project.path("cache")).unwrap();
    server.forget();
    let ended = project.expect(0, &format!("{RUN} --remote {}", other.url()));
    ended.says(&["differ from those that the earlier results"]);
    assert_eq!(server.count(), 0);
}

#[test]
fn a_plan_counts_what_the_remote_has_and_a_selftest_is_pulled() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    writing(&server, &remote, &[("ci", &ci)], &ci).expect(0, RUN);
    server.forget();
    let project = sharing(&server, &remote, &[("ci", &ci)]);
    let ended = project.expect(0, "plan --runs 1 --exit-code");
    ended.says(&["alone: a run pulls it", &remote.url()]);
    let stages = project.expect(0, "plan --runs 1 --json").json()["stages"].clone();
    for stage in ["compress", "answer", "judge", "selftest"] {
        let [actions, cached, remote] =
            ["actions", "cached", "remote"].map(|name| stages[stage][name].as_u64());
        assert!(remote > Some(0) && actions == cached, "{stage}: {stages}");
    }
    assert!(
        !project.exists("cache")
            || project.expect(0, "cache ls --json").json() == serde_json::json!([])
    );

    // Half of the actions have to be executed here. Those in the remote cost nothing.
    let more = project.expect(0, "plan --runs 2 --json").json();
    let stale = |stage: &str| more["stages"][stage]["stale"].as_u64().unwrap();
    assert!(
        stale("answer") > 0 && more["stages"]["answer"]["remote"] == stages["answer"]["remote"],
        "{more}"
    );
    let offline = project.expect(0, "plan --runs 1 --offline");
    offline.says(&["was not asked", &remote.url()]);
    project
        .expect(0, "run --runs 1 --dry-run --offline")
        .says(&["was not asked"]);
    project.expect(0, "judge selftest");
    assert_eq!(server.count(), 0, "pulled");
    project.expect(0, RUN);
    assert_eq!(server.count(), 0);
    let local = project.expect(0, "plan --runs 1 --json").json();
    assert!(
        local["stages"]["answer"].get("remote").is_none(),
        "all is here: {local}"
    );

    fs::rename(remote.folder(), remote.folder().with_extension("away")).unwrap();
    let away = sharing(&server, &remote, &[("ci", &ci)]).expect(0, "plan --runs 1 --json");
    assert_eq!(away.stderr.matches("remote:").count(), 1, "{}", away.stderr);
    assert!(away.json()["estimate"]["requests"].as_f64() > Some(0.0));
}

#[test]
fn generated_probes_are_pulled() {
    let (server, remote, ci) = (Server::start(), Remote::new(), key());
    remote.create();
    let probes = r#"{"probes": [{"type": "recall", "question": "Which listen port does the harbor service use at last?",
        "expected_facts": ["9091"], "reference_answer": "It listens on port 9091."}]}"#;
    server.script(move |asked| match asked.wanted {
        super::brain::Wanted::Compression => Reply::Text(probes.into()),
        _ => Reply::Sensible,
    });
    let generating = |project: Project| {
        let generator = "\n[[probes]]\nname = \"writer\"\nmodel = \"mock/small-1\"\n";
        project.write(
            "pipeline.toml",
            &(project.read("pipeline.toml") + generator),
        );
        project
    };
    let first = generating(writing(&server, &remote, &[("ci", &ci)], &ci));
    let generate = "probes generate --force";
    let ended = first.compeval(generate);
    first.expect(0, "cache push");
    assert!(server.count() > 0);
    server.forget();
    let second = generating(sharing(&server, &remote, &[("ci", &ci)]));
    assert_eq!(second.compeval(generate).code, ended.code);
    assert_eq!(server.count(), 0, "pulled");
    assert_eq!(
        second.read("probes/harbor.probes.json"),
        first.read("probes/harbor.probes.json")
    );
}
