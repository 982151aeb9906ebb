//! Calls that are written in the text of a reply.

use serde_json::{Map, Value};

use crate::transcript::ToolCall;

/// The call of the tool `name` that is written in a reply, with the text around it: `<name><key>value</key></name>`, or
/// `<function=name><parameter=key>value</parameter></function>`.
pub(super) fn written_call(text: &str, name: &str, id: String) -> Option<(String, ToolCall)> {
    let plain = (format!("<{name}>"), format!("</{name}>"), "<", None);
    let marked = (
        format!("<function={name}>"),
        "</function>".to_owned(),
        "<parameter=",
        Some("parameter"),
    );
    [plain, marked].iter().find_map(|(open, close, key, tag)| {
        let at = text.rfind(open.as_str())?;
        let inside = text.get(at + open.len()..)?;
        let end = inside.find(close.as_str()).unwrap_or(inside.len());
        let (body, after) = inside.split_at(end);
        let arguments = parameters(body, key, *tag);
        let after = after.strip_prefix(close.as_str()).unwrap_or(after);
        let around = format!("{}{after}", text.get(..at)?).trim().to_owned();
        let call = ToolCall::new(id.clone(), name, Value::Object(arguments).to_string());
        Some((around, call))
    })
}

/// The parameters in a call, each of which begins with `open` and its key, and ends with a tag: that of its key if no other
/// is given.
fn parameters(body: &str, open: &str, tag: Option<&str>) -> Map<String, Value> {
    let mut parameters = Map::new();
    let mut rest = body;
    while let Some((_, after)) = rest.split_once(open) {
        let Some((key, after)) = after.split_once('>') else {
            break;
        };
        let close = format!("</{}>", tag.unwrap_or(key));
        let (value, tail) = after.split_once(close.as_str()).unwrap_or((after, ""));
        if is_name(key) {
            let value = value.trim_matches('\n');
            parameters.insert(key.to_owned(), value.into());
        }
        rest = tail;
    }
    parameters
}

/// Whether this can be the name of a tool or a parameter.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
