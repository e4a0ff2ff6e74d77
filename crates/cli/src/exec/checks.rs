//! Checks the files and folders of a command line before a turn is paid for.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Beginnings of the files that providers take as images.
const IMAGES: &[&[u8]] = &[b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM"];
/// A larger file is not sent along with a message: servers read lines of up to 32 MiB.
const MOST_INLINED: usize = 20 << 20;

pub(super) fn schema(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("--output-schema {} cannot be read", path.display()))?;
    let schema: Value = serde_json::from_str(&text)
        .with_context(|| format!("--output-schema {} is not JSON", path.display()))?;
    if !schema.is_object() {
        bail!("--output-schema {} is no JSON Schema: it holds no object", path.display());
    }
    Ok(schema)
}

/// The whole path of an image.
pub(crate) fn image(path: &Path) -> Result<PathBuf> {
    let problem = || format!("--image {} cannot be read", path.display());
    let whole = fs::canonicalize(path).with_context(problem)?;
    if !whole.is_file() {
        bail!("--image {} is not a file", path.display());
    }
    let mut begin = Vec::new();
    fs::File::open(&whole).with_context(problem)?.take(16).read_to_end(&mut begin).with_context(problem)?;
    if !IMAGES.iter().any(|image| begin.starts_with(image)) {
        bail!("--image {} is not an image: PNG, JPEG, GIF, WebP and BMP can be shown", path.display());
    }
    Ok(whole)
}

/// The image as a `data:` address, for a server that cannot read files of this machine.
pub(crate) fn image_url(path: &Path) -> Result<String> {
    use base64::Engine as _;
    let bytes = fs::read(path).context("it cannot be read")?;
    if bytes.len() > MOST_INLINED {
        bail!("it is larger than {} MiB", MOST_INLINED >> 20);
    }
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("jpg" | "jpeg") => "jpeg",
        Some("gif") => "gif",
        Some("webp") => "webp",
        _ => "png",
    };
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    Ok(format!("data:image/{kind};base64,{data}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: Result<T>, words: &str) {
        let told = result.map_or_else(|error| format!("{error:#}"), |value| format!("{value:?}"));
        assert!(told.contains(words), "{told}");
    }

    #[test]
    fn what_cannot_work_is_told_before_the_turn() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).map(|()| path)
        };
        refused(schema(&file("a.json", b"{")?), "is not JSON");
        refused(schema(&file("b.json", b"[1]")?), "holds no object");
        assert!(schema(&file("c.json", b"{\"type\": \"object\"}")?).is_ok());
        refused(image(&folder.path().join("none.png")), "none.png cannot be read");
        refused(image(folder.path()), "is not a file");
        refused(image(&file("text.png", b"hello")?), "text.png is not an image");
        assert!(image(&file("real.png", b"\x89PNG\r\n")?).is_ok());
        Ok(())
    }
}
