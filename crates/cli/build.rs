//! Folds functions that came out the same. The code that reads, writes and describes hundreds of wire types has many,
//! and nothing here compares the addresses of functions.

fn main() {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // The linker this target has by default knows the flag; others may not.
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
