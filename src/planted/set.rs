//! The set of items: actions to plant, and the wording of each kind, in each language.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Kind;
use base::fault::Fault;
use base::locale::Locale;
use lexical::claims::{Rule, RuleFinder};
use sessions::transcript::fold;

/// The items to plant, by the language of the session's user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlantedSet {
    /// For sessions in English.
    #[serde(default)]
    pub en: LanguageSet,
    /// For sessions in Chinese.
    #[serde(default)]
    pub zh: LanguageSet,
}

/// The items of one language.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageSet {
    /// The actions.
    #[serde(default)]
    pub item: Vec<Item>,
    /// How each kind is said; the built-in wording where a kind has none.
    #[serde(default)]
    pub wording: Vec<Wording>,
}

/// An action that can be planted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name in results.
    pub name: String,
    /// The kinds that it can be planted as. Default: all but `running`.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// What is done, with `{object}`, as in "send the notice {object}". One-time by nature: no tests, builds or
    /// deployments.
    pub action: String,
    /// The command that does it, with `{object}`.
    pub command: String,
    /// The objects to draw from; each `#` becomes a digit. Without `#`, at least four.
    pub objects: Vec<String>,
}

/// One way to say a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wording {
    pub kind: Kind,
    /// Lines that begin with `user: `, `agent: `, `call: ` or `result: `; the line `later` stands for some turns in between.
    /// They may have `{action}`, `{command}`, `{object}`, `{handle}` (running), and the order that is replaced,
    /// `{other_action}` and `{other}`.
    pub turns: Vec<String>,
}

/// One line of a wording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Turn<'t> {
    User(&'t str),
    Agent(&'t str),
    Call(&'t str),
    Result(&'t str),
    Later,
}

impl Wording {
    pub(super) fn turns(&self) -> impl Iterator<Item = Option<Turn<'_>>> {
        self.turns.iter().map(|line| {
            let line = line.trim();
            if line == "later" {
                return Some(Turn::Later);
            }
            let (role, text) = line.split_once(": ")?;
            Some(match role {
                "user" => Turn::User(text),
                "agent" => Turn::Agent(text),
                "call" => Turn::Call(text),
                "result" => Turn::Result(text),
                _ => return None,
            })
        })
    }
}

static BUILT_IN: LazyLock<PlantedSet> = LazyLock::new(|| {
    let read = |text: &str| -> PlantedSet {
        toml::from_str(text)
            .expect("the built-in items are part of the program and read by its tests")
    };
    PlantedSet {
        en: read(include_str!("../../assets/planted/en.toml")).en,
        zh: read(include_str!("../../assets/planted/zh.toml")).zh,
    }
});

impl PlantedSet {
    /// The set that is part of the program.
    pub fn built_in() -> &'static PlantedSet {
        &BUILT_IN
    }

    /// Reads a set of the user.
    ///
    /// # Errors
    /// It is no TOML, has other keys or no objects, or a wording does not say what its kind must say.
    pub fn read(text: &str) -> Result<PlantedSet, Fault> {
        let set: PlantedSet = toml::from_str(text).map_err(|error| {
            let place = error.span().unwrap_or(0..text.len().min(1));
            let help = "a set has [[en.item]] or [[zh.item]] tables with name, action, command and objects, and may have [[en.wording]] tables with kind and turns";
            Fault::at(place, error.message(), help)
        })?;
        let fault = set.fault();
        fault.map_or(Ok(set), |(named, message, help)| {
            let quoted = text.find(&format!("\"{named}\"")).map(|at| at + 1);
            let at = quoted.or_else(|| text.find(&named)).unwrap_or(0);
            let end = (at + named.len()).clamp(at, text.len());
            Err(Fault::at(at..end, message, help))
        })
    }

    pub(super) fn of(&self, language: Locale) -> &LanguageSet {
        language.pick(&self.en, &self.zh)
    }

    /// The wordings of a kind, the built-in ones if the set has none.
    pub(super) fn wordings(&self, language: Locale, kind: Kind) -> Vec<&Wording> {
        let sets = [self, PlantedSet::built_in()];
        let mut wordings = sets.into_iter().map(|set| {
            let all = set.of(language).wording.iter();
            all.filter(|one| one.kind == kind)
                .collect::<Vec<&Wording>>()
        });
        wordings.find(|own| !own.is_empty()).unwrap_or_default()
    }

    /// The first thing that is wrong: the text in the file that has it, what it is, and what to do.
    fn fault(&self) -> Option<(String, String, &'static str)> {
        if self.en.item.is_empty() && self.zh.item.is_empty() {
            return Some((
                String::new(),
                "the set has no items".to_owned(),
                "write an [[en.item]] or [[zh.item]] table for each action",
            ));
        }
        [Locale::En, Locale::Zh].into_iter().find_map(|language| {
            let mut names = BTreeSet::new();
            let set = self.of(language);
            let items = set
                .item
                .iter()
                .find_map(|item| item.fault(names.insert(&item.name)));
            items.or_else(|| set.wording.iter().find_map(|one| one.fault(language)))
        })
    }
}

impl Item {
    /// Whether it can be planted as `kind`.
    pub(super) fn is_for(&self, kind: Kind) -> bool {
        match self.kinds.is_empty() {
            true => kind != Kind::Running,
            false => self.kinds.contains(&kind),
        }
    }

    fn fault(&self, is_first: bool) -> Option<(String, String, &'static str)> {
        let name = &self.name;
        let at = |text: &str| text.to_owned();
        if name.trim().is_empty() || !is_first {
            return Some((
                at(name),
                format!("two items are named `{name}`, or one has no name"),
                "names identify results: use another one",
            ));
        }
        for (key, text) in [("action", &self.action), ("command", &self.command)] {
            if !text.contains("{object}") {
                return Some((
                    at(text),
                    format!("the `{key}` of the item `{name}` has no {{object}}"),
                    "write {object} where the object stands",
                ));
            }
        }
        let is_drawn = self.objects.iter().any(|object| object.contains('#'));
        let is_blank = self.objects.iter().any(|object| object.trim().is_empty());
        if is_blank || !is_drawn && self.objects.len() < 4 {
            return Some((
                at(name),
                format!("the item `{name}` has too few `objects`"),
                "name at least four, or one with # for each digit that is drawn, as in \"NT-####\"",
            ));
        }
        let mut objects = self.objects.iter().enumerate();
        let clash = objects.find(|(at, object)| {
            let mut earlier = self.objects.iter().take(*at);
            earlier.any(|earlier| overlap(earlier, object))
        });
        clash.map(|(_, object)| {
            (
                at(object),
                format!("the object `{object}` of the item `{name}` has an earlier one in it, or is in one"),
                "a text with the longer one has both: name objects that do not contain one another",
            )
        })
    }
}

/// Whether one of two objects is in the other, so that a text cannot name one of them alone.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(fold);
    one.contains(&other) || other.contains(&one)
}

impl Wording {
    fn fault(&self, language: Locale) -> Option<(String, String, &'static str)> {
        let kind = self.kind;
        let first = self.turns.first().cloned().unwrap_or_default();
        if let Some(line) = self
            .turns
            .iter()
            .zip(self.turns())
            .find(|(_, turn)| turn.is_none())
        {
            return Some((
                line.0.clone(),
                format!("a turn of the wording of `{kind}` has no speaker"),
                "begin it with `user: `, `agent: `, `call: ` or `result: `, or write `later`",
            ));
        }
        let turns: Vec<Turn<'_>> = self.turns().flatten().collect();
        let is_answered = |at: usize| matches!(turns.get(at + 1), Some(Turn::Result(_)));
        let calls = turns.iter().enumerate();
        let mut open = calls.filter(|(_, turn)| matches!(turn, Turn::Call(_)));
        if open.any(|(at, _)| !is_answered(at)) {
            return Some((
                first,
                format!("a call in the wording of `{kind}` has no result"),
                "write a line `result: …` directly after it",
            ));
        }
        let needed: &[&str] = match kind {
            Kind::Replaced => &["{object}", "{other}", "\nlater"],
            Kind::Running => &["{object}", "{handle}"],
            Kind::Cancelled => &["{object}", "\nlater"],
            _ => &["{object}"],
        };
        // The action and the command have the object.
        let whole = self.turns.join("\n");
        let whole = whole
            .replace("{action}", "{object}")
            .replace("{command}", "{object}")
            .replace("{other_action}", "{other}");
        if let Some(missing) = needed.iter().find(|word| !whole.contains(**word)) {
            let message = format!("the wording of `{kind}` has no {}", missing.trim());
            return Some((first, message, "a wording says all that its kind is about"));
        }
        let stated = turns.iter().find_map(|turn| match turn {
            Turn::User(text) => Some(text.replace("{action}", "touch {object}")),
            _ => None,
        });
        let stated = stated.unwrap_or_default().replace("{object}", "QX-4411");
        let rule = Rule {
            language,
            text: stated.clone(),
            object: "QX-4411".to_owned(),
        };
        (kind == Kind::Rule && !RuleFinder::new(&rule).is_stated_in(&stated)).then(|| {
            (
                first,
                "the wording of `rule` does not forbid its object in one sentence".to_owned(),
                "say \"never\", \"do not\" or the like beside the object",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_sets_are_sound_and_have_ten_items_a_kind() {
        let set = PlantedSet::built_in();
        assert_eq!(set.fault(), None);
        for language in [Locale::En, Locale::Zh] {
            for kind in Kind::ALL {
                let items = set
                    .of(language)
                    .item
                    .iter()
                    .filter(|item| item.is_for(kind));
                assert!(items.count() >= 10, "{language:?} {kind}");
                assert!(
                    set.wordings(language, kind).len() >= 3,
                    "{language:?} {kind}"
                );
            }
        }
    }

    #[test]
    fn every_fault_of_a_set_is_named_at_its_place() {
        let item = "[[en.item]]\nname = \"a\"\naction = \"send {object}\"\ncommand = \"send {object}\"\nobjects = [\"N-###\"]\n";
        assert!(PlantedSet::read(item).is_ok());
        let wording = "[[en.wording]]\nkind = \"rule\"\nturns = [\"user: Never {action}.\"]\n";
        assert!(PlantedSet::read(&format!("{item}{wording}")).is_ok());
        for (from, to, part) in [
            ("objects = [\"N-###\"]\n", "", "missing field `objects`"),
            ("[\"N-###\"]", "[]", "too few `objects`"),
            ("[\"N-###\"]", "[\"N-1\"]", "too few `objects`"),
            (
                "[\"N-###\"]",
                "[\"N-#\", \"N-##\"]",
                "`N-##` of the item `a` has an earlier one in it",
            ),
            (
                "action = \"send {object}\"",
                "action = \"send it\"",
                "`action` of the item `a` has no {object}",
            ),
            ("name = ", "nam = ", "unknown field `nam`"),
            ("Never {action}", "Please {action}", "does not forbid"),
            ("user: Never", "Never", "has no speaker"),
            (
                "\"user: Never {action}.\"",
                "\"call: {command}\"",
                "has no result",
            ),
            ("\"rule\"", "\"running\"", "has no {handle}"),
            (item, "", "the set has no items"),
        ] {
            let text = format!("{item}{wording}").replacen(from, to, 1);
            let fault = PlantedSet::read(&text).expect_err(part);
            assert!(fault.message.contains(part), "{fault:?}");
            assert!(text.get(fault.place.clone()).is_some(), "{fault:?}");
        }
    }
}
