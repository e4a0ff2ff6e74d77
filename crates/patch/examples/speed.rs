//! Measures one patch of 1,000 hunks over 200 files: parsing, planning, committing, and the diffs.

use std::fmt::Write as _;
use std::time::{Duration, Instant};
use std::{error::Error, fs};

use oarlock_patch::{Boundary, TurnDiff, parse, plan};

const FILES: usize = 200;
const HUNKS_PER_FILE: usize = 5;
const LINES_PER_FILE: usize = 400;
const RUNS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut totals = Vec::new();
    for _ in 0..RUNS {
        let workspace = tempfile::tempdir()?;
        let root = workspace.path().canonicalize()?;
        let mut patch = String::from("*** Begin Patch\n");
        for file in 0..FILES {
            let folder = format!("src/part{}", file % 20);
            fs::create_dir_all(root.join(&folder))?;
            let text: String = (0..LINES_PER_FILE).fold(String::new(), |mut text, line| {
                // Writing to a string cannot fail, here and below.
                let _ = writeln!(text, "    let value_{line} = compute({file}, {line});");
                text
            });
            fs::write(root.join(format!("{folder}/file{file}.rs")), text)?;
            for hunk in 0..HUNKS_PER_FILE {
                let at = (hunk + 1) * LINES_PER_FILE / (HUNKS_PER_FILE + 1);
                let _ = write!(
                    patch,
                    "*** Update File: {folder}/file{file}.rs\n@@\n     let value_{} = compute({file}, {});\n\
                     -    let value_{at} = compute({file}, {at});\n+    let value_{at} = changed({file}, {hunk});\n",
                    at - 1,
                    at - 1
                );
            }
        }
        patch.push_str("*** End Patch\n");

        let start = Instant::now();
        let parsed = parse(&patch)?;
        let plan = plan(&parsed, &root)?;
        let planned = start.elapsed();
        let changes = plan.changes();
        let shown = start.elapsed();
        let applied = plan.commit(&Boundary::roots(vec![root.clone()]))?;
        let committed = start.elapsed();
        let mut diff = TurnDiff::new(Some(root));
        diff.note(&applied);
        let bytes = diff.unified().map_or(0, |diff| diff.len());
        let total = start.elapsed();
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        println!(
            "plan {:6.1}  changes {:6.1}  commit {:6.1}  turn diff {:6.1}  total {:6.1} ms  ({} files, {bytes} bytes of diff)",
            ms(planned),
            ms(shown.saturating_sub(planned)),
            ms(committed.saturating_sub(shown)),
            ms(total.saturating_sub(committed)),
            ms(total),
            changes.len()
        );
        totals.push(total);
    }
    totals.sort();
    println!("median {:.1} ms", totals[RUNS / 2].as_secs_f64() * 1000.0);
    Ok(())
}
