# For those who have `just`; each line works without it.

# What CI runs; `just check clippy` runs one step.
check *steps:
    scripts/test {{steps}}

# Write the files that are derived from the protocol crate.
generate:
    cargo xtask generate

fmt:
    cargo fmt --all
