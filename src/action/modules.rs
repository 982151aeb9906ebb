//! The modules that a program loads, as inputs of an action, and the names of these inputs.
//!
//! Which modules a program loads is not known before it has run. So there are two keys. The key of the declared inputs
//! finds outputs that may fit. A stored output has the key of the declared inputs and the loaded modules.

use std::borrow::Cow;
use std::sync::Arc;

use store::Digest;

/// The name of the input that says that modules are inputs, too.
pub const INPUTS_FROM: &str = "inputs_from";
/// Begins the name of an input that is the file of a module; the file's path follows.
const MODULE: &str = "module ";
/// Begins the name of an input that is the version of a package; the package's name follows.
const PACKAGE: &str = "package ";

/// Whether the modules that a program loads are among its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Modules {
    /// They are not: the key is made of what is declared alone.
    #[default]
    Ignored,
    /// They are, and the program has not run yet.
    Unknown,
    /// They are, and are known.
    Loaded(Arc<LoadedModules>),
}

/// The modules and packages that a program had loaded when it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadedModules {
    /// Files of the project: path relative to the pipeline's folder, and digest of the content. Sorted, each once.
    pub files: Vec<(String, Digest)>,
    /// Names and versions of packages. Sorted, each once.
    pub packages: Vec<(String, String)>,
}

impl Modules {
    /// Visits each input: its name, digest and, if it is short, text.
    pub(super) fn visit(&self, part: &mut impl FnMut(Cow<'static, str>, Digest, Option<&str>)) {
        if *self == Modules::Ignored {
            return;
        }
        part(INPUTS_FROM.into(), Digest::hash("modules"), Some("modules"));
        let Modules::Loaded(loaded) = self else {
            return;
        };
        for (path, digest) in &loaded.files {
            part(module_input(path).into(), *digest, None);
        }
        for (name, version) in &loaded.packages {
            part(
                package_input(name).into(),
                Digest::hash(version),
                Some(version),
            );
        }
    }
}

/// The name of the input that is the file of a module.
pub fn module_input(path: &str) -> String {
    format!("{MODULE}{path}")
}

/// The name of the input that is a package, and of the source that is the file with its version.
pub fn package_input(name: &str) -> String {
    format!("{PACKAGE}{name}")
}

/// The path of the module's file if an input is a module.
pub fn module_path(input: &str) -> Option<&str> {
    input.strip_prefix(MODULE)
}

/// The name of the package if an input is a package.
pub fn package_name(input: &str) -> Option<&str> {
    input.strip_prefix(PACKAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Inputs, Program, Repetition, Stage, Work};

    fn inputs(modules: Modules) -> Inputs {
        let program = Program {
            argv: vec!["python3".into(), "c.py".into()],
            files: vec![("c.py".into(), Digest::hash("code"))],
            environment: Vec::new(),
            identity: None,
            stdin: "{}".into(),
            modules,
        };
        Inputs::new(Stage::Compress, Repetition::NONE, &Work::Execute(program))
    }

    fn loaded(code: &str, version: &str) -> Inputs {
        let files = vec![("agent/a.py".to_owned(), Digest::hash(code))];
        let packages = vec![("numpy".to_owned(), version.to_owned())];
        inputs(Modules::Loaded(Arc::new(LoadedModules { files, packages })))
    }

    #[test]
    fn loaded_modules_are_in_the_key_and_can_be_left_out_of_it() {
        let (before, now) = (loaded("1", "2.0"), loaded("2", "2.0"));
        assert_ne!(before.key(), now.key());
        assert_ne!(before.key(), loaded("1", "2.1").key());
        assert_eq!(before.declared_key(), Some(inputs(Modules::Unknown).key()));
        assert_eq!(before.declared_key(), now.declared_key());
        let changed: Vec<String> = now
            .changes_since(&before)
            .into_iter()
            .map(|change| change.part)
            .collect();
        assert_eq!(changed, ["module agent/a.py"]);
    }

    #[test]
    fn without_the_setting_no_input_is_added() {
        let plain = inputs(Modules::Ignored);
        assert_eq!(plain.declared_key(), None);
        assert!(plain.parts.iter().all(|(name, _)| name != "inputs_from"));
    }
}
