//! Puts items into a session: which, where, and with which objects.

use std::collections::BTreeSet;
use std::ops::Range;

use base::locale::Locale;
use base::random::Random;
use base::units::Tokens;
use lexical::claims::{Rule, language_of};
use serde_json::{Value, json};
use sessions::transcript::{
    COMMAND_KEYS, Message, Role, ToolCall, estimate_tokens, fold, fold_document, is_boundary,
};

use super::request::{Request, requests};
use super::set::{Item, PlantedSet, Turn, Wording, overlap};
use super::{Kind, Position, State, Target};
use crate::action::Digest;

/// A recorded session, as far as planting needs it.
#[derive(Clone, Copy, Debug)]
pub struct Session<'s> {
    /// Its name, which decides what is drawn and how the positions of the kinds are rotated.
    pub name: &'s str,
    /// All of its messages.
    pub messages: &'s [Message],
    /// What the first compression replaces.
    pub span: (usize, usize),
}

/// What was planted in a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Planting {
    /// Those with at least one item.
    pub variants: Vec<Variant>,
    /// What was left out, in sentences.
    pub left_out: Vec<String>,
}

/// The most tokens of planted messages, as a share of those that the first compression replaces.
const MOST: f64 = 0.05;
/// How many recorded messages stand between the parts of an item, at least.
const APART: usize = 4;
/// How often an object is drawn before its item is given up.
const DRAWS: usize = 50;

/// Plants `variants` times one item of each kind.
pub fn plant(set: &PlantedSet, session: Session<'_>, variants: u32, seed: u64) -> Planting {
    let planter = Planter::new(set, session, seed);
    let mut planting = Planting::default();
    let mut left_out = LeftOut::default();
    for number in 1..=variants {
        let variant = planter.variant(number, &mut left_out);
        planting.variants.extend(variant);
    }
    planting.left_out = left_out.sentences(session.name, variants);
    planting
}

/// The items that were left out, by reason.
#[derive(Default)]
struct LeftOut {
    too_many_tokens: usize,
    no_place: usize,
    no_item: usize,
    mentioned: BTreeSet<String>,
}

impl LeftOut {
    fn sentences(&self, session: &str, variants: u32) -> Vec<String> {
        let all = variants as usize * Kind::ALL.len();
        let mut sentences = Vec::new();
        let mut say = |count: usize, why: &str| {
            if count > 0 {
                sentences.push(format!(
                    "{count} of {all} planted items are left out of {session}: {why}"
                ));
            }
        };
        say(
            self.too_many_tokens,
            "they would be more than 5% of the tokens that the first compression replaces",
        );
        say(
            self.no_place,
            "there is no room for both of their parts before the first compression point",
        );
        say(
            self.no_item,
            "the set has too few items of these kinds in the user's language with objects that are new to the session",
        );
        if !self.mentioned.is_empty() {
            let objects: Vec<&str> = self.mentioned.iter().map(String::as_str).collect();
            sentences.push(format!(
                "{session} mentions itself, and so does not get: {}",
                objects.join(", ")
            ));
        }
        sentences
    }
}

/// Plants into one session.
struct Planter<'a> {
    set: &'a PlantedSet,
    session: Session<'a>,
    seed: u64,
    language: Locale,
    /// The session, folded, to look for objects.
    folded: String,
    /// The places where a message can stand, each with the tokens of the span before it.
    places: Vec<(usize, u64)>,
    /// The tokens of the span.
    replaced: u64,
    /// The tool by which the session runs commands, and the argument that takes them.
    shell: (String, String),
}

/// A drawn item: its targets, and its parts (one, or two with turns in between).
struct Drawn {
    targets: Vec<Target>,
    parts: Vec<Vec<Message>>,
}

impl<'a> Planter<'a> {
    fn new(set: &'a PlantedSet, session: Session<'a>, seed: u64) -> Planter<'a> {
        let (start, end) = session.span;
        let span: Range<usize> = start..end.min(session.messages.len());
        let mut places = Vec::new();
        let mut before = 0;
        for at in span.start..=span.end {
            if at > span.start && is_boundary(session.messages, at) {
                places.push((at, before));
            }
            let message = session.messages.get(at).filter(|_| at < span.end);
            before += message.map_or(0, |message| estimate_tokens(&message.countable_text()).0);
        }
        let texts: Vec<String> = session
            .messages
            .iter()
            .map(Message::countable_text)
            .collect();
        Planter {
            set,
            session,
            seed,
            language: language_of(session.messages),
            folded: fold_document(&texts.join("\n")),
            places,
            replaced: before,
            shell: shell_of(session.messages),
        }
    }

    /// Where a session begins with the positions and kinds that its variants rotate over. It is drawn from its name, so
    /// other sessions do not decide what is planted in it.
    fn rotation(&self) -> usize {
        let purpose = format!("planted rotation {}", self.session.name);
        let different = Position::ALL.len() * Kind::ALL.len();
        sequence(self.seed, &purpose).below(different)
    }

    /// One variant; `None` where nothing can be planted.
    fn variant(&self, number: u32, left_out: &mut LeftOut) -> Option<Variant> {
        let purpose = |of: &str| format!("planted {of} {} {number}", self.session.name);
        let mut random = sequence(self.seed, &purpose("items"));
        let turn = number as usize + self.rotation();
        // Where tokens are short, each variant begins with another kind.
        let count = Kind::ALL.len();
        let kinds = (0..count).filter_map(|at| Kind::ALL.get((at + 2 * turn) % count).copied());
        let (mut used, mut objects) = (BTreeSet::new(), BTreeSet::new());
        let mut free = (MOST * self.replaced as f64) as u64;
        let mut inserted: Vec<(usize, Vec<Message>)> = Vec::new();
        let mut targets = Vec::new();
        for kind in kinds {
            let position = position_of(kind, turn);
            let drawn = self.draw(
                kind,
                position,
                &mut random,
                (&mut used, &mut objects),
                left_out,
            );
            let Some(mut drawn) = drawn else {
                left_out.no_item += 1;
                continue;
            };
            let tokens: Tokens = drawn
                .parts
                .iter()
                .flatten()
                .map(|message| estimate_tokens(&message.countable_text()))
                .sum();
            if tokens.0 > free {
                left_out.too_many_tokens += 1;
                continue;
            }
            let Some(places) = self.places_of(position, drawn.parts.len(), &mut random) else {
                left_out.no_place += 1;
                continue;
            };
            free -= tokens.0;
            // The ids of calls are unique within a transcript.
            let id = format!("planted_{number}_{kind}");
            for message in drawn.parts.iter_mut().flatten() {
                message
                    .tool_calls
                    .iter_mut()
                    .for_each(|call| call.id.clone_from(&id));
                message.tool_call_id = message.tool_call_id.take().map(|_| id.clone());
            }
            inserted.extend(places.into_iter().zip(drawn.parts));
            targets.append(&mut drawn.targets);
        }
        inserted.sort_by_key(|(at, _)| *at);
        let order = sequence(self.seed, &purpose("order"));
        let [next, state] = requests(&targets, self.language, order, number.is_multiple_of(2));
        let variant = Variant {
            number,
            targets,
            inserted,
            next,
            state,
        };
        (!variant.is_empty()).then_some(variant)
    }

    /// The places of the parts of an item: in its third of the span, the parts some turns apart.
    fn places_of(
        &self,
        position: Position,
        parts: usize,
        random: &mut Random,
    ) -> Option<Vec<usize>> {
        let third = Position::ALL.iter().position(|known| *known == position)? as u64;
        let within: Vec<usize> = self
            .places
            .iter()
            .filter(|(_, before)| {
                (before * 3).checked_div(self.replaced).map(|at| at.min(2)) == Some(third)
            })
            .map(|(at, _)| *at)
            .collect();
        let last = self.places.last()?.0;
        // A third with one long message has no place of its own: the next one stands for it.
        let after = self
            .places
            .iter()
            .find(|(_, before)| before * 3 >= third * self.replaced);
        let within = if within.is_empty() {
            vec![after?.0]
        } else {
            within
        };
        let later = |first: usize| {
            let mut places = self.places.iter().map(|(at, _)| *at);
            places.find(|at| *at >= first + APART && *at <= last)
        };
        let mut fitting = within;
        if parts > 1 {
            fitting.retain(|at| later(*at).is_some());
            if fitting.is_empty() {
                // Late in the span: the second part at its end.
                let first = self
                    .places
                    .iter()
                    .rev()
                    .find(|(at, _)| at + APART <= last)?;
                fitting.push(first.0);
            }
        }
        let first = *fitting.get(random.below(fitting.len()))?;
        let mut places = vec![first];
        places.extend((parts > 1).then(|| later(first)).flatten());
        (places.len() == parts).then_some(places)
    }

    /// Draws an item of a kind that is new in this variant, with objects that the session does not mention.
    fn draw(
        &self,
        kind: Kind,
        position: Position,
        random: &mut Random,
        (used, objects): (&mut BTreeSet<String>, &mut BTreeSet<String>),
        left_out: &mut LeftOut,
    ) -> Option<Drawn> {
        let all = self.set.of(self.language).item.iter();
        let mut items: Vec<&Item> = all.filter(|item| item.is_for(kind)).collect();
        random.shuffle(&mut items);
        let fresh = items.iter().filter(|item| !used.contains(&item.name));
        let items: Vec<&Item> = fresh.copied().collect();
        let needed = if kind == Kind::Replaced { 4 } else { 2 };
        let wordings = self.set.wordings(self.language, kind);
        let wording = *wordings.get(random.below(wordings.len()))?;
        for item in items {
            let mut drawn = Vec::new();
            for _ in 0..DRAWS {
                let pattern = item.objects.get(random.below(item.objects.len()))?;
                let object = digits(pattern, random);
                if self.folded.contains(&fold(&object)) {
                    left_out.mentioned.insert(object);
                } else if !objects.iter().any(|other| overlap(other, &object)) {
                    objects.insert(object.clone());
                    drawn.push(object);
                }
                if drawn.len() == needed {
                    used.insert(item.name.clone());
                    return Some(self.fill(item, kind, position, wording, drawn, random));
                }
            }
        }
        None
    }

    /// The messages and targets of an item with these objects: its own, its decoy, and the same of the order that it
    /// replaces.
    fn fill(
        &self,
        item: &Item,
        kind: Kind,
        position: Position,
        wording: &Wording,
        objects: Vec<String>,
        random: &mut Random,
    ) -> Drawn {
        let object = |at: usize| objects.get(at).map_or("", String::as_str);
        let with = |pattern: &str, object: &str| pattern.replace("{object}", object);
        let handle = digits("bg-####", random);
        let said = |text: &str| {
            text.replace("{action}", &item.action)
                .replace("{command}", &item.command)
                .replace("{other_action}", &with(&item.action, object(2)))
                .replace("{other}", object(2))
                .replace("{handle}", &handle)
                .replace("{object}", object(0))
        };
        let stated = wording.turns().find_map(|turn| match turn {
            Some(Turn::User(text)) => Some(said(text)),
            _ => None,
        });
        let name = format!("{kind}/{}", item.name);
        let target = |own: usize, truth: State| Target {
            item: name.as_str().into(),
            kind,
            position,
            object: object(own).to_owned(),
            truth,
            handle: (kind == Kind::Running).then(|| handle.clone()),
            rule: stated
                .as_deref()
                .filter(|_| kind == Kind::Rule)
                .map(|text| Rule {
                    language: self.language,
                    text: text.to_owned(),
                    object: object(own).to_owned(),
                }),
            action: with(&item.action, &format!("`{}`", object(own))),
            decoy_action: with(&item.action, &format!("`{}`", object(own + 1))),
        };
        let mut targets = vec![target(0, kind.state())];
        targets.extend((kind == Kind::Replaced).then(|| target(2, State::Cancelled)));
        let mut parts: Vec<Vec<Message>> = vec![Vec::new()];
        for turn in wording.turns().flatten() {
            let message = match turn {
                Turn::Later => {
                    parts.push(Vec::new());
                    continue;
                }
                Turn::User(text) => Message::text(Role::User, said(text)),
                Turn::Agent(text) => Message::text(Role::Assistant, said(text)),
                Turn::Result(text) => Message::result("planted", said(text)),
                Turn::Call(text) => self.call(&said(text)),
            };
            if let Some(part) = parts.last_mut() {
                part.push(message);
            }
        }
        Drawn { targets, parts }
    }

    /// The call of a command, as the session calls its own.
    fn call(&self, command: &str) -> Message {
        let (name, argument) = &self.shell;
        let arguments = json!({ argument: command }).to_string();
        Message {
            tool_calls: vec![ToolCall::new("planted", name, arguments)],
            ..Message::text(Role::Assistant, "")
        }
    }
}

/// Rotated over the variants of a session, as a Latin square.
fn position_of(kind: Kind, turn: usize) -> Position {
    let at = Kind::ALL.iter().position(|known| *known == kind);
    let positions = Position::ALL;
    let at = (at.unwrap_or_default() + turn) % positions.len();
    positions.get(at).copied().unwrap_or(Position::Early)
}

/// The first tool of a session that takes a command, with the name of that argument.
fn shell_of(messages: &[Message]) -> (String, String) {
    let calls = messages.iter().flat_map(|message| &message.tool_calls);
    let mut shells = calls.filter_map(|call| {
        let arguments = call.arguments()?;
        let argument = COMMAND_KEYS
            .into_iter()
            .find(|name| arguments.get(*name).is_some_and(Value::is_string))?;
        Some((call.function.name.clone(), argument.to_owned()))
    });
    shells
        .next()
        .unwrap_or_else(|| ("bash".to_owned(), "command".to_owned()))
}

/// A sequence of its own for each purpose under a seed.
fn sequence(seed: u64, purpose: &str) -> Random {
    let Digest([a, b, c, d, e, f, g, h, ..]) = Digest::hash(format!("{seed} {purpose}"));
    Random::seeded(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// The pattern with a digit in place of each `#`.
pub(super) fn digits(pattern: &str, random: &mut Random) -> String {
    let digit = |random: &mut Random| char::from(b'0' + random.below(10) as u8);
    pattern
        .chars()
        .map(|c| if c == '#' { digit(random) } else { c })
        .collect()
}

/// A session with items in it, and what is asked about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// From 1.
    pub number: u32,
    /// The actions.
    pub targets: Vec<Target>,
    /// What stands before which recorded message, in order.
    pub inserted: Vec<(usize, Vec<Message>)>,
    /// What is done next?
    pub next: Request,
    /// What is known of each action?
    pub state: Request,
}

impl Variant {
    /// The recorded messages with the planted ones.
    pub fn messages(&self, recorded: &[Message]) -> Vec<Message> {
        let mut messages = Vec::with_capacity(recorded.len() + self.len());
        let mut from = 0;
        for (at, planted) in &self.inserted {
            messages.extend_from_slice(recorded.get(from..*at).unwrap_or_default());
            messages.extend_from_slice(planted);
            from = *at;
        }
        messages.extend_from_slice(recorded.get(from..).unwrap_or_default());
        messages
    }

    /// The number of planted messages.
    pub fn len(&self) -> usize {
        self.inserted.iter().map(|(_, planted)| planted.len()).sum()
    }

    /// Whether nothing is planted.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::fakes::session;
    use crate::planted::{grade_next, grade_states};

    fn planted(messages: &[Message]) -> Planting {
        let session = Session {
            name: "s",
            messages,
            span: (0, messages.len()),
        };
        plant(PlantedSet::built_in(), session, 4, 7)
    }

    #[test]
    fn each_variant_has_one_item_a_kind_at_rotated_positions_in_both_languages() {
        for words in ["go on with it ", "继续检查这个文件，"] {
            let messages = session(words, 40);
            let planting = planted(&messages);
            assert_eq!(
                planting,
                planted(&messages),
                "the same seed plants the same"
            );
            assert_eq!(planting.left_out, Vec::<String>::new());
            for variant in &planting.variants {
                let kinds: BTreeSet<Kind> =
                    variant.targets.iter().map(|target| target.kind).collect();
                assert_eq!((kinds.len(), variant.targets.len()), (7, 8));
                let whole = variant.messages(&messages);
                assert_eq!(whole.len(), 40 + variant.len());
                let text: String = whole.iter().map(Message::countable_text).collect();
                for target in &variant.targets {
                    assert!(text.contains(&target.object), "{target:?}");
                }
                let calls = whole
                    .iter()
                    .enumerate()
                    .filter(|(_, message)| !message.tool_calls.is_empty());
                for (at, call) in calls {
                    assert_eq!(
                        whole[at + 1].tool_call_id.as_deref(),
                        Some(&*call.tool_calls[0].id)
                    );
                }
            }
            for kind in Kind::ALL {
                let positions = planting
                    .variants
                    .iter()
                    .flat_map(|variant| &variant.targets);
                let positions: BTreeSet<Position> = positions
                    .filter(|target| target.kind == kind)
                    .map(|target| target.position)
                    .collect();
                assert_eq!(positions.len(), 3, "{kind}");
            }
        }
    }

    #[test]
    fn a_session_that_is_too_short_gets_fewer_items_and_says_so() {
        let short = session("go on with it ", 8);
        let planting = planted(&short);
        let tokens: u64 = short
            .iter()
            .map(|message| estimate_tokens(&message.countable_text()).0)
            .sum();
        for variant in &planting.variants {
            let planted = variant.inserted.iter().flat_map(|(_, messages)| messages);
            let planted: u64 = planted
                .map(|message| estimate_tokens(&message.countable_text()).0)
                .sum();
            assert!(planted * 20 <= tokens, "{planted} of {tokens}");
        }
        assert!(
            planting.left_out[0].contains("of 28 planted items are left out of s"),
            "{:?}",
            planting.left_out
        );
        assert!(planted(&session("go", 1)).variants.is_empty());
    }

    #[test]
    fn a_reply_is_read_whole_or_not_at_all() {
        let planting = planted(&session("go on with it ", 40));
        let variant = &planting.variants[1];
        let entries = |word: &dyn Fn(usize) -> String| -> String {
            let all = variant
                .next
                .numbers()
                .map(|number| format!("\"{number}\": \"{}\"", word(number)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
        };
        let leave = entries(&|_| "leave".to_owned());
        let read = |reply: &str| grade_next(variant, reply);
        let fault = |reply: &str| read(reply).expect_err(reply).to_string();
        assert!(read(&leave).is_ok_and(|graded| {
            graded
                .iter()
                .all(|one| !one.target && one.decoy == Some(false))
        }));
        assert!(read(&format!("```json\n{leave}\n```")).is_ok());
        for reply in [
            "",
            "leave",
            "I'm sorry.",
            &format!("Sure: {leave}"),
            &format!("{leave} Done."),
        ] {
            assert!(fault(reply).contains("not one JSON object"), "{reply}");
        }
        assert!(fault(&leave.replace("11", "55")).contains("`55`, which was not asked about"));
        assert!(fault(&leave.replace("12", "11")).contains("has the number 11 twice"));
        assert!(fault("{}").contains("leaves out the number 11"));
        assert!(fault(&entries(&|_| "DO".to_owned())).contains("the word \"DO\"; expected"));
        assert!(fault("{\"11\": true}").contains("not sound JSON"));
        let started = variant
            .state
            .numbers()
            .map(|number| format!("\"{number}\": \"started: bg-1\""));
        let states = grade_states(
            variant,
            &format!("{{{}}}", started.collect::<Vec<_>>().join(",")),
        );
        let states = states.expect("in form");
        assert_eq!(states.len(), variant.targets.len());
        assert!(
            states
                .iter()
                .all(|said| said.target.handle.as_deref() == Some("bg-1"))
        );
        assert_eq!(states.iter().filter(|said| said.decoy.is_some()).count(), 4);
    }
}
