//! The memory of a group of processes.

/// Resident bytes of all processes of a group, by its leader's number; `None` where the system does not say.
#[cfg(target_os = "linux")]
pub(super) fn resident_bytes(group: u32) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let group = group.to_string();
    let pages_of = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // pid (name) state parent group …; the name may contain anything
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        (fields.nth(2) == Some(&*group)).then_some(())?;
        // of what remains, resident pages are the 19th: field 24 of the file
        fields.nth(18)?.parse::<u64>().ok()
    };
    let names = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Some(names.filter_map(|pid| pages_of(&pid)).sum::<u64>() * page)
}

/// Resident bytes of all processes of a group, by its leader's number; `None` where the system does not say.
#[cfg(not(target_os = "linux"))]
pub(super) fn resident_bytes(_: u32) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_takes_memory_and_an_unused_number_none() {
        let own = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        assert!(resident_bytes(own).unwrap() > 1 << 20);
        assert_eq!(resident_bytes(u32::MAX), Some(0));
    }
}
