//! Which file of the crate uses which, read from the source.
//!
//! Every file that ships is found from `src/lib.rs` by its `mod` declarations; what stands under `#[cfg(test)]` is
//! left out. A file uses another one if a path in it leads there: in a `use` declaration, also a nested one, or in
//! code, with `crate::`, `self::`, `super::`, a child module or an imported name in front. Re-exports are followed to
//! the file that defines the item, so a `mod.rs` that only re-exports is used by nobody and uses nothing.
//!
//! A method that is called through a value needs no path. So `misplaced_impls` finds the `impl` blocks outside the file of
//! their type: without those, whoever uses a method uses the file of its type.
//!
//! Steps: read each file into tokens; collect its child modules, its `use` declarations, its items, its paths, the
//! names it mentions and its `impl` blocks; then resolve each path, module by module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

type ModulePath = Vec<String>;

/// A `use` that renames re-exports in a circle would resolve forever; real chains have two or three steps.
const LONGEST_CHAIN: usize = 16;

#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    /// Imported name to path, re-exported names included.
    imports: BTreeMap<String, ModulePath>,
    globs: Vec<ModulePath>,
    paths: BTreeSet<ModulePath>,
    /// Functions and methods that are called, and types that are named, without the path in front.
    mentions: BTreeSet<String>,
    impls: Vec<ImplBlock>,
}

/// The head of an `impl` block.
struct ImplBlock {
    /// The text in the source.
    head: String,
    /// The type, its arguments, and the trait with its arguments; for an inherent `impl` the type alone.
    of: Vec<ModulePath>,
}

/// The files of the crate, relative to the repository, and what each uses.
pub(crate) type ModuleGraph = BTreeMap<String, BTreeSet<String>>;

/// The modules of the crate.
pub(crate) struct CrateModules {
    modules: BTreeMap<ModulePath, Module>,
}

impl CrateModules {
    /// Reads the crate whose `src` folder is in `root`.
    pub(crate) fn read(root: &Path) -> CrateModules {
        let mut modules = BTreeMap::new();
        read_module(root, "src/lib.rs", &mut Vec::new(), &mut modules);
        CrateModules { modules }
    }

    /// `impl` blocks in a file that defines neither their type nor, where they are of a trait, that trait or an argument
    /// of either. A module that connects two others, or another module with another crate, may also implement a trait:
    /// those two must not know each other.
    pub(crate) fn misplaced_impls(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (path, module) in &self.modules {
            for block in &module.impls {
                let homes: BTreeSet<String> = block
                    .of
                    .iter()
                    .filter_map(|of| self.file_of(path, of, 0))
                    .collect();
                let top = |file: &String| file.split('/').nth(1).map(str::to_owned);
                let is_foreign = |of: &ModulePath| {
                    of.first()
                        .is_some_and(|first| module.imports.contains_key(first))
                        && self.file_of(path, of, 0).is_none()
                };
                let sides = homes.len() + usize::from(block.of.iter().any(is_foreign));
                let connects = sides > 1 && homes.iter().all(|home| top(home) != top(&module.file));
                if !homes.is_empty() && !homes.contains(&module.file) && !connects {
                    let homes = homes.into_iter().collect::<Vec<_>>().join(" or ");
                    found.push(format!(
                        "{}: {} belongs into {homes}",
                        module.file, block.head
                    ));
                }
            }
        }
        found
    }

    /// Which file uses which.
    pub(crate) fn graph(&self) -> ModuleGraph {
        let uses = |path: &ModulePath, module: &Module| -> BTreeSet<String> {
            let files = module
                .paths
                .iter()
                .filter_map(|used| self.file_of(path, used, 0));
            files.filter(|file| *file != module.file).collect()
        };
        self.modules
            .iter()
            .map(|(path, module)| (module.file.clone(), uses(path, module)))
            .collect()
    }

    /// The file where `path`, as written in the module `from`, leads; nothing for other crates and local names.
    fn file_of(&self, from: &[String], path: &[String], depth: usize) -> Option<String> {
        let module = self.modules.get(from).filter(|_| depth < LONGEST_CHAIN)?;
        let Some((first, rest)) = path.split_first() else {
            return Some(module.file.clone());
        };
        match first.as_str() {
            "crate" => self.file_of(&[], rest, depth),
            "self" => self.file_of(from, rest, depth),
            "super" => self.file_of(from.split_last()?.1, rest, depth),
            _ if module.children.contains(first) => {
                self.file_of(&[from, std::slice::from_ref(first)].concat(), rest, depth)
            }
            _ if module.items.contains(first) => Some(module.file.clone()),
            _ => {
                let import = module
                    .imports
                    .get(first)
                    .map(|import| [import, rest].concat());
                let through_glob = || {
                    module
                        .globs
                        .iter()
                        .map(|glob| [glob, path].concat())
                        .collect::<Vec<_>>()
                };
                let candidates = import.map_or_else(through_glob, |import| vec![import]);
                candidates
                    .iter()
                    .find_map(|candidate| self.file_of(from, candidate, depth + 1))
            }
        }
    }
}

fn read_module(
    root: &Path,
    file: &str,
    path: &mut ModulePath,
    modules: &mut BTreeMap<ModulePath, Module>,
) {
    let text = fs::read_to_string(root.join(file)).expect("a source file");
    let tokens: TokenStream = text
        .parse()
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut module = Module {
        file: file.to_owned(),
        ..Module::default()
    };
    read_tokens(tokens, Level::File, &mut module);
    // A re-export does not count as a use, unless the file itself works with the name.
    let mentioned: Vec<ModulePath> = module
        .mentions
        .iter()
        .filter_map(|name| module.imports.get(name))
        .cloned()
        .collect();
    module.paths.extend(mentioned);
    let folder = match file
        .strip_suffix("/mod.rs")
        .or(file.strip_suffix("/lib.rs"))
    {
        Some(folder) => folder,
        None => file.trim_end_matches(".rs"),
    };
    for child in &module.children {
        let candidates = [
            format!("{folder}/{child}.rs"),
            format!("{folder}/{child}/mod.rs"),
        ];
        let found = candidates
            .iter()
            .find(|candidate| root.join(candidate).exists());
        path.push(child.clone());
        read_module(
            root,
            found.unwrap_or_else(|| panic!("{file}: no file of mod {child}")),
            path,
            modules,
        );
        path.pop();
    }
    modules.insert(path.clone(), module);
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    File,
    Block,
    /// Parentheses and brackets, where no item can stand.
    Inside,
}

fn read_tokens(tokens: TokenStream, level: Level, module: &mut Module) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = tokens.get(at..).unwrap_or_default();
        at += match token {
            TokenTree::Punct(_) => attribute(rest),
            TokenTree::Ident(ident) => match ident.to_string().as_str() {
                "use" if starts_use(rest) => use_declaration(&tokens, at, module),
                "mod" if ends_with_semicolon(rest) => {
                    module.children.insert(name_at(rest, 1));
                    3
                }
                "pub" => 1 + usize::from(matches!(rest.get(1), Some(TokenTree::Group(_)))),
                "impl" if level != Level::Inside && starts_item(&tokens, at) => {
                    module.impls.extend(impl_block(rest));
                    1
                }
                "struct" | "enum" | "trait" | "type" | "fn" | "const" | "static" | "mod"
                | "macro_rules" => {
                    let name_follows = matches!(rest.get(1), Some(TokenTree::Ident(_)));
                    if name_follows && level == Level::File {
                        module.items.insert(name_at(rest, 1));
                    }
                    if name_follows { 2 } else { 1 }
                }
                _ => code_path(rest, module),
            },
            TokenTree::Group(group) => {
                let is_block = group.delimiter() == Delimiter::Brace;
                read_tokens(
                    group.stream(),
                    if is_block {
                        Level::Block
                    } else {
                        Level::Inside
                    },
                    module,
                );
                1
            }
            TokenTree::Literal(_) => 1,
        };
    }
}

fn is_punct(token: Option<&TokenTree>, which: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == which)
}

fn name_at(tokens: &[TokenTree], at: usize) -> String {
    tokens.get(at).map(ToString::to_string).unwrap_or_default()
}

fn ends_with_semicolon(declaration: &[TokenTree]) -> bool {
    is_punct(declaration.get(2), ';')
}

/// `use` also occurs in `impl Trait + use<'a>`.
fn starts_use(rest: &[TokenTree]) -> bool {
    !is_punct(rest.get(1), '<')
}

fn starts_item(tokens: &[TokenTree], at: usize) -> bool {
    match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        None => true,
        Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Parenthesis,
        Some(before) => is_punct(Some(before), ';') || before.to_string() == "unsafe",
    }
}

/// The number of tokens of an attribute, with those of the item after it if that is for tests only; 1 for any other
/// punctuation mark.
fn attribute(rest: &[TokenTree]) -> usize {
    let Some(TokenTree::Group(group)) = rest.get(1).filter(|_| is_punct(rest.first(), '#')) else {
        return 1;
    };
    let text = group.stream().to_string();
    if !(text.starts_with("cfg") && text.contains("test") && !text.contains("not")) {
        return 2;
    }
    let ends_item = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => is_punct(Some(other), ';'),
    };
    rest.iter()
        .position(ends_item)
        .map_or(rest.len(), |end| end + 1)
}

/// Reads `use …;`, which starts at `at`, and returns its number of tokens.
fn use_declaration(tokens: &[TokenTree], at: usize, module: &mut Module) -> usize {
    let rest = tokens.get(at..).unwrap_or_default();
    let end = rest
        .iter()
        .position(|token| is_punct(Some(token), ';'))
        .unwrap_or(rest.len());
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_public = match before {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        Some(before) => before.to_string() == "pub",
        None => false,
    };
    use_tree(
        rest.get(1..end).unwrap_or_default(),
        &mut Vec::new(),
        is_public,
        module,
    );
    end + 1
}

fn use_tree(tokens: &[TokenTree], prefix: &mut ModulePath, is_public: bool, module: &mut Module) {
    for branch in tokens.split(|token| is_punct(Some(token), ',')) {
        let length = prefix.len();
        let mut name = None;
        for (at, token) in branch.iter().enumerate() {
            match token {
                TokenTree::Ident(word) if word == "as" => name = Some(name_at(branch, at + 1)),
                TokenTree::Ident(word) if name.is_none() => prefix.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    use_tree(&inner, prefix, is_public, module);
                    prefix.truncate(length);
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    module.globs.push(prefix.clone());
                    prefix.truncate(length);
                }
                _ => {}
            }
        }
        let mut path = prefix.clone();
        prefix.truncate(length);
        if path.len() == length {
            continue; // A group or a glob, which is already read.
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(name) = name.or(path.last().cloned()) else {
            continue;
        };
        if !is_public {
            module.paths.insert(path.clone());
        }
        module.imports.insert(name, path);
    }
}

/// Reads the path that starts here, and returns its number of tokens.
fn code_path(rest: &[TokenTree], module: &mut Module) -> usize {
    let (mut path, mut at) = (vec![name_at(rest, 0)], 1);
    while is_punct(rest.get(at), ':') && is_punct(rest.get(at + 1), ':') {
        let Some(TokenTree::Ident(segment)) = rest.get(at + 2) else {
            break;
        };
        path.push(segment.to_string());
        at += 3;
    }
    let first = path.first().cloned().unwrap_or_default();
    let is_called = matches!(rest.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
    match path.last() {
        Some(last) if path.len() > 1 => module.mentions.insert(last.clone()),
        _ if is_called || first.starts_with(char::is_uppercase) => module.mentions.insert(first),
        _ => false,
    };
    if path.len() > 1 {
        module.paths.insert(path);
    }
    at
}

/// The `impl` block that starts here; nothing in a macro, where names stand for others.
fn impl_block(rest: &[TokenTree]) -> Option<ImplBlock> {
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let is_word =
        |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    let end = rest.iter().position(is_body)?;
    let whole = rest.get(..end)?;
    if whole.iter().any(|token| is_punct(Some(token), '$')) {
        return None;
    }
    let bounds = whole
        .iter()
        .position(|token| is_word(token, "where"))
        .unwrap_or(end);
    let head = whole.get(1 + generics(whole.get(1..)?)..bounds)?;
    let mut of = paths(head);
    if !head.iter().any(|token| is_word(token, "for")) {
        of.truncate(1);
    }
    let head: TokenStream = whole.iter().cloned().collect();
    Some(ImplBlock {
        head: head.to_string(),
        of,
    })
}

/// The number of tokens of `<…>`, if it stands here.
fn generics(tokens: &[TokenTree]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_arrow = at > 0 && is_punct(tokens.get(at - 1), '-');
        depth += i32::from(is_punct(Some(token), '<'))
            - i32::from(is_punct(Some(token), '>') && !is_arrow);
        if depth == 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
    }
    tokens.len()
}

/// All paths in a list of tokens, also in its parentheses and brackets.
fn paths(tokens: &[TokenTree]) -> Vec<ModulePath> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) => {
                found.extend(paths(&group.stream().into_iter().collect::<Vec<_>>()))
            }
            TokenTree::Ident(first) => {
                let mut path = vec![first.to_string()];
                while is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':') {
                    path.push(name_at(tokens, at + 2));
                    at += 3;
                }
                found.push(path);
            }
            _ => {}
        }
    }
    found
}
