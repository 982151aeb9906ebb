//! Names that have the shape of a reference but occur in every session.

use std::collections::HashSet;
use std::sync::LazyLock;

use base::words::WordList;

const STOP_LIST: &str = "
    /dev/null /dev/stdin /dev/stdout /dev/stderr /usr/bin/env /usr/bin/bash /bin/bash /bin/sh /usr/bin /usr/local/bin /usr/local
    in_progress not_started is_error exit_code session_id tool_use tool_result tool_call tool_calls tool_use_id tool_call_id
    file_path old_string new_string replace_all subagent_type run_in_background head_limit output_mode files_with_matches
    active_form activeForm timeout_ms yield_time_ms max_output_tokens exec_command write_stdin apply_patch update_plan
    read_file write_file read_files edit_file create_file delete_file list_dir run_terminal_cmd str_replace str_replace_editor
    str_replace_based_edit_tool view_range insert_line file_text search_files ask_user_question system-reminder
    NotebookEdit MultiEdit TodoWrite TodoRead WebFetch WebSearch ExitPlanMode BashOutput KillShell AskUserQuestion
    JavaScript TypeScript CoffeeScript GitHub GitLab BitBucket PostgreSQL MySQL MariaDB MongoDB DynamoDB GraphQL SQLite OpenAI
    ChatGPT YouTube LinkedIn WhatsApp DevOps FastAPI PyTorch TensorFlow NumPy NextJS NodeJS VSCode IntelliJ macOS iPhone
    iPad LaTeX WebSocket WebSockets WordPress StackOverflow HuggingFace DeepSeek LangChain
    node_modules site-packages __init__.py
    toString forEach indexOf innerHTML addEventListener setTimeout setInterval useState useEffect parseInt
    isinstance ValueError TypeError KeyError IndexError AttributeError RuntimeError ImportError ModuleNotFoundError SyntaxError
    FileNotFoundError AssertionError ReferenceError NullPointerException
    README.md package.json
    console.log math.log np.log torch.log process.env import.meta.env
    --help --version --all --force
    true/false and/or read/write input/output
";

/// Commands of git that every session gives.
const GIT: WordList = WordList(
    "status diff log add commit show checkout push pull branch stash rev-parse blame grep init clone fetch",
);

static STOPPED: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = STOP_LIST.split_whitespace().map(str::to_lowercase);
    words
        .chain(GIT.iter().map(|command| format!("git {command}")))
        .collect()
});

/// Whether the stop list has the reference with this key.
pub(super) fn is_stopped(key: &str) -> bool {
    STOPPED.contains(key)
}

/// Words in the name before a number that make it a measure of how much to show or how long to wait, or a place.
const MEASURES: WordList = WordList(
    "limit offset timeout time_out time-out line lines yield start end range length len count size head tail budget \
    wait sleep delay column col index page tokens ms seconds secs duration elapsed pid time date total pct percent row \
    rows 行 超时",
);

/// Whether `name`, before a number, says that the number is a limit, a time, a count or a place.
pub(super) fn is_measure(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .any(|part| MEASURES.has(part))
        || ["timeout", "limit", "offset", "duration"]
            .iter()
            .any(|word| lower.contains(word))
}

/// Whether a tool makes the name anew each time, such as `toolu_01Ab…`, or a scrubber inserted it.
pub(super) fn is_generated(name: &str) -> bool {
    const STARTS: WordList =
        WordList("toolu_ call_ chatcmpl msg_ req_ resp_ fc_ rs_ srvtoolu_ REDACTED_");
    let has_digit = name.bytes().any(|b| b.is_ascii_digit());
    has_digit && STARTS.iter().any(|start| name.starts_with(start)) || is_random(name)
}

/// Whether letters and digits alternate as in a generated id.
fn is_random(name: &str) -> bool {
    let pairs = name.as_bytes().windows(2);
    let changes =
        pairs.filter(|pair| matches!(pair, [a, b] if a.is_ascii_digit() != b.is_ascii_digit()));
    let limit = if name.contains('_') { 8 } else { 5 };
    changes.count() >= limit
}

/// Whether a line reports an error.
pub(crate) fn is_error_line(line: &str) -> bool {
    const WORDS: WordList = WordList(
        "error exception panicked failed failure fatal cannot can't denied refused invalid undefined unexpected 失败 错误 \
        异常 拒绝 エラー 失敗 例外",
    );
    let mut words = WORDS.iter().chain(["timed out", "not found", "no such"]);
    let lower = line.to_lowercase();
    words.any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_and_limits_are_recognized() {
        assert!(
            is_generated("toolu_01AbCd")
                && is_generated("a1b2c3d4e5")
                && is_generated("REDACTED_KEY_1")
        );
        assert!(!is_generated("call_site") && !is_generated("sha256_of_v2"));
        assert!(is_measure("max_output_tokens") && is_measure("timeoutMs") && is_measure("超时"));
        assert!(!is_measure("retries") && !is_measure("endpoint") && !is_measure("admin"));
    }
}
