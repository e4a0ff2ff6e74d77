//! Saves images from the provider as files.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::ResponseItem;
use support::blocking;
use workspace::{FileError, READ_LIMIT, StepCount, within_steps};

/// The folder for the images of one thread.
#[derive(Debug, Clone)]
pub(crate) struct ImageFolder(PathBuf);

/// In our state folder, or where the user of commands can read them.
pub fn images_folder(state: &Path, thread_id: &str) -> PathBuf {
    let all = match sandbox::has_command_user() {
        true => std::env::temp_dir().join("oarlock-images"),
        false => state.join("generated_images"),
    };
    all.join(thread_id)
}

impl ImageFolder {
    pub(crate) fn new(state: &Path, thread_id: &str) -> Self {
        Self(images_folder(state, thread_id))
    }

    /// Saves the image in an item. `None` for other items, and if saving fails, which is logged.
    pub(crate) async fn save(&self, item: &ResponseItem) -> Option<String> {
        let ResponseItem::ImageGenerationCall { id, result, .. } = item else { return None };
        if result.is_empty() {
            return None;
        }
        let path = self.0.join(format!("{}.png", file_name(id)));
        let (target, encoded) = (path.clone(), result.clone());
        let save = move || {
            let own = target.clone();
            let write = move |steps: &StepCount| {
                sandbox::as_command_user(|| write(&own, &encoded, steps))
                    .unwrap_or_else(|error| Err(error.into()))
            };
            within_steps(&target, READ_LIMIT, write)
                .unwrap_or_else(|error| Err(FileError::unanswered(&target, &error)))
        };
        match blocking(save).await.ok()? {
            Ok(()) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "an image was not saved");
                None
            }
        }
    }
}

fn write(path: &Path, encoded: &str, steps: &StepCount) -> Result<(), FileError> {
    let content = STANDARD.decode(encoded.trim()).map_err(|error| FileError::Io(error.to_string()))?;
    if let Some(folder) = path.parent() {
        DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    }
    workspace::write_file(path, &content, steps)
}

/// A safe file name: the id comes from the provider and may contain anything.
fn file_name(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let name: String = id.chars().take(128).map(plain).collect();
    if name.is_empty() { "image".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_escapes_the_folder() {
        for (id, expected) in
            [("ig_1-a", "ig_1-a"), ("../../etc/passwd", "______etc_passwd"), ("", "image"), (".", "_")]
        {
            assert_eq!(file_name(id), expected);
        }
        assert_eq!(file_name(&"x".repeat(5_000)).len(), 128);
    }
}
