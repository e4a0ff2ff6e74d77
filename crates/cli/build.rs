//! Linker options that keep the release binary and its memory small.

use std::path::PathBuf;
use std::process::Command;

/// The first glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if !is("PROFILE", "release") {
        return;
    }
    match std::env::var("TARGET").as_deref() {
        // The linker this target has by default knows the flags; others may not.
        Ok("x86_64-unknown-linux-gnu") => link_for_here(),
        Ok("x86_64-unknown-linux-musl") => link_static(),
        _ => {}
    }
}

fn link_for_here() {
    fold_functions();
    // Packs the list of addresses to fill in at the start, which is half a megabyte otherwise, in the file and in memory.
    if glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // The library for unwinding as a part of the program, which calls it for backtraces alone: one library less to load.
    println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    // Puts the functions of the start side by side: a third less memory at rest.
    add_script("start.ld");
    leave_out_unwinding();
}

/// With the linker that comes with the compiler, where it is there: the system's knows less. It brings its own C library.
fn link_static() {
    let Some(folder) = linker_folder().filter(|folder| folder.join("ld.lld").exists()) else { return };
    println!("cargo:rustc-link-arg-bins=-fuse-ld=lld");
    println!("cargo:rustc-link-arg-bins=-B{}", folder.display());
    fold_functions();
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    println!("cargo:rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    leave_out_unwinding();
}

/// A tenth of the binary says how to unwind. A release aborts at a panic, so nothing reads it.
fn leave_out_unwinding() {
    add_script("no-unwind.ld");
}

/// Functions that came out the same become one. The code that reads, writes and describes hundreds of wire types has many,
/// and nothing here compares the addresses of functions.
fn fold_functions() {
    println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
}

fn add_script(name: &str) {
    println!("cargo:rerun-if-changed={name}");
    if let Ok(folder) = std::env::var("CARGO_MANIFEST_DIR") {
        println!("cargo:rustc-link-arg-bins=-T{folder}/{name}");
    }
}

fn linker_folder() -> Option<PathBuf> {
    let (compiler, host) = (std::env::var_os("RUSTC")?, std::env::var("HOST").ok()?);
    let answer = Command::new(compiler).args(["--print", "sysroot"]).output().ok()?;
    let root = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    Some(root.join("lib/rustlib").join(host).join("bin/gcc-ld"))
}

/// The C library of the system that builds. A program built with an older one than it runs with works; not the other way.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
