//! Which file is mapped at which address, to name a file that another process truncated while it was mapped.
//!
//! A program that handles the signal of such an access reads this table in its handler. Reading takes no lock and
//! allocates nothing. The library handles no signals.

use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Maximum number of files in the table; further ones are not in it.
const N_FILES: usize = 64;

/// Maximum length of a path in the table in bytes; of a longer one the end is kept.
pub const MAX_MAPPED_PATH: usize = 512;

/// States of a row: free, being written, in use.
const FREE: u8 = 0;
const RESERVED: u8 = 1;
const IN_USE: u8 = 2;

struct Row {
    state: AtomicU8,
    start: AtomicUsize,
    end: AtomicUsize,
    n_path: AtomicUsize,
    path: [AtomicU8; MAX_MAPPED_PATH],
}

static ROWS: [Row; N_FILES] = [const {
    Row {
        state: AtomicU8::new(FREE),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        n_path: AtomicUsize::new(0),
        path: [const { AtomicU8::new(0) }; MAX_MAPPED_PATH],
    }
}; N_FILES];

/// A row of the table, which is freed when this is dropped; `None` if the table was full.
#[derive(Debug)]
pub(super) struct Registered(Option<usize>);

impl Registered {
    /// Enters the file at `path`, which is mapped as `bytes`.
    pub fn new(bytes: &[u8], path: &Path) -> Registered {
        let reserve =
            |row: &Row| row.state.compare_exchange(FREE, RESERVED, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let Some(at) = ROWS.iter().position(reserve) else { return Registered(None) };
        let (row, start) = (&ROWS[at], bytes.as_ptr().addr());
        let path = path.as_os_str().as_encoded_bytes();
        let path = &path[path.len().saturating_sub(MAX_MAPPED_PATH)..];
        row.path.iter().zip(path).for_each(|(to, byte)| to.store(*byte, Ordering::Relaxed));
        row.n_path.store(path.len(), Ordering::Relaxed);
        row.start.store(start, Ordering::Relaxed);
        row.end.store(start + bytes.len(), Ordering::Relaxed);
        row.state.store(IN_USE, Ordering::Release);
        Registered(Some(at))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(at) = self.0 {
            ROWS[at].state.store(FREE, Ordering::Release);
        }
    }
}

/// Copies the path of the file that is mapped at `address` to the start of `path` and returns its length; `None` if no
/// file in the table is mapped there. Can be called in a signal handler.
pub fn mapped_file(address: usize, path: &mut [u8; MAX_MAPPED_PATH]) -> Option<usize> {
    let holds = |row: &&Row| {
        row.state.load(Ordering::Acquire) == IN_USE
            && (row.start.load(Ordering::Relaxed)..row.end.load(Ordering::Relaxed)).contains(&address)
    };
    let row = ROWS.iter().find(holds)?;
    path.iter_mut().zip(&row.path).for_each(|(to, byte)| *to = byte.load(Ordering::Relaxed));
    Some(row.n_path.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_at(address: usize) -> Option<String> {
        let mut path = [0; MAX_MAPPED_PATH];
        mapped_file(address, &mut path).map(|n| String::from_utf8(path[..n].to_vec()).unwrap())
    }

    #[test]
    fn files_are_found_by_address_while_they_are_mapped() {
        let (one, two) = (vec![0; 100], vec![0; 100]);
        let address = |bytes: &[u8]| bytes.as_ptr().addr();
        let long = format!("{}end.kb", "folder/".repeat(100));
        let first = Registered::new(&one, Path::new("a.kb"));
        let second = Registered::new(&two, Path::new(&long));
        assert_eq!(file_at(address(&one)).as_deref(), Some("a.kb"));
        assert_eq!(file_at(address(&one) + 99).as_deref(), Some("a.kb"));
        let kept = file_at(address(&two)).unwrap();
        assert!(kept.len() == MAX_MAPPED_PATH && long.ends_with(&kept), "{kept}");
        drop(first);
        assert_eq!(file_at(address(&one)), None);
        drop(second);
        let all: Vec<Registered> = (0..N_FILES + 1).map(|_| Registered::new(&one, Path::new("b.kb"))).collect();
        assert!(all.last().is_some_and(|last| last.0.is_none()));
    }
}
