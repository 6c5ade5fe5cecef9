//! Snapshots beside the programs.
//!
//! In: a program's path, a name, a text. Out: what differs from `{stem}.{name}.snap` in the program's folder.
//! `INSTA_UPDATE=always` writes them; otherwise a text that differs is put into `….snap.new`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::Failure;

/// Compares one text; the error says that it differs, and the difference is on the test's output.
pub(super) fn compare(path: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let stem = path.file_stem().ok_or("a file has a name")?.to_string_lossy();
    let folder = path.parent().ok_or("a file has a folder")?.canonicalize()?;
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let compared = catch_unwind(AssertUnwindSafe(|| {
        settings.bind(|| insta::assert_snapshot!(format!("{stem}.{name}"), text));
    }));
    compared.map_err(|_| format!("{name} differs from its snapshot (INSTA_UPDATE=always accepts it)").into())
}

/// Whether the snapshot of that name exists.
pub(super) fn exists(path: &Path, name: &str) -> bool {
    path.with_extension(format!("{name}.snap")).exists()
}
