//! `inputs_from = "modules"`: what a program says that it has loaded is among the inputs of its outputs.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::project::{Ended, Project};
use super::server::Server;

const METHOD: &str = r#"
[[compress]]
name     = "mine"
strategy = "command"
command  = ["python3", "tools/compress.py", "--lines"]
inputs   = ["tools/compress.py"]
inputs_from = "modules"
protocol = "lines"
workers  = 1
deterministic = true
"#;

/// Notes each start, and takes its words from a module that is no declared input.
const PROGRAM: &str = r#"
import sys
sys.dont_write_bytecode = True
open("starts", "a").write("x\n")
from agent import helper
from compeval_method import serve

def compress(request):
    import agent.late
    open("requests", "a").write("x\n")
    helper.during()
    return {"summary": "The listen port is " + helper.PORT}

serve(compress)
"#;

const HELPER: &str = "PORT = '9091'\n\ndef during():\n    pass\n";

const RUN: &str = "run --label a --runs 1 --methods mine --replace";

/// Whether what a test needs is here; says so if not.
fn has(program: &str) -> bool {
    let is_there = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success());
    if !is_there {
        std::io::stderr()
            .write_all(format!("skipped: {program} is not installed\n").as_bytes())
            .unwrap();
    }
    is_there
}

fn project(server: &Server) -> Project {
    let project = Project::new(server);
    project.write(
        "pipeline.toml",
        &format!("{}\n{METHOD}", project.read("pipeline.toml")),
    );
    project.write("tools/compress.py", PROGRAM);
    let adapter = format!(
        "{}/examples/adapters/compeval_method.py",
        env!("CARGO_MANIFEST_DIR")
    );
    project.write(
        "tools/compeval_method.py",
        &std::fs::read_to_string(adapter).unwrap(),
    );
    project.write("tools/agent/__init__.py", "");
    project.write("tools/agent/helper.py", HELPER);
    project.write("tools/agent/late.py", "");
    project
}

/// The same with a process for each request.
fn one_process_each(project: &Project) {
    project.edit(
        "pipeline.toml",
        "protocol = \"lines\"\nworkers  = 1",
        "protocol = 2",
    );
    project.edit(
        "pipeline.toml",
        "compress.py\", \"--lines\"]",
        "compress.py\"]",
    );
}

/// How many requests the program has answered since the last call.
fn requests(project: &Project) -> usize {
    let count = if project.exists("requests") {
        project.read("requests").lines().count()
    } else {
        0
    };
    project.remove("requests");
    count
}

fn edits_of_loaded_modules_alone_are_seen(project: &Project) {
    project.expect(0, RUN);
    assert_eq!(requests(project), 2, "two points");
    project.write("tools/agent/unrelated.py", "1");
    project.expect(0, RUN);
    assert_eq!(requests(project), 0, "no loaded file has changed");

    project.edit("tools/agent/helper.py", "9091", "10911");
    let plan = project
        .expect(0, "plan --runs 1 --methods mine --json")
        .json();
    assert_eq!(plan["reasons"][0]["why"], "loaded module", "{plan}");
    assert_eq!(
        plan["reasons"][0]["changed"][0], "tools/agent/helper.py",
        "{plan}"
    );
    project
        .expect(0, "why harbor --label a --method mine --probe port")
        .stdout_says(&["loaded module: tools/agent/helper.py", "stale"]);
    project.expect(0, RUN);
    assert_eq!(
        requests(project),
        2,
        "the helper is an input, though it is not declared"
    );
    project
        .expect(0, "show harbor --label a --method mine --probe port")
        .stdout_says(&["listen port is 10911"]);

    project.write("tools/agent/helper.py", HELPER);
    project.expect(0, RUN);
    assert_eq!(
        requests(project),
        0,
        "the output of the earlier version is still there"
    );
    project
        .expect(0, "show harbor --label a --method mine --probe port")
        .stdout_says(&["listen port is 9091"]);

    project.write("tools/agent/late.py", "# loaded by the first request\n");
    project.expect(0, RUN);
    assert_eq!(requests(project), 2, "what is loaded late is an input, too");
    project.remove("tools/agent/late.py");
    project
        .expect(0, "why harbor --label a --method mine --probe port")
        .stdout_says(&["loaded module: tools/agent/late.py"]);
}

#[test]
fn a_worker_runs_again_only_after_edits_of_what_it_had_loaded() {
    if has("python3") {
        let server = Server::start();
        edits_of_loaded_modules_alone_are_seen(&project(&server));
    }
}

#[test]
fn a_process_for_each_request_runs_again_only_after_edits_of_what_it_had_loaded() {
    if has("python3") {
        let server = Server::start();
        let project = project(&server);
        one_process_each(&project);
        edits_of_loaded_modules_alone_are_seen(&project);
    }
}

#[test]
fn a_prune_keeps_what_the_modules_on_disk_lead_to_and_drops_the_rest() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    project.expect(0, RUN);
    project.edit("tools/agent/helper.py", "9091", "10911");
    project.expect(0, RUN);
    requests(&project);
    project.remove("results");
    project.expect(0, "cache prune --unreachable");
    project.expect(0, RUN);
    assert_eq!(requests(&project), 0, "reachable");
    project.write("tools/agent/helper.py", HELPER);
    project.expect(0, RUN);
    assert_eq!(requests(&project), 2, "pruned");
}

/// What keeps the only failed compression of a run from being one.
fn failure(project: &Project) -> String {
    project.expect(5, RUN);
    project.result("a", "manifest.json")["failures"]
        .as_array()
        .unwrap()[0]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn an_output_is_not_stored_if_a_module_changed_while_it_was_made() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    for is_worker in [true, false] {
        let project = project(&server);
        if !is_worker {
            one_process_each(&project);
        }
        // The second line is what another person's editor would write meanwhile.
        let edits = "    open(__file__, 'a').write('# edited\\n')\n";
        project.edit("tools/agent/helper.py", "    pass\n", edits);
        project.edit(
            "tools/compress.py",
            "helper.PORT}",
            "helper.PORT, \"usage\": {\"calls\": 2}}",
        );
        let message = failure(&project);
        let unused = project.result("a", "manifest.json")["unused"]["replies"].clone();
        assert_eq!(unused, 2, "what was paid for in vain is counted");
        assert!(
            message.contains("`tools/agent/helper.py` was changed"),
            "{message}"
        );
        project.edit("tools/agent/helper.py", edits, "    pass\n");
        requests(&project);
        project.expect(0, RUN);
        assert_eq!(requests(&project), 2, "nothing of the failed run was used");
    }
}

/// Answers as a worker of its own, with what the test wants it to list.
fn bare(project: &Project, lists: &str) {
    let program = format!(
        "import json, sys\nprint('{{\"ready\":true}}', flush=True)\nfor line in sys.stdin:\n    \
         answer = {{'id': json.loads(line)['id'], 'summary': 'The port is 9091.'}}\n    answer.update({lists})\n    \
         print(json.dumps(answer), flush=True)\n"
    );
    project.write("tools/compress.py", &program);
}

/// Lets the program list these, and expects a failure that says the words.
fn refused(project: &Project, lists: &str, words: &[&str]) {
    bare(project, lists);
    let message = failure(project);
    for word in words {
        assert!(message.contains(word), "`{word}` is missing in {message}");
    }
}

/// How many compressions a run executes.
fn executed(project: &Project) -> u64 {
    project.expect(0, RUN);
    project.result("a", "manifest.json")["stages"]["compress"]["executed"]
        .as_u64()
        .unwrap()
}

#[test]
fn lists_that_are_missing_or_name_what_cannot_be_an_input_are_errors() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    refused(
        &project,
        "{}",
        &[
            "does not list what the program has loaded",
            "serve() of compeval_method",
        ],
    );
    refused(
        &project,
        "{'modules': [{'path': 'tools/compress.py'}]}",
        &["does not list", "\"packages\""],
    );
    refused(
        &project,
        "{'modules': [{'path': 'tools/compress.py'}] * 5000, 'packages': []}",
        &["lists 5000 `modules`"],
    );
    refused(
        &project,
        "{'modules': [{'path': '/etc/passwd'}], 'packages': []}",
        &["`/etc/passwd`", "module_roots"],
    );
    refused(
        &project,
        "{'modules': [{'path': 'tools/gone.py'}], 'packages': []}",
        &["`tools/gone.py`", "no such file"],
    );
    refused(
        &project,
        "{'modules': [{'path': 'tools'}], 'packages': []}",
        &["`tools`", "no regular file"],
    );
    bare(
        &project,
        "{'modules': [{'path': 'tools/compress.py'}], 'packages': []}",
    );
    project.expect(0, RUN);
}

#[test]
fn a_package_of_another_version_is_another_input() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    project.write("lib/METADATA", "Name: foo\nVersion: 1.0\n");
    let version = "open('lib/METADATA').read().split('Version: ')[1].strip()";
    bare(
        &project,
        &format!(
            "{{'modules': [{{'path': 'tools/compress.py'}}], \
             'packages': [{{'name': 'foo', 'version': {version}, 'path': 'lib/METADATA'}}]}}"
        ),
    );
    assert_eq!(executed(&project), 2);
    assert_eq!(executed(&project), 0);
    project.edit("lib/METADATA", "1.0", "1.10");
    let why = project.expect(0, "why harbor --label a --method mine --probe port");
    why.stdout_says(&["loaded module: package foo: 1.0 → 1.10"]);
    assert_eq!(executed(&project), 2);
    project.edit("lib/METADATA", "1.10", "1.0");
    assert_eq!(executed(&project), 0);
}

fn write(path: &Path, text: &str) {
    std::fs::File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .unwrap();
}

#[test]
fn modules_may_lie_in_folders_that_are_named_and_allowed() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    let outside = tempfile::tempdir().unwrap();
    let shared = outside.path().join("shared.py");
    write(&shared, "X = 1\n");
    let path = format!(
        "sys.path.append({:?})\nimport shared\nfrom agent import helper",
        outside.path()
    );
    project.edit("tools/compress.py", "from agent import helper", &path);
    let message = failure(&project);
    assert!(
        message.contains("shared.py`") && message.contains("module_roots"),
        "{message}"
    );
    requests(&project);

    // A link within the project, since tests have no folder beside it.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path(), project.path("beside")).unwrap();
        project.edit(
            "tools/compress.py",
            &format!("{:?}", outside.path()),
            "\"beside\"",
        );
        project.edit(
            "pipeline.toml",
            "inputs_from = \"modules\"",
            "inputs_from = \"modules\"\nmodule_roots = [\"beside\"]",
        );
        project
            .expect(2, "check")
            .says(&["`beside` cannot be used", "allow_outside = true"]);
        project.edit(
            "pipeline.toml",
            "[pipeline]",
            "[pipeline]\nallow_outside = true",
        );
        project.expect(0, RUN);
        assert_eq!(requests(&project), 2);
        write(&shared, "X = 22\n");
        project.expect(0, RUN);
        assert_eq!(requests(&project), 2);
    }
}

/// Expects an error that says the words after an edit of the pipeline, which is undone.
fn misconfigured(project: &Project, from: &str, to: &str, words: &[&str]) {
    let text = project.read("pipeline.toml");
    project.edit("pipeline.toml", from, to);
    project.expect(2, "check").says(words);
    project.write("pipeline.toml", &text);
}

#[test]
fn settings_that_do_not_fit_are_refused_and_nothing_else_is_asked_for_modules() {
    let server = Server::start();
    let project = project(&server);
    misconfigured(
        &project,
        "protocol = \"lines\"\nworkers  = 1",
        "protocol = 1",
        &["asked for its modules", "protocol = 2"],
    );
    misconfigured(
        &project,
        "inputs_from = \"modules\"",
        "inputs_from = \"files\"",
        &["unknown inputs_from `files`"],
    );
    misconfigured(
        &project,
        "inputs_from = \"modules\"",
        "module_roots = [\"tools\"]",
        &["`module_roots` says where"],
    );
    misconfigured(
        &project,
        "inputs_from = \"modules\"",
        "inputs_from = \"modules\"\nmodule_roots = [\"gone\"]",
        &["no such folder"],
    );
    let parts: Ended =
        project.compeval("run --label p --methods mine --part 1/2 --remote fs:///nowhere/compeval");
    assert_eq!(parts.code, 2, "{}", parts.stderr);
    parts.says(&[
        "`mine` has inputs_from = \"modules\" and cannot run in parts",
        "list its files under `inputs`",
    ]);
}

#[test]
fn the_request_says_modules_only_where_they_are_asked_for() {
    if !has("python3") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    let program = PROGRAM.replace(
        "    helper.during()",
        "    open(\"seen\", \"w\").write(repr(request))\n    helper.during()",
    );
    project.write("tools/compress.py", &program);
    project.expect(0, RUN);
    assert!(
        project.read("seen").contains("'modules': True"),
        "{}",
        project.read("seen")
    );
    project.edit("pipeline.toml", "inputs_from = \"modules\"\n", "");
    project.expect(0, RUN);
    assert!(
        !project.read("seen").contains("'modules': True"),
        "{}",
        project.read("seen")
    );
    let why = project
        .expect(0, "why harbor --label a --method mine --probe port --json")
        .json();
    assert_eq!(why["chain"][0]["state"], "cached");
    project.edit(
        "pipeline.toml",
        "protocol = \"lines\"\n",
        "protocol = \"lines\"\ninputs_from = \"modules\"\n",
    );
    project.edit("tools/agent/helper.py", "9091", "10911");
    project
        .expect(0, "why harbor --label a --method mine --probe port")
        .stdout_says(&["setting: inputs_from: not set → modules"]);
}

#[test]
fn node_lists_its_modules_where_it_is_started_with_the_adapter() {
    if !has("node") {
        return;
    }
    let server = Server::start();
    let project = project(&server);
    let adapter = format!(
        "{}/examples/adapters/compeval_method.mjs",
        env!("CARGO_MANIFEST_DIR")
    );
    project.write(
        "tools/compeval_method.mjs",
        &std::fs::read_to_string(adapter).unwrap(),
    );
    project.write("tools/port.mjs", "export const port = 9091;\n");
    project.write("tools/unrelated.mjs", "");
    project.write(
        "tools/compress.mjs",
        "import { appendFileSync } from \"node:fs\";\nimport { serve } from \"./compeval_method.mjs\";\n\
         import { port } from \"./port.mjs\";\nawait serve(() => {\n  appendFileSync(\"requests\", \"x\\n\");\n  \
         return { summary: `The listen port is ${port}` };\n});\n",
    );
    let command = "[\"node\", \"tools/compress.mjs\", \"--lines\"]";
    project.edit(
        "pipeline.toml",
        "[\"python3\", \"tools/compress.py\", \"--lines\"]",
        command,
    );
    project.edit("pipeline.toml", "inputs   = [\"tools/compress.py\"]\n", "");
    let message = failure(&project);
    assert!(message.contains("--import"), "{message}");
    let with_adapter = command.replace(
        "\"node\", ",
        "\"node\", \"--import\", \"./tools/compeval_method.mjs\", ",
    );
    project.edit("pipeline.toml", command, &with_adapter);
    requests(&project);
    project.expect(0, RUN);
    project.write("tools/unrelated.mjs", "1;\n");
    project.expect(0, RUN);
    assert_eq!(requests(&project), 2);
    project.edit("tools/port.mjs", "9091", "10911");
    project.expect(0, RUN);
    assert_eq!(requests(&project), 2);
}
