//! Memory that was freed and that the allocator keeps.

/// Returns freed memory to the system. glibc keeps it, because a few bytes that are still used hold back all that lies below
/// them; what comes next then needs new memory. Takes some milliseconds for 100 MB. Other allocators have no such call.
pub fn return_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "a declaration; the function takes a number and is safe to call at any time")]
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // Whether there was something to return.
        let _ = malloc_trim(0);
    }
}
