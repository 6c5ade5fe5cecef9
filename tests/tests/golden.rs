//! One test for every `.coll` file under `golden/accept`, `golden/reject`, `stdlib` and `examples`.

use std::fmt;
use std::path::Path;

use rcc_tests::golden;

/// A failure that the harness prints as it is.
struct Told(golden::Failure);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.0.0)
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl std::error::Error for Told {}

fn accept(path: &Path) -> datatest_stable::Result<()> {
    golden::accept(path).map_err(|failure| Told(failure).into())
}

fn reject(path: &Path) -> datatest_stable::Result<()> {
    golden::reject(path).map_err(|failure| Told(failure).into())
}

datatest_stable::harness! {
    { test = accept, root = "golden/accept", pattern = r"\.coll$" },
    { test = reject, root = "golden/reject", pattern = r"\.coll$" },
    { test = accept, root = "../stdlib", pattern = r"/.*\.coll$" },
    { test = accept, root = "../examples", pattern = r"\.coll$" },
}
