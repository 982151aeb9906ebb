//! Reads the modules and packages that a program lists in its answer when it is asked for them.

use serde_json::{Map, Value};

use crate::compress::fault::CompressFault;

/// The most modules, and the most packages, that one answer may list.
const MOST: usize = 4096;
/// The longest path or name, in bytes.
const LONGEST: usize = 4096;

/// The modules and packages that a program says it has loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModules {
    /// Paths, absolute or relative to the folder that the program was started in; at least one.
    pub modules: Vec<String>,
    pub packages: Vec<ListedPackage>,
}

/// A package that a program loaded something of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedPackage {
    pub name: String,
    pub version: String,
    /// The file that says the version. It shows whether that version is still installed, without a start of the program.
    pub path: String,
}

/// Takes the lists out of an answer. Returns them and the rest, which has no paths of this machine.
///
/// # Errors
/// The answer is no JSON object, lists no module or too many, or lists them in another form.
pub fn split_modules(stdout: &[u8]) -> Result<(ListedModules, Vec<u8>), CompressFault> {
    let mut object = super::parse_object(stdout)?;
    let modules = take_list(&mut object, "modules", EXPECTED_MODULES)?.ok_or_else(unlisted)?;
    let modules = modules
        .iter()
        .map(|module| text_of(module, "path", EXPECTED_MODULES))
        .collect::<Result<Vec<_>, _>>()?;
    if modules.is_empty() {
        return Err(unlisted());
    }
    let packages = take_list(&mut object, "packages", EXPECTED_PACKAGES)?.ok_or_else(unlisted)?;
    let packages = packages
        .iter()
        .map(read_package)
        .collect::<Result<_, _>>()?;
    Ok((
        ListedModules { modules, packages },
        Value::Object(object).to_string().into_bytes(),
    ))
}

const EXPECTED_MODULES: &str = "\"modules\":[{\"path\":\"…\"}, …]";
const EXPECTED_PACKAGES: &str =
    "\"packages\":[{\"name\":\"…\",\"version\":\"…\",\"path\":\"…\"}, …]";

fn unlisted() -> CompressFault {
    CompressFault::Modules(format!(
        "the answer does not list what the program has loaded: inputs_from = \"modules\" needs {EXPECTED_MODULES} (the \
         program's own file is one) and {EXPECTED_PACKAGES}, as serve() of compeval_method sends them; or list the files \
         under `inputs`, without `inputs_from`"
    ))
}

/// Takes out the list under `name`; `None` if there is none.
fn take_list(
    object: &mut Map<String, Value>,
    name: &str,
    expected: &'static str,
) -> Result<Option<Vec<Value>>, CompressFault> {
    match super::take(object, name) {
        None => Ok(None),
        Some(Value::Array(items)) if items.len() <= MOST => Ok(Some(items)),
        Some(Value::Array(items)) => Err(CompressFault::Modules(format!(
            "the answer lists {} `{name}`, and at most {MOST} are taken: list the files under `inputs`, without `inputs_from`",
            items.len()
        ))),
        Some(_) => Err(CompressFault::contract(
            format!("`{name}` is no list"),
            expected,
        )),
    }
}

fn text_of(item: &Value, key: &str, expected: &'static str) -> Result<String, CompressFault> {
    let text = item
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty() && text.len() <= LONGEST);
    text.map(str::to_owned).ok_or_else(|| {
        CompressFault::contract(
            format!("an item of the lists of modules has no `{key}`"),
            expected,
        )
    })
}

fn read_package(item: &Value) -> Result<ListedPackage, CompressFault> {
    Ok(ListedPackage {
        name: text_of(item, "name", EXPECTED_PACKAGES)?,
        version: text_of(item, "version", EXPECTED_PACKAGES)?,
        path: text_of(item, "path", EXPECTED_PACKAGES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(stdout: &str) -> String {
        split_modules(stdout.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn lists_are_taken_out_of_the_answer() {
        let stdout = r#"{"summary":"s","modules":[{"path":"/p/a.py"},{"path":"b.py","digest":"x"}],
            "packages":[{"name":"numpy","version":"2.0","path":"/v/METADATA"}]}"#;
        let (listed, rest) = split_modules(stdout.as_bytes()).unwrap();
        assert_eq!(listed.modules, ["/p/a.py", "b.py"]);
        assert_eq!(listed.packages[0].version, "2.0");
        assert_eq!(rest, br#"{"summary":"s"}"#);
    }

    #[test]
    fn a_list_that_is_missing_too_long_or_of_another_form_is_an_error() {
        assert!(fault(r#"{"summary":"s"}"#).contains("does not list what the program has loaded"));
        assert!(fault(r#"{"summary":"s","modules":[],"packages":[]}"#).contains("does not list"));
        assert!(fault(r#"{"summary":"s","modules":[{"path":"a"}]}"#).contains("does not list"));
        assert!(fault(r#"{"modules":["a"],"packages":[]}"#).contains("has no `path`"));
        assert!(fault(r#"{"modules":{},"packages":[]}"#).contains("`modules` is no list"));
        let many = vec![serde_json::json!({"path": "a"}); MOST + 1];
        let many = serde_json::json!({"modules": many, "packages": []}).to_string();
        assert!(fault(&many).contains("lists 4097 `modules`"));
    }
}
