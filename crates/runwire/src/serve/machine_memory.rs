//! The memory of the machine, or of the container that the server runs in.

use std::fs;

/// Returns the memory budget of this machine: a quarter of its memory, if that is known.
pub(super) fn budget() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    // A limit of the container, in the two versions of cgroups.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.into_iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain(machine).min().map(|bytes: u64| (bytes / 4).max(MIN_BYTES))
}

/// The least that is taken, however small the machine is.
const MIN_BYTES: u64 = 64 << 20;

/// Finds the total in `/proc/meminfo`, in bytes.
fn total_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_among_the_figures_of_the_machine() {
        let text = "MemTotal:       24630272 kB\nMemFree:        17 kB\n";
        assert_eq!(total_of(text), Some(24_630_272 * 1024));
        assert_eq!(total_of("MemFree: 17 kB\n"), None);
        assert_eq!(total_of("MemTotal: much\n"), None);
    }
}
