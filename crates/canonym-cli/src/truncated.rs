//! The end of the program when a mapped file gets shorter: SIGBUS, with a message that names the file.
//!
//! Reading behind the new end of a mapped file raises the signal; nothing can be read in its place, so the program ends.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use canonym_core::artifact::{MAX_MAPPED_PATH, mapped_file};

/// What the signal did before; on some systems the standard library reports stack overflows with it.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Behind the path in the message.
const MESSAGE: &[u8] = b": the file was truncated while it was in use, or its disk failed\n\
    hint: replace files with `kb build` or `index build`, which rename the new file into place; then run this again\n";

/// The exit status of errors.
const STATUS: c_int = 1;

/// Starts handling the signal.
pub fn watch() -> std::io::Result<()> {
    // SAFETY: `sigaction` is a plain struct, for which zeros are valid; both pointers are valid for the call, and the
    // handler only calls functions that are safe in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = handle;
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        // Known before the handler can run.
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        BEFORE.get_or_init(|| before);
        if libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Ends the program with a message if the address is in a mapped file; otherwise the access is repeated with what the
/// signal did before.
extern "C" fn handle(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: The system passes a valid `info`, whose address is set where an access raised this signal.
    let (is_access, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr()) };
    let mut path = [0; MAX_MAPPED_PATH];
    let Some(n_bytes) = Some(address).filter(|_| is_access).and_then(|address| mapped_file(address, &mut path)) else {
        if let Some(before) = BEFORE.get() {
            // SAFETY: `before` came from `sigaction`, and `raise` is allowed in a signal handler.
            unsafe {
                libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut());
                // A signal that was sent does not come again by itself.
                if !is_access {
                    libc::raise(libc::SIGBUS);
                }
            }
        }
        return;
    };
    [b"error: ", &path[..n_bytes], MESSAGE].into_iter().for_each(write);
    // SAFETY: Allowed in a signal handler; runs no destructors.
    unsafe { libc::_exit(STATUS) };
}

/// Writes to standard error.
fn write(bytes: &[u8]) {
    // SAFETY: Pointer and length are those of a slice; `write` is allowed in a signal handler.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
