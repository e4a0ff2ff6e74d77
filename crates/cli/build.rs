//! Linker options that keep the release binary and its memory small.

use std::process::Command;

/// The first glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // The linker this target has by default knows the flags; others may not.
    if !is("PROFILE", "release") || !is("TARGET", "x86_64-unknown-linux-gnu") {
        return;
    }
    // Folds functions that came out the same. The code that reads, writes and describes hundreds of wire types has many,
    // and nothing here compares the addresses of functions.
    println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    // Packs the list of addresses to fill in at the start, which is half a megabyte otherwise, in the file and in memory.
    if glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // The library for unwinding as a part of the program, which calls it for backtraces alone: one library less to load.
    println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    // The first puts the functions of the start side by side: a third less memory at rest. The second leaves out the
    // tables for unwinding: a tenth of the binary.
    for script in ["start.ld", "no-unwind.ld"] {
        println!("cargo:rerun-if-changed={script}");
        if let Ok(folder) = std::env::var("CARGO_MANIFEST_DIR") {
            println!("cargo:rustc-link-arg-bins=-T{folder}/{script}");
        }
    }
}

/// The C library of the system that builds. A program built with an older one than it runs with works; not the other way.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
