//! Workers that misbehave in every way: each fails its own request with a reason, and the next request is answered.

use std::num::NonZeroU32;

use super::*;
use std::time::Duration;

/// A worker that does what the request says, so that one script serves all tests.
const WORKER: &str = r#"
echo "started $$" >&2
echo '{"ready":true}'
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *crash*) echo "out of luck" >&2; exit 3 ;;
    *quit*) exit 0 ;;
    *hang*) sleep 600 ;;
    *log*) echo "loading the model" ;;
    *other*) echo '{"id":99,"summary":"x"}' ;;
    *nothing*) echo '{"summary":"x"}' ;;
    *twice*) printf '{"id":%s,"summary":"a"}\n{"id":%s,"summary":"b"}\n' "$id" "$id" ;;
    *endless*) yes 0123456789abcdef | tr -d '\n' ;;
    *pid*) echo "{\"id\":$id,\"summary\":\"$$\"}" ;;
    *) echo "{\"id\":$id,\"summary\":\"done\",\"seen\":$id}" ;;
  esac
done
"#;

fn spec(script: &str) -> CommandSpec {
    CommandSpec {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        model: None,
        folder: ".".into(),
        files: Vec::new(),
        environment: Vec::new(),
        secrets: Vec::new(),
        identity: None,
        protocol: Protocol::Lines {
            workers: NonZeroU32::MIN,
            start_timeout: Duration::from_secs(20),
        },
        deterministic: false,
        timeout: Duration::from_secs(20),
    }
}

async fn ask(programs: &Programs, spec: &CommandSpec, word: &str) -> Result<String, String> {
    let request = Bytes::from(format!("{{\"version\":2,\"word\":\"{word}\"}}"));
    let turn = programs.turn(spec).await;
    let output = programs.run(spec, request, turn).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn one_process_answers_one_request_after_the_other() {
    let (programs, spec) = (Programs::default(), spec(WORKER));
    let first = ask(&programs, &spec, "pid").await.unwrap();
    assert_eq!(ask(&programs, &spec, "pid").await.unwrap(), first);
    assert_eq!(
        ask(&programs, &spec, "go").await.unwrap(),
        r#"{"seen":3,"summary":"done"}"#,
        "the id is taken away"
    );
}

#[tokio::test]
async fn methods_that_see_other_variables_have_workers_of_their_own() {
    let (programs, one) = (Programs::default(), spec(WORKER));
    let other = CommandSpec {
        environment: vec![("LANG".into(), None)],
        ..one.clone()
    };
    let [first, second] = [
        ask(&programs, &one, "pid").await,
        ask(&programs, &other, "pid").await,
    ]
    .map(Result::unwrap);
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_breach_fails_its_own_request_and_the_next_is_answered_by_another_worker() {
    let (programs, mut spec) = (Programs::default(), spec(WORKER));
    spec.timeout = Duration::from_secs(3);
    for (word, expected) in [
        ("crash", "ended with exit status: 3; its last output:"),
        ("quit", "ended during a request"),
        ("hang", "did not answer within 3 s"),
        (
            "log",
            "no answer: \"loading the model\"; logs belong to standard error",
        ),
        ("other", "answered the request 99 when it was asked 2"),
        ("nothing", "no answer: \"{\\\"summary\\\":\\\"x\\\"}\""),
        (
            "twice",
            "wrote more than its answer: \"{\\\"id\\\":2,\\\"summary\\\":\\\"b\\\"}\"",
        ),
        ("endless", "wrote more than 32 MiB"),
    ] {
        let before = ask(&programs, &spec, "pid").await.unwrap();
        let error = ask(&programs, &spec, word).await.unwrap_err();
        assert!(error.contains(expected), "{word}: {error}");
        assert_ne!(
            ask(&programs, &spec, "pid").await.unwrap(),
            before,
            "{word}"
        );
        // A fresh worker for the next breach, so that it is the second request of one.
        ask(&programs, &spec, "crash").await.unwrap_err();
    }
}

#[tokio::test]
async fn three_failed_starts_stop_the_method() {
    let starts = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "echo x >> {}; echo no such module >&2; exit 1",
        starts.path().display()
    );
    let (programs, spec) = (Programs::default(), spec(&script));
    for _ in 0..3 {
        let error = ask(&programs, &spec, "go").await.unwrap_err();
        assert!(
            error.contains("exit status: 1") && error.contains("no such module"),
            "{error}"
        );
    }
    let error = ask(&programs, &spec, "go").await.unwrap_err();
    assert!(
        error.contains("could not be started 3 times") && error.contains("no such module"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(starts.path())
            .unwrap()
            .lines()
            .count(),
        3
    );
}

#[tokio::test]
async fn a_worker_that_is_late_or_does_not_greet_is_no_worker() {
    let programs = Programs::default();
    let mut late = spec("sleep 600");
    late.protocol = Protocol::Lines {
        workers: NonZeroU32::MIN,
        start_timeout: Duration::from_millis(200),
    };
    assert!(
        ask(&programs, &late, "go")
            .await
            .unwrap_err()
            .contains("was not ready within")
    );
    let rude = spec("echo loading; sleep 600");
    assert!(
        ask(&programs, &rude, "go")
            .await
            .unwrap_err()
            .contains("began with the line \"loading\"")
    );
}

#[tokio::test]
async fn a_deterministic_worker_that_remembers_is_found_out() {
    let remembering = r#"echo '{"ready":true}'
        n=0; while read -r line; do n=$((n + 1)); id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"summary\":\"$n\"}"; done"#;
    let (programs, mut spec) = (Programs::default(), spec(remembering));
    spec.deterministic = true;
    for _ in 1..10 {
        ask(&programs, &spec, "go").await.unwrap();
    }
    let error = ask(&programs, &spec, "go").await.unwrap_err();
    assert!(error.contains("declared deterministic"), "{error}");
    let (honest, mut spec) = (Programs::default(), self::spec(WORKER));
    spec.deterministic = true;
    for _ in 1..=12 {
        ask(&honest, &spec, "steady").await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_that_died_while_it_waited_is_replaced_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let ended = folder.path().join("ended");
    let script = r#"echo '{"ready":true}'; read -r line; id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"summary\":\"a\"}""#;
    // The file is there once the output is closed.
    let script = format!("{script}; exec >&-; touch {}", ended.display());
    let (programs, spec) = (Programs::default(), spec(&script));
    ask(&programs, &spec, "go").await.unwrap();
    for _ in 0..1000 {
        if ended.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Lets the runtime see the end of the output.
    tokio::time::sleep(Duration::from_millis(10)).await;
    ask(&programs, &spec, "go").await.unwrap();
    let notes = programs.notes();
    assert!(
        notes.len() == 1 && notes[0].contains("ended while it waited"),
        "{notes:?}"
    );
}

#[tokio::test]
async fn a_program_that_writes_to_standard_error_is_noted_once() {
    let programs = Programs::default();
    let mut once = spec("cat > /dev/null; echo fallback used >&2; echo '{}'");
    once.protocol = Protocol::default();
    for _ in 0..3 {
        ask(&programs, &once, "go").await.unwrap();
    }
    let notes = programs.notes();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].ends_with("in 3 of 3 executions, last: fallback used"),
        "{notes:?}"
    );
}
