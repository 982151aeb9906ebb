//! Runs the recipes of docs/cluster as their engines do: the same commands, with the variables that the engine sets.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::project::{KEY, Project};
use super::server::{Reply, Server, wait_until};

const PARTS: usize = 8;

fn recipe(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs/cluster")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The commands of a recipe that begin with `start`, without the marks of lists and YAML.
fn commands(name: &str, start: &str) -> String {
    let text = recipe(name);
    let lines = text.lines().map(|line| {
        line.trim()
            .trim_start_matches("- ")
            .trim_start_matches("exec ")
    });
    let found: Vec<&str> = lines.filter(|line| line.starts_with(start)).collect();
    assert!(!found.is_empty(), "{name} has no command `{start}`");
    found.join("\n")
}

/// Starts a task: a shell in the project with the variables of the engine.
fn task(project: &Project, script: &[&str], variables: &[(&str, &str)]) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_compeval"))
        .parent()
        .expect("a folder");
    let system = std::env::var("PATH").expect("a path");
    let path = format!(
        "{}:{}:{system}",
        project.path("bin").display(),
        program.display()
    );
    let mut command = Command::new("bash");
    command
        .args(script)
        .current_dir(project.path(""))
        .env_clear()
        .env("PATH", path)
        .env("HOME", project.path("home"));
    command
        .env("MOCK_API_KEY", KEY)
        .env("LABEL", "nightly")
        .envs(variables.iter().copied());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell")
}

/// Waits for the end of a task and demands this exit code; returns its output.
fn end(task: Child, code: i32) -> String {
    let output = task.wait_with_output().expect("an end");
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Waits until a task says these words on its standard error, and discards the rest of that.
fn wait_for_words(task: &mut Child, words: &str) {
    let mut lines = BufReader::new(task.stderr.take().expect("a pipe"))
        .lines()
        .map_while(Result::ok);
    assert!(
        lines.any(|line| line.contains(words)),
        "it never said `{words}`"
    );
    std::thread::spawn(move || lines.for_each(drop));
}

/// Runs all tasks of an array at once, each with the variables of its number from 0.
fn array(
    project: &Project,
    script: &[&str],
    variables: impl Fn(usize) -> Vec<(&'static str, String)>,
) {
    let tasks: Vec<Child> = (0..PARTS)
        .map(|at| {
            let variables = variables(at);
            let variables: Vec<(&str, &str)> = variables
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            task(project, script, &variables)
        })
        .collect();
    tasks.into_iter().for_each(|task| drop(end(task, 0)));
}

/// The rows of one process, and the number of its requests.
fn one_process(server: &Server) -> (String, usize) {
    let project = Project::new(server);
    project.expect(0, "run --label nightly");
    let calls = server.count();
    server.forget();
    (project.read("results/nightly/cells.jsonl"), calls)
}

fn program(project: &Project, name: &str, text: &str) {
    project.write(&format!("bin/{name}"), text);
    fs::set_permissions(
        project.path(&format!("bin/{name}")),
        fs::Permissions::from_mode(0o755),
    )
    .expect("a mode");
}

#[test]
fn the_kubernetes_recipe_gives_the_results_of_one_process() {
    let server = Server::start();
    let (rows, calls) = one_process(&server);
    let project = Project::new(&server);
    let step = |start: &str| commands("kubernetes.yaml", start);
    end(task(&project, &["-euc", &step("mkdir")], &[]), 0);
    end(task(&project, &["-euc", &step("compeval judge")], &[]), 0);
    let (part, merge) = (
        step("compeval run --label \"$LABEL\" --part "),
        step("compeval run --label \"$LABEL\" --parts "),
    );
    array(&project, &["-euc", &part], |at| {
        vec![("JOB_COMPLETION_INDEX", at.to_string())]
    });
    end(task(&project, &["-euc", &merge], &[]), 0);
    assert_eq!(project.read("results/nightly/cells.jsonl"), rows);
    assert_eq!(server.count(), calls);
}

#[test]
fn the_slurm_recipe_names_missing_tasks_and_takes_them_again() {
    let server = Server::start();
    let (rows, calls) = one_process(&server);
    let project = Project::new(&server);
    project.write("slurm.sbatch", &recipe("slurm.sbatch"));
    // The commands at the top of the script.
    let recipe = recipe("slurm.sbatch");
    let first: Vec<&str> = recipe
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .take(2)
        .collect();
    end(task(&project, &["-euc", &first.join("\n")], &[]), 0);
    let merge = recipe
        .split_once("--wrap '")
        .and_then(|(_, rest)| rest.split('\'').next())
        .expect("a merge");
    let some = |numbers: &[&str]| {
        for number in numbers {
            let count = numbers.len().to_string();
            // Slurm sets the lowest number and the count to those of the submitted tasks.
            let variables = [
                ("SLURM_ARRAY_TASK_ID", *number),
                ("SLURM_ARRAY_TASK_MIN", numbers[0]),
                ("SLURM_ARRAY_TASK_COUNT", &count),
            ];
            end(task(&project, &["slurm.sbatch"], &variables), 0);
        }
    };
    some(&["1", "2", "4", "5", "6", "8"]);
    let said = end(task(&project, &["-c", merge], &[]), 5);
    assert!(said.contains("sbatch --array=3,7"), "{said}");
    some(&["3", "7"]);
    end(task(&project, &["-c", merge], &[]), 0);
    assert_eq!(project.read("results/nightly/cells.jsonl"), rows);
    assert_eq!(server.count(), calls);
    let zero = end(
        task(&project, &["slurm.sbatch"], &[("SLURM_ARRAY_TASK_ID", "0")]),
        2,
    );
    assert!(zero.contains("--array=1-N"), "{zero}");
}

#[test]
fn the_gitlab_recipe_gives_the_results_of_one_process_and_a_junit_file() {
    let server = Server::start();
    let (rows, _) = one_process(&server);
    let project = Project::new(&server);
    let step = |start: &str| commands("gitlab-ci.yml", start);
    end(task(&project, &["-euc", &step("mkdir")], &[]), 0);
    end(task(&project, &["-euc", &step("compeval judge")], &[]), 0);
    array(
        &project,
        &["-euc", &step("compeval run --label \"$LABEL\" --part ")],
        |at| {
            vec![
                ("CI_NODE_INDEX", (at + 1).to_string()),
                ("CI_NODE_TOTAL", PARTS.to_string()),
            ]
        },
    );
    end(
        task(
            &project,
            &["-euc", &step("compeval run --label \"$LABEL\" --parts ")],
            &[],
        ),
        0,
    );
    assert_eq!(project.read("results/nightly/cells.jsonl"), rows);
    assert!(
        project
            .read("junit.xml")
            .contains("<testcase classname=\"anchored\" name=\"overall\">")
    );
}

/// `aws s3 sync` with a folder in place of a bucket.
const AWS: &str = "#!/bin/sh\nset -eu\nshift 2\n[ \"$1\" = --only-show-errors ] && shift\n\
    place() { case $1 in s3://*) echo \"$BUCKETS/${1#s3://}\" ;; *) echo \"$1\" ;; esac; }\n\
    from=$(place \"$1\") to=$(place \"$2\")\nmkdir -p \"$to\"\n\
    if [ -d \"$from\" ]; then cp -R \"$from/.\" \"$to/\"; fi\n";

#[test]
fn the_aws_recipe_stores_what_a_task_has_when_it_is_stopped() {
    let server = Server::start();
    let (rows, calls) = one_process(&server);
    let project = Project::new(&server);
    let (buckets, remote) = (
        project.path("buckets").display().to_string(),
        project.path("remote"),
    );
    fs::create_dir(&remote).expect("a folder");
    fs::set_permissions(&remote, fs::Permissions::from_mode(0o700)).expect("a mode");
    let remote = format!("fs://{}", remote.display());
    project.expect(0, &format!("judge selftest --remote {remote}"));
    let tasks: Vec<(Project, Vec<(&str, String)>)> = (0..PARTS)
        .map(|at| {
            // Each task has a disk of its own.
            let disk = Project::offline();
            program(&disk, "aws", AWS);
            disk.write("aws-batch.sh", &recipe("aws-batch.sh"));
            let variables = vec![
                ("BUCKET", "s3://evals/a".to_owned()),
                ("BUCKETS", buckets.clone()),
                ("AWS_BATCH_JOB_ARRAY_INDEX", at.to_string()),
                ("AWS_BATCH_JOB_ARRAY_SIZE", PARTS.to_string()),
                ("REMOTE", remote.clone()),
            ];
            (disk, variables)
        })
        .collect();
    for name in [
        "pipeline.toml",
        "prompts/anchored.md",
        "prompts/answer.md",
        "fixtures/harbor.json",
    ] {
        project.write(
            &format!("buckets/evals/a/project/{name}"),
            &project.read(name),
        );
    }
    let bank = project.read("probes/harbor.probes.json");
    project.write("buckets/evals/a/project/probes/harbor.probes.json", &bank);
    let start = |disk: &Project, variables: &[(&str, String)]| {
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        task(disk, &["aws-batch.sh"], &variables)
    };
    let ((stopped, variables), others) = tasks.split_first().expect("tasks");
    // With its progress shown it says when it received the signal.
    stopped.write(
        "aws-batch.sh",
        &recipe("aws-batch.sh").replace(" --no-progress", ""),
    );
    for (disk, variables) in others {
        end(start(disk, variables), 0);
    }
    let before = server.count();
    server.script(|_| Reply::Held);
    let mut running = start(stopped, variables);
    wait_until(|| server.count() > before);
    let pid = rustix::process::Pid::from_raw(running.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
    wait_for_words(&mut running, "stopping");
    server.let_go();
    end(running, 130);
    server.script(|_| Reply::Sensible);
    // A second attempt, on another disk.
    let disk = Project::offline();
    program(&disk, "aws", AWS);
    disk.write("aws-batch.sh", &recipe("aws-batch.sh"));
    end(start(&disk, variables), 0);
    project.expect(
        0,
        &format!("run --label nightly --parts {PARTS} --remote {remote}"),
    );
    assert_eq!(project.read("results/nightly/cells.jsonl"), rows);
    assert_eq!(server.count(), calls, "nothing is paid twice");
    let definition: serde_json::Value =
        serde_json::from_str(&recipe("aws-batch.json")).expect("JSON");
    assert_eq!(
        definition["containerProperties"]["command"][1],
        "/compeval/aws-batch.sh"
    );
}

/// The steps of the action.
fn action_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/action.sh")
}

fn action(project: &Project, step: &str, variables: &[(&str, &str)], code: i32) -> String {
    let script = action_script().display().to_string();
    end(task(project, &[&script, step], variables), code)
}

#[test]
fn the_action_runs_parts_merges_them_and_passes_the_exit_code_on() {
    let server = Server::start();
    let (rows, _) = one_process(&server);
    let project = Project::new(&server);
    let meeting = project
        .path("temporary/compeval-remote")
        .display()
        .to_string();
    let run = |more: &[(&str, &str)]| {
        let mut variables = vec![
            ("DIRECTORY", "."),
            ("SELFTEST", "false"),
            ("PART", ""),
            ("PARTS", ""),
            ("REMOTE", ""),
            ("MEETING", meeting.as_str()),
            ("COMPARE_TO", ""),
            ("FAIL_ON_REGRESSION", "true"),
            ("ARGS", ""),
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_STEP_SUMMARY", "step-summary"),
            ("CI", "true"),
        ];
        variables.extend(more);
        project.write("output", "");
        action(&project, "run", &variables, 0);
        project.read("output")
    };
    assert_eq!(
        run(&[("SELFTEST", "true")]),
        "exit-code=0\nartifact=selftest\n"
    );
    assert_eq!(
        run(&[("PART", "1/2"), ("ARGS", "--jobs 2")]),
        "exit-code=0\nartifact=1-of-2\n"
    );
    let missing = run(&[("PARTS", "2")]);
    assert!(missing.starts_with("exit-code=5\n"), "{missing}");
    // Every line of the arguments counts.
    let limited = run(&[("PART", "2/2"), ("ARGS", "--jobs 2\n--max-requests 0\n")]);
    assert!(limited.starts_with("exit-code=4\n"), "{limited}");
    run(&[("PART", "2/2")]);
    let merged = run(&[("PARTS", "2")]);
    assert_eq!(
        merged,
        "exit-code=0\nartifact=\nreport=./results/nightly/report.html\n"
    );
    assert_eq!(project.read("results/nightly/cells.jsonl"), rows);
    assert!(
        project.read("step-summary").contains("anchored") && project.exists("compeval-junit.xml")
    );
    assert!(run(&[("LABEL", "x"), ("ARGS", "--methods nobody")]).starts_with("exit-code=2\n"));
    for (name, value) in [
        ("PART", "1/2\nexit-code=0"),
        ("LABEL", "x\"y"),
        ("LABEL", "x\r"),
    ] {
        let variables = [("PART", ""), ("LABEL", "x"), ("ARGS", ""), (name, value)];
        project.write("output", "");
        action(
            &project,
            "run",
            &[&[("DIRECTORY", ".")], &variables[..]].concat(),
            2,
        );
        assert_eq!(project.read("output"), "");
    }
    let results = [("DIRECTORY", "."), ("LABEL", "nightly")];
    action(&project, "unlinked", &results, 0);
    std::os::unix::fs::symlink("../../pipeline.toml", project.path("results/nightly/link"))
        .unwrap();
    action(&project, "unlinked", &results, 1);
}

#[test]
fn the_action_comments_once_and_installs_what_matches_its_checksum() {
    let project = Project::offline();
    project.write("report.md", "# Scores\n");
    // Lists the comments, with one of an earlier run where a test wants it, and records what it is told to write.
    program(
        &project,
        "gh",
        "#!/bin/sh\ncase \"$*\" in *--paginate*) cat comments ;; *) echo \"$*\" >> written; \
         for word; do case $word in body=@*) cat \"${word#body=@}\" >> written ;; esac; done ;; esac\n",
    );
    let comment = [
        ("REPOSITORY", "o/r"),
        ("NUMBER", "7"),
        ("REPORT", "report.md"),
        ("RUN_URL", "https://run"),
    ];
    project.write("comments", "");
    action(&project, "comment", &comment, 0);
    let first = project.read("written");
    assert!(
        first.contains("POST repos/o/r/issues/7/comments")
            && first.contains("<!-- compeval: nightly -->\n# Scores")
    );
    project.write("comments", "41\n");
    project.write("written", "");
    action(&project, "comment", &comment, 0);
    assert!(
        project
            .read("written")
            .contains("PATCH repos/o/r/issues/comments/41")
    );

    // A release: an archive with a program, and its checksums.
    let pack = "mkdir -p release/compeval-v1.2.3-x86_64-unknown-linux-gnu && cd release && \
        echo 'echo installed' > compeval-v1.2.3-x86_64-unknown-linux-gnu/compeval && chmod +x */compeval && \
        tar czf compeval-v1.2.3-x86_64-unknown-linux-gnu.tar.gz compeval-v1.2.3-x86_64-unknown-linux-gnu && \
        sha256sum ./*.tar.gz > SHA256SUMS";
    end(task(&project, &["-euc", pack], &[]), 0);
    let release = project.path("release").display().to_string();
    let paths = project.path("paths").display().to_string();
    program(
        &project,
        "curl",
        "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --output ] && out=$2; shift; done\n\
         case $1 in https://git.example/o/r/releases/download/v1.2.3/*) cp \"$RELEASE/${1##*/}\" \"$out\" ;; *) exit 22 ;; esac\n",
    );
    let install = [
        ("SYSTEM", "Linux-X64"),
        ("VERSION", ""),
        ("REF", "v1.2.3"),
        ("REPOSITORY", "o/r"),
        ("SERVER", "https://git.example"),
        ("GITHUB_PATH", paths.as_str()),
        ("RELEASE", release.as_str()),
    ];
    action(&project, "install", &install, 0);
    let said = end(
        task(&project, &["-euc", "\"$(cat paths)/compeval\""], &[]),
        0,
    );
    assert_eq!(said, "installed\n");
    project.write(
        "release/compeval-v1.2.3-x86_64-unknown-linux-gnu.tar.gz",
        "something else",
    );
    let refused = action(&project, "install", &install, 1);
    assert!(
        refused.contains("FAILED") || refused.contains("did NOT match"),
        "{refused}"
    );
}
