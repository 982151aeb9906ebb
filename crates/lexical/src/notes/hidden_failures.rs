//! Tests that failed behind a pipe: `cargo test | tail` ends with the exit code of `tail`.

use base::lazy_patterns;
use base::text::pattern;
use sessions::transcript::shell_commands;

lazy_patterns! {
    /// A line with which a runner of tests sums up.
    SUMMARY = pattern(
        r"^\W*(?:test result: |error: (?:test (?:run )?failed|\d+ targets? failed)|Summary \[|Tests:?\s+\d|\d+ (?:passing|failing)\b|\d+ (?:pass|fail)$|.*\b\d+ (?:passed|failed|errors?)\b.* in [\d.]+s\b|(?:OK|FAILED)(?: \(.*\))?$|(?:ok|FAIL)(?:\t|  |$)|(?:\w+\] )?BUILD (?:SUCCESS|FAIL))",
    );

    /// Such a line that speaks of failures.
    FAILED = pattern(r"\b[1-9]\d* (?:failed|failing|fail|errors?)\b|\bFAIL(?:ED|URE)?\b|^\W*error: ");
}

/// Whether a command line ends in a pipe from a runner of tests whose last summary, in the output, says that tests failed.
/// The exit code of the pipe says nothing then. All three have to be there: what another program prints of tests that
/// failed, such as the log of an earlier run, is no failure of its own.
pub(super) fn hides_failed_tests(command: &str, output: &str) -> bool {
    // Outputs may be long, and few commands are such pipes.
    if !pipes_tests(command) {
        return false;
    }
    let summary = output.lines().rev().find(|line| SUMMARY.is_match(line));
    summary.is_some_and(|line| FAILED.is_match(line))
}

fn pipes_tests(command: &str) -> bool {
    let commands = shell_commands(command);
    let first = commands.iter().rposition(|command| !command.is_piped);
    let piped = first
        .filter(|first| first + 1 < commands.len())
        .and_then(|first| commands.get(first));
    piped.is_some_and(|piped| runs_tests(&piped.words)) && !command.contains("pipefail")
}

fn runs_tests(words: &[String]) -> bool {
    const WRAPPERS: [&str; 13] = [
        "sudo", "time", "timeout", "env", "npx", "bunx", "uv", "poetry", "run", "exec", "python",
        "python3", "-m",
    ];
    const RUNNERS: [&str; 9] = [
        "pytest", "unittest", "tox", "jest", "vitest", "mocha", "rspec", "phpunit", "ctest",
    ];
    const TOOLS: [&str; 16] = [
        "cargo",
        "go",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "make",
        "just",
        "mvn",
        "gradle",
        "gradlew",
        "dotnet",
        "mix",
        "swift",
        "manage.py",
    ];
    let mut names = words
        .iter()
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .skip_while(|word| {
            WRAPPERS.contains(word)
                || word.contains('=')
                || word.starts_with(|c: char| c.is_ascii_digit())
        });
    let Some(program) = names.next() else {
        return false;
    };
    RUNNERS.contains(&program)
        || TOOLS.contains(&program)
            && names.any(|word| matches!(word, "test" | "nextest") || word.starts_with("test:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: &str =
        "test a ... FAILED\ntest result: FAILED. 2 passed; 1 failed; finished in 0.01s\n";

    #[test]
    fn the_last_summary_of_each_runner_tells_whether_tests_failed() {
        for (command, output) in [
            ("cargo test 2>&1 | tail -20", CARGO),
            (
                "cargo test --no-fail-fast 2>&1 | tail -5",
                "test result: ok. 3 passed; 0 failed\nerror: 1 target failed:",
            ),
            (
                "cd app && .venv/bin/pytest -q | tail -3",
                "FAILED t.py::a - assert 1 == 2\n1 failed, 10 passed in 0.12s",
            ),
            (
                "TZ=UTC timeout 60 uv run python -m pytest | head",
                "==== 2 errors in 0.50s ====\n",
            ),
            (
                "python3 -m unittest 2>&1 | tail",
                "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
            ),
            (
                "go test ./... | grep -v '^ok'",
                "--- FAIL: TestA (0.00s)\nFAIL\tapp/store\t0.004s\nFAIL",
            ),
            (
                "npm test 2>&1 | tail -8",
                "Tests:       1 failed, 3 passed, 4 total\nTime:        1 s",
            ),
            (
                "npx mocha | tail -n 30",
                "  3 passing (20ms)\n  1 failing\n",
            ),
            ("bun test | tail", " 3 pass\n 1 fail\n 5 expect() calls"),
            ("./gradlew test | tail -3", "BUILD FAILED in 3s"),
            ("cargo test |& tail -3", CARGO),
        ] {
            assert!(hides_failed_tests(command, output), "{command}");
        }
    }

    #[test]
    fn what_passed_what_no_pipe_hides_and_what_others_print_is_no_failure() {
        for (command, output) in [
            (
                "cargo test | tail",
                "test should_fail ... ok\ntest result: ok. 10 passed; 0 failed",
            ),
            (
                "pytest -q | tail -1",
                "1 failed, 2 passed in 0.10s\n3 passed in 0.12s",
            ),
            ("bun test | tail", " 3 pass\n 0 fail"),
            ("cargo test", CARGO),
            ("cargo test | tail; echo done", CARGO),
            ("set -o pipefail; cargo test | tail", CARGO),
            ("cat run-412.log | tail -20", CARGO),
            ("gh run view 7 --log-failed | tail", CARGO),
            ("cargo build | tail", CARGO),
            ("git log | grep test", "fix: 1 failed"),
        ] {
            assert!(!hides_failed_tests(command, output), "{command}");
        }
    }
}
