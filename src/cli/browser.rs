//! Opens a page in the user's browser.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::evaluation::variable;

/// Opens a file or an address; whether a browser was started. A browser may run for hours, so this does not wait for
/// it.
pub(crate) fn open_in_browser(address: &OsStr) -> bool {
    programs().into_iter().any(|mut program| {
        let silent = program
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        silent.spawn().is_ok()
    })
}

/// The programs to try, in order. `BROWSER` is a list of them, as in other tools.
fn programs() -> Vec<Command> {
    if let Some(list) = variable("BROWSER") {
        return std::env::split_paths(&list)
            .filter(|program| !program.as_os_str().is_empty())
            .map(Command::new)
            .collect();
    }
    if cfg!(windows) {
        // It takes the path as it is: `cmd /C start` would interpret `&` and `%` in it.
        let mut handler = Command::new("rundll32");
        handler.arg("url.dll,FileProtocolHandler");
        return vec![handler];
    }
    if cfg!(target_os = "macos") {
        return vec![Command::new("open")];
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| variable(name).is_some());
    if has_screen {
        vec![Command::new("xdg-open")]
    } else {
        Vec::new()
    }
}
