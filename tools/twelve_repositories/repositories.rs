//! Twelve small repositories, each with a session about one change, and the hidden check of that change.

use std::collections::BTreeMap;

use compeval::probe::Probe;
use serde_json::json;
use sessions::transcript::{Message, Role};

/// What a worker must know to make the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Path,
    Flag,
    Value,
    Forbidden,
    NextStep,
}

impl Slot {
    pub(crate) const ALL: [Slot; 5] = [
        Slot::Path,
        Slot::Flag,
        Slot::Value,
        Slot::Forbidden,
        Slot::NextStep,
    ];
}

/// A repository, and what was decided in its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repository {
    pub(crate) name: &'static str,
    /// A description of the change.
    subject: &'static str,
    pub(crate) path: &'static str,
    pub(crate) flag: &'static str,
    /// The setting, its value, and the value that was decided first.
    setting: &'static str,
    pub(crate) value: &'static str,
    pub(crate) old: &'static str,
    /// What must not be removed.
    pub(crate) forbidden: &'static str,
    /// The command that is run at the end.
    pub(crate) next: &'static str,
}

macro_rules! repositories {
    ($($name:literal $subject:literal $path:literal $flag:literal $setting:literal $value:literal $old:literal
        $forbidden:literal $next:literal;)+) => {
        [$(Repository {
            name: $name, subject: $subject, path: $path, flag: $flag, setting: $setting, value: $value, old: $old,
            forbidden: $forbidden, next: $next,
        }),+]
    };
}

pub(crate) const REPOSITORIES: [Repository; 12] = repositories! {
    "mailer" "delivery" "mail/outbox/sender.py" "--keep-queue" "batch_size" "240" "120" "mail/archive/2019" "make resend-failed";
    "crawler" "politeness" "crawl/fetch/limits.py" "--obey-robots" "delay_ms" "1750" "900" "crawl/seeds/base.txt" "make recrawl-errors";
    "ledger" "rounding" "ledger/core/money.rs" "--half-even" "scale_digits" "4821" "4802" "ledger/books/closed.db" "make reconcile-books";
    "gallery" "thumbnails" "web/images/resize.ts" "--strip-exif" "max_width" "1366" "1024" "web/originals" "make rebuild-thumbs";
    "planner" "scheduling" "plan/solver/search.go" "--seeded" "node_limit" "52000" "48000" "plan/golden/cases.json" "make bench-solver";
    "router" "timeouts" "net/proxy/upstream.conf" "--no-buffering" "read_timeout_ms" "3300" "2500" "net/certs/root.pem" "make reload-proxy";
    "parser" "recovery" "lang/parse/recover.ml" "--resync" "lookahead" "117" "112" "lang/spec/grammar.ebnf" "make fuzz-parser";
    "backup" "retention" "ops/backup/rotate.sh" "--dry-first" "keep_days" "455" "365" "ops/backup/vault" "make verify-restore";
    "search" "ranking" "search/rank/bm25.py" "--freeze-idf" "cutoff" "6144" "4096" "search/judged/queries.tsv" "make eval-ranking";
    "queue" "leases" "jobs/store/lease.rb" "--skip-locked" "lease_seconds" "735" "600" "jobs/db/schema.sql" "make drain-queue";
    "player" "buffering" "media/stream/buffer.cc" "--low-latency" "window_kb" "2304" "2048" "media/drm/keys.bin" "make soak-player";
    "charts" "colours" "ui/charts/palette.js" "--cvd-safe" "steps_total" "138" "128" "ui/brand/tokens.css" "make visual-diff";
};

impl Repository {
    /// The value of a slot.
    pub(crate) fn fact(&self, slot: Slot) -> &'static str {
        match slot {
            Slot::Path => self.path,
            Slot::Flag => self.flag,
            Slot::Value => self.value,
            Slot::Forbidden => self.forbidden,
            Slot::NextStep => self.next,
        }
    }

    /// The words by which a worker searches a slot.
    pub(crate) fn key(&self, slot: Slot) -> &'static str {
        match slot {
            Slot::Path => "implemented in",
            Slot::Flag => "flag",
            Slot::Value => self.setting,
            Slot::Forbidden => "never remove",
            Slot::NextStep => "last step",
        }
    }

    /// The sentence that states a slot with a value.
    pub(crate) fn sentence(&self, slot: Slot, value: &str) -> String {
        match slot {
            Slot::Path => format!("The {} code is implemented in {value}.", self.subject),
            Slot::Flag => format!("The {} job is started with the flag {value}.", self.subject),
            Slot::Value => format!(
                "For {} the setting {} is {value}.",
                self.subject, self.setting
            ),
            Slot::Forbidden => format!(
                "The user said to never remove {value} of the {} project.",
                self.name
            ),
            Slot::NextStep => format!("The last step of the {} change is {value}.", self.subject),
        }
    }

    /// The question of a slot.
    pub(crate) fn probe(&self, slot: Slot) -> Option<Probe> {
        let (subject, name) = (self.subject, self.name);
        let question = match slot {
            Slot::Path => format!("Where is the {subject} code implemented?"),
            Slot::Flag => format!("With which flag is the {subject} job started?"),
            Slot::Value => format!("What is the setting {} for {subject}?", self.setting),
            Slot::Forbidden => {
                format!("What did the user say never to remove from the {name} project?")
            }
            Slot::NextStep => format!("What is the last step of the {subject} change?"),
        };
        let tags = if slot == Slot::Forbidden {
            json!(["constraint"])
        } else {
            json!([])
        };
        let old = if slot == Slot::Value {
            json!([self.old])
        } else {
            json!([])
        };
        serde_json::from_value(json!({
            "id": format!("{slot:?}"), "type": "recall", "question": question, "expected_facts": [self.fact(slot)],
            "superseded_facts": old, "tags": tags,
        }))
        .ok()
    }

    /// The place among the twelve repositories, in which they differ besides their names.
    pub(crate) fn number(&self) -> usize {
        REPOSITORIES
            .iter()
            .position(|other| other.name == self.name)
            .unwrap_or(0)
    }

    /// The session. Each slot is stated once among messages that state none, and the old value is stated before. The
    /// order of the slots differs between repositories.
    pub(crate) fn session(&self) -> Vec<Message> {
        let talk = |role, n: usize| {
            let text = format!(
                "Looked at part {n} of the {} repository; nothing there bears on the change.",
                self.name
            );
            Message::text(role, text)
        };
        let mut messages = vec![Message::text(
            Role::User,
            self.sentence(Slot::Value, self.old),
        )];
        let mut order = Slot::ALL;
        order.rotate_left(self.number() % Slot::ALL.len());
        for (n, slot) in order.into_iter().enumerate() {
            messages.extend([
                talk(Role::Assistant, 2 * n),
                talk(Role::Assistant, 2 * n + 1),
            ]);
            let text = match slot {
                Slot::Value => format!(
                    "{} No longer {}.",
                    self.sentence(slot, self.value),
                    self.old
                ),
                _ => self.sentence(slot, self.fact(slot)),
            };
            messages.push(Message::text(Role::User, text));
        }
        messages
    }

    /// The files before the change.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let file = |path: &str| (path.to_owned(), format!("# {}\n", self.name));
        [file(self.path), file(self.forbidden), file("README.md")].into()
    }

    /// The hidden check: the change is in the right file with flag and value, the last step was run, and the file that
    /// must not be removed is there.
    pub(crate) fn passes(&self, files: &BTreeMap<String, String>, commands: &[String]) -> bool {
        let wanted = format!("{} = {} {}", self.setting, self.value, self.flag);
        files
            .get(self.path)
            .is_some_and(|text| text.contains(&wanted))
            && commands.iter().any(|command| command == self.next)
            && files.contains_key(self.forbidden)
    }

    /// What the worker writes with these values.
    pub(crate) fn change(&self, value: &str, flag: &str) -> String {
        format!("{} = {value} {flag}\n", self.setting)
    }
}
