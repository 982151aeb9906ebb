//! Limits on what replies, counts and clocks cost: memory, money and waiting are bounded whatever a provider says.

use serde_json::json;
use std::io::Write as _;

use super::brain::{self, Wanted};
use super::project::{Project, Running};
use super::server::{Reply, Server, with_finish};

#[test]
fn impossible_usage_is_estimated_with_a_warning() {
    let server = Server::start();
    let project = Project::new(&server);
    let prices = "[prices.\"mock/small-1\"]\ninput = 1.0\noutput = 2.0\n[prices.\"mock/judge-1\"]\ninput = 1.0\noutput = 2.0\n";
    project.write(
        "pipeline.toml",
        &format!("{}\n{prices}", project.read("pipeline.toml")),
    );
    server.script(|asked| match asked.wanted {
        Wanted::Answer => {
            let body = with_finish(asked, &brain::reply(&asked.json), "stop");
            Reply::Raw(
                200,
                body.replace("_tokens\":", &format!("_tokens\":{},\"said\":", u64::MAX)),
            )
        }
        _ => Reply::Sensible,
    });
    let ended = project.expect(0, "run --label a --runs 1 --methods full --max-cost 5");
    let manifest = project.result("a", "manifest.json");
    let usd = manifest["usd"].as_f64().unwrap();
    assert!(usd > 0.0 && usd < 1.0, "{usd}: {}", ended.stdout);
    assert!(
        manifest["caveats"]
            .to_string()
            .contains("`mock/small-1` reports token counts that cannot be true")
    );
    assert!(
        manifest["usage"]["input"]
            .as_u64()
            .is_some_and(|tokens| tokens < 10_000_000),
        "{}",
        manifest["usage"]
    );
    let again = project.expect(0, "run --label a --runs 1 --methods full --json");
    assert!(!again.stdout.contains("1844674407"), "{}", again.stdout);
}

#[test]
fn a_reply_longer_than_any_model_writes_is_given_up_at_once() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Answer if asked.text.contains("Who owns the machine?") => {
            Reply::Text("word ".repeat(4 << 20))
        }
        _ => Reply::Sensible,
    });
    project.expect(5, "run --label a --runs 1 --methods full");
    let failures = project.result("a", "manifest.json")["failures"].to_string();
    assert!(
        failures.contains("the reply is longer than 16 MB"),
        "{failures}"
    );
    let asked = server.asked();
    assert!(
        asked.iter().all(|asked| asked.earlier == 0),
        "the same request has the same reply"
    );
}

#[test]
fn large_replies_are_read_one_after_the_other_and_all_of_them() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Answer => Reply::Text(format!(
            "{} {}",
            brain::reply(&asked.json),
            "padding ".repeat(150_000)
        )),
        Wanted::Grades => Reply::Raw(
            400,
            json!({"error": {"message": "not today", "type": "invalid"}}).to_string(),
        ),
        Wanted::Compression => Reply::Sensible,
    });
    project.expect(
        5,
        "run --label a --runs 1 --methods full --allow-weak-judge",
    );
    let stages = &project.result("a", "manifest.json")["stages"];
    assert_eq!(stages["answer"]["failed"], 0, "{stages}");
}

#[test]
fn replies_are_asked_for_and_read_compressed_within_the_same_bound() {
    let server = Server::start();
    let project = Project::new(&server);
    let run = |label: &str| format!("run --runs 1 --methods full --refresh answer --label {label}");
    project.expect(0, &run("plain"));
    let packed = |reply: Reply| {
        Reply::Headed(
            vec![("content-encoding", "gzip".to_owned())],
            Box::new(reply),
        )
    };
    server.script(move |_| packed(Reply::Sensible));
    project.expect(0, &run("packed"));
    assert!(server.asked().iter().all(|asked| {
        asked.headers["accept-encoding"]
            .to_str()
            .unwrap()
            .contains("gzip")
    }));
    assert_eq!(
        project.read("results/packed/cells.jsonl"),
        project.read("results/plain/cells.jsonl")
    );
    server.script(move |_| packed(Reply::Raw(200, " ".repeat(17 << 20))));
    project
        .expect(5, &run("bomb"))
        .says(&["the reply is longer than 16 MB"]);
}

#[test]
fn templates_that_loop_or_grow_are_refused_when_the_project_is_checked() {
    let project = Project::offline();
    let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{{ question }}{% endfor %}{% endfor %}";
    let doubling = format!(
        "{{% set x = question %}}{}{{{{ x }}}}",
        "{% set x = x ~ x %}".repeat(60)
    );
    for template in [
        loops,
        &doubling,
        "{{ question * 99999999 }}",
        "{{ question ~ question }}",
        "{{ [question] * 9 }}",
    ] {
        project.write(
            "prompts/answer.md",
            &format!("{{{{ context }}}} {template}"),
        );
        project.expect(2, "check").says(&["prompts/answer.md"]);
        project.expect(2, "run --label a");
    }
}

/// A library that sets the clock of a program to `seconds` after 1970; `None` where there is no compiler for C.
#[cfg(target_os = "linux")]
fn clock_library(folder: &std::path::Path, seconds: i64) -> Option<std::path::PathBuf> {
    let (source, library) = (
        folder.join("clock.c"),
        folder.join(format!("clock{seconds}.so")),
    );
    let code = format!(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t id, struct timespec *t) {{\n  long r = syscall(SYS_clock_gettime, id, t);\n  \
         if (id == CLOCK_REALTIME) t->tv_sec = {seconds};\n  return (int)r;\n}}\n"
    );
    std::fs::write(&source, code).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    built
        .is_ok_and(|status| status.success())
        .then_some(library)
}

#[test]
#[cfg(target_os = "linux")]
fn no_clock_is_too_strange() {
    let server = Server::start();
    for seconds in [-1_000_000_000, 884_541_340_800] {
        let project = Project::new(&server);
        let Some(library) = clock_library(&project.path(""), seconds) else {
            writeln!(std::io::stderr(), "skipped: there is no compiler for C").unwrap();
            return;
        };
        for arguments in ["run --runs 1 --methods full", "cache ls", "plan"] {
            let mut command = project.command(arguments);
            command.env("LD_PRELOAD", &library);
            let ended = Running::of(command).end();
            assert!(
                !ended.stderr.contains("panicked"),
                "{seconds} {arguments}: {}",
                ended.stderr
            );
            if seconds < 0 && arguments.starts_with("run") {
                assert_eq!(ended.code, 1, "the index needs a later time");
                ended.says(&["the clock of this machine shows a time before 1970; set it"]);
            } else {
                assert_eq!(ended.code, 0, "{seconds} {arguments}: {}", ended.stderr);
            }
        }
    }
}
