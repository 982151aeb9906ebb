//! Wording rules, English and Chinese: which sentence states a decision, a demand, an open task or an error.

use base::lazy_patterns;
use base::text::pattern;

/// Makes the function that says whether a pattern occurs in a text.
macro_rules! rule {
    ($(#[$doc:meta])* $name:ident, $pattern:expr) => {
        $(#[$doc])*
        pub fn $name(text: &str) -> bool {
            lazy_patterns! { PATTERN = pattern($pattern); }
            PATTERN.is_match(text)
        }
    };
}

rule!(
    /// Whether a sentence states a choice, or why something is so.
    states_decision,
    r"(?i)\b(decid|decision|chose\b|choos|opt(ed|ing)? for|instead of|rather than|reject|go(ing)? with|went with|settl(e|ed|ing) on|prefer|trade-?off|ruled? out|switch(ed|ing)? (back )?to|revert|not worth|in favou?r of|abandon|won't use|stick(ing)? with|change of plan|changed my mind|hypothesis)|决定|选择|改用|采用|放弃|而不是|弃用|否决|不再用|换成|排除"
);
rule!(
    /// Whether a sentence gives a reason.
    states_reason,
    r"(?i)\b(because|since|so that|due to|the reason|that's why|root cause|caused by)\b|因为|由于|原因|所以"
);
rule!(
    /// Whether a sentence demands or forbids something.
    states_demand,
    r"(?i)\b(must|never|don'?t|do not|always|no more than|at least|at most|make sure|required?|requirements?|forbid|forbidden|not allowed|avoid|under no circumstances|hard (rule|requirement|limit|constraint)|constraint|mandatory|only use|stay (below|under|within)|may not|has to|have to|not to touch|leave .{1,40} alone|hands off)\b|必须|不要|不得|禁止|不能|务必|只能|一定要|不允许|始终|绝不|不准|不许"
);
rule!(
    /// Whether a sentence names something that is not done.
    states_task,
    r"(?i)\b(to-?do|next( step| up|:| is)|remain(s|ing)?|left (to|for|open)|still (fail|need|open|miss|broken|to|not|has|have|red)|not yet|pending|follow[- ]?up|unfinished|outstanding|later|haven'?t|hasn'?t|before (release|merging|shipping)|wait(ing)? (for|on)|tomorrow|blocked|open (question|issue|point|item)s?)|待办|接下来|下一步|还没|尚未|剩下|仍然|未完成|还需|有待"
);
rule!(
    /// Whether a sentence names what is open or comes next: `todo` alone may be the name of a program.
    names_open_work,
    r"(?i)remains to|remaining|remains open|still |next[ :,]|left to|left open|not yet|(is|are|still) pending|follow[- ]up|haven't|hasn't|open (for|question|point)|wait(ing)? for|blocked|unfinished|outstanding|tomorrow|to ?do:|need to|needs|接下来|下一步|还没|尚未|剩下|未完成|还需|待办"
);
rule!(
    /// Whether a sentence says that something is not open, or begins with what was done.
    says_done,
    r"(?i)nothing|none |no (open|pending|remaining|more|longer)|already|(is|are) done|没有未|都完成|已完成|^(i checked|i confirmed|i've |done|fixed|added|updated|fixing)"
);
rule!(
    /// Whether a sentence only announces what the agent does next.
    announces,
    r"(?i)^(now )?(let me|let's|i['’]ll |i will|i['’]?( a)?m going)|^(now i|i need to|i should|wait|让我|我来|我将)"
);
rule!(
    /// Whether a sentence tells what a program or a file says, only weighs something, or gives an example.
    reports,
    r"(?i)\b(says?|said|shows?|reports?|reported|prints?|printed|logs?|exceeded|expected|could|would|should|might|for (example|instance)|e\.g)\b|日志|输出|显示|超出|例如|比如|应该|可以"
);
rule!(
    /// Whether a line looks like the output of a failing program.
    is_error_line,
    r"^\s*(E\s{2,}\S|[\w.:]*(Error|Exception|Panic)\b\s*[:(\[]|FAILED\b|FAIL[: ]|(fatal|error|panic|ERROR|CRITICAL|Fatal)(\[\w+\])?:|Segmentation fault|thread '.*' panicked|npm ERR!|make: \*\*\*|assert(ion)?\b.*fail)|\b(nginx: \[emerg\]|command not found|No such file or directory|Permission denied|Connection refused|Address already in use|Traceback \(most recent|UnhandledPromise|database is locked|syntax error|constraint failed|timed out|cannot open|undefined reference)|: error: |: fatal error: "
);
rule!(
    /// Whether a line mentions trouble in any way.
    mentions_trouble,
    r"(?i)(error|exception|fail|fatal|panic|cannot|can't|not found|no such|denied|refused|undefined|unexpected|invalid|mismatch|abort|conflict|expected|错误|失败|异常|拒绝)"
);

rule!(
    /// Whether a line says that something did not work, was not there, or must not be.
    names_failure,
    r"(?i)\b(not?|never|nothing|\w+n't|unable|already|missing|unknown|unsupported|illegal|wrong|bad|broken|lost|killed|stopped|timed? ?out|too (many|few|large|long|short)|without|outside|exceed\w*|require[sd]?|must|only|still|deprecated|(?-i:E[A-Z]{4,}))\b|未|不|无|無|没有|沒有|缺|超"
);

rule!(
    /// Whether an error line only points elsewhere: to the place, to a log, or to how many errors there were.
    points_elsewhere,
    r"(?x)^\s*(?:
        FAIL(?:ED)?:?\s+\S+(?:\s+[(>›].*)?$
        | npm\s(?:ERR!|error)\s*(?:$|code\s|errno\s|syscall\s|path\s|A\scomplete\slog|\S*[/\\]\S*$|\w*\s*$|\w+\sThis\sis\srelated|Test\sfailed|Exit\sstatus)
        | thread\s'.*'.*\spanicked\sat\s\S+:\d+:\d+:?$
        | error:\s(?:could\snot\scompile|aborting\sdue\sto|test\sfailed,|\d+\stargets?\sfailed|[Rr]ecipe\s|script\s|subprocess-exited|metadata-generation|fatalError$)
        | ERROR:\s(?:Build\sdid\sNOT|InvocationError\sfor\s|failed\sto\ssolve:\sprocess\s)
        | (?:collect2|clang(?:\+\+)?):\serror:\s(?:ld\sreturned|linker\scommand\sfailed)
        | make(?:\[\d+\])?:\s\*\*\*
        | Traceback\s\(most\srecent
        )|\bELIFECYCLE\b"
);

/// The first `key = value` or `key: value` of a line whose value says something by itself.
pub fn assignment(line: &str) -> Option<(&str, &str)> {
    lazy_patterns! {
        ASSIGNMENT = pattern(
            r#"(?:^|[\s,{(])["'`*]{0,3}([A-Za-z_][\w.-]{1,48})["'`*]{0,3}\s*(?:=|:|:=|=>)\s*["'`*]{0,3}(-?\d[\w.:/%-]*|true|false|on|off|yes|no|[A-Za-z/~.][\w./@:+-]{1,60})["'`*]{0,3}\s*(?:[,;)}\s]|$)"#,
        );
    }
    ASSIGNMENT.captures_iter(line).find_map(|captures| {
        let (key, value) = (captures.get(1)?.as_str(), captures.get(2)?.as_str());
        let value = value.trim_end_matches(['.', ':', '-']);
        (!value.is_empty()).then_some((key, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wordings_are_distinguished() {
        assert!(states_decision(
            "Going with SQLite rather than a JSON file."
        ));
        assert!(states_decision("改用 sqlite。"));
        assert!(states_demand("Never touch the schema") && states_demand("不要改端口"));
        assert!(states_task("still fails: test_retry") && states_task("尚未完成"));
        assert!(!states_task("All green.") && !states_decision("Reading the file."));
    }

    #[test]
    fn error_lines_are_those_that_programs_print() {
        for line in [
            "E   AssertionError: 3 != 4",
            "sqlite3.OperationalError: no such table: jobs",
            "fatal: bad ref",
        ] {
            assert!(is_error_line(line), "{line}");
        }
        for line in ["0 errors", "def handle_error(self):", "all good"] {
            assert!(!is_error_line(line), "{line}");
        }
    }

    #[test]
    fn lines_that_only_point_to_an_error_are_told_from_its_message() {
        for line in [
            "FAIL src/a.test.ts",
            "npm ERR! code ENOENT",
            "npm ERR!     /root/.npm/_logs/debug-0.log",
            "thread 'main' panicked at src/main.rs:4:5:",
            "error: could not compile `app` (lib) due to 2 previous errors",
            "make: *** [check] Error 1",
            "ERROR: Build did NOT complete successfully",
            "ERROR: InvocationError for command /r/.tox/bin/pytest (exited with code 1)",
            "ERROR: failed to solve: process \"/bin/sh -c npm ci\" did not complete successfully: exit code: 1",
            "collect2: error: ld returned 1 exit status",
            "clang: error: linker command failed with exit code 1 (use -v to see invocation)",
            "error: subprocess-exited-with-error",
            "error: metadata-generation-failed",
            "error: Recipe `test` failed on line 3 with exit code 1",
            "error: fatalError",
        ] {
            assert!(points_elsewhere(line), "{line}");
        }
        for line in [
            "FAILED t.py::a - assert 1 == 2",
            "npm ERR! enoent ENOENT: no such file or directory, open 'a.json'",
            "npm ERR! Missing script: \"bild\"",
            "error[E0308]: mismatched types",
            "clang: error: no such file or directory: 'a.c'",
            "ERROR: failed to solve: rust:9: not found",
            "error: Justfile does not contain recipe `bild`.",
            "error: fatalError(_:file:line:) takes a message",
        ] {
            assert!(!points_elsewhere(line), "{line}");
        }
    }

    #[test]
    fn assignments_are_found_in_settings_and_prose() {
        assert_eq!(assignment("  port = 8081"), Some(("port", "8081")));
        assert_eq!(assignment("\"timeout\": 30,"), Some(("timeout", "30")));
        for line in ["just words", "the port: ...", "port: .."] {
            assert_eq!(assignment(line), None, "{line}");
        }
        assert_eq!(
            assignment("host: ... and port: 8081"),
            Some(("port", "8081"))
        );
    }
}
