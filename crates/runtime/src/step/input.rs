//! The user's input, as clients show it and as the model gets it: reads images and skills from the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::UserText;
use protocol::{ContentItem, ServerNotification, UserInput};
use workspace::{Reader, in_time};

use crate::error::RuntimeError;
use crate::step::reading::{is_restricted, reader_of};
use driver::{Audience, ThreadHandle};
use skills::{Skills, may_mention};
use support::blocking;

/// Limit of the text in one input, in characters.
pub(crate) const MAX_INPUT_CHARS: usize = 1 << 20;

/// The largest image file that is sent.
const MAX_IMAGE_BYTES: u64 = 20 << 20;

/// Limit of all image files of one input. They are held in memory for each request.
const MAX_ALL_IMAGES_BYTES: u64 = 64 << 20;

/// Counts the characters of texts, which are limited.
pub(crate) fn input_chars(input: &[UserInput]) -> usize {
    input
        .iter()
        .map(|part| match part {
            UserInput::Text { text, .. } => text.chars().count(),
            UserInput::Image { .. }
            | UserInput::LocalImage { .. }
            | UserInput::Skill { .. }
            | UserInput::Mention { .. } => 0,
        })
        .sum()
}

/// Reads input; `cwd` is the thread's new folder, if it changes. Notifies the thread's clients of unreadable parts and
/// sends the rest.
pub(crate) async fn read_input(
    skills: &Arc<Skills>,
    audience: &dyn Audience,
    thread: &ThreadHandle,
    cwd: Option<&Path>,
    input: Vec<UserInput>,
) -> Result<UserText, RuntimeError> {
    let skills = skills.clone();
    if let Some(cwd) = cwd {
        skills.follow(thread.id(), cwd);
    }
    let has_files = input.iter().any(|part| matches!(part, UserInput::LocalImage { .. }));
    let is_needed = may_mention(&input) || has_files;
    let settings = if is_needed { Some(thread.snapshot(false).await?.settings) } else { None };
    let (cwd, id) = (cwd.map(Path::to_owned), thread.id().clone());
    let read = move || {
        // Searched here, so that the thread's actor need not.
        cwd.iter().for_each(|cwd| skills.preload(cwd));
        let place = settings.as_ref().map(|settings| cwd.unwrap_or_else(|| PathBuf::from(&settings.cwd)));
        let reader = match (&settings, &place) {
            (Some(settings), Some(place)) => reader_of(settings, place),
            _ => Reader::default(),
        };
        let mut text = user_text(input, &reader)?;
        let mut warnings = Vec::new();
        if let (Some(settings), Some(cwd)) = (settings, place) {
            let limits = is_restricted(&settings).then_some(&reader);
            let invoked = skills.invoke(&text.shown, &cwd, &settings.skills, limits);
            (text.skills, text.plugins, warnings) = (invoked.skills, invoked.plugins, invoked.warnings);
        }
        warnings.extend(skills.list_warning(&id));
        Ok::<_, RuntimeError>((text, warnings))
    };
    let (text, warnings) = blocking(read).await??;
    for warning in warnings {
        audience.notify(thread.id(), ServerNotification::ConfigWarning(warning)).await;
    }
    Ok(text)
}

/// Reads files, so it may block. An unreadable image becomes a text with the reason.
fn user_text(input: Vec<UserInput>, reader: &Reader) -> Result<UserText, RuntimeError> {
    let actual_chars = input_chars(&input);
    if actual_chars > MAX_INPUT_CHARS {
        return Err(RuntimeError::InputTooLarge { max: MAX_INPUT_CHARS, actual: actual_chars });
    }
    let mut content = Vec::new();
    let mut images = Images { reader, count: 0, bytes_left: MAX_ALL_IMAGES_BYTES, is_stuck: false };
    for part in &input {
        match part {
            UserInput::Text { text, .. } => content.push(text_item(text.clone())),
            UserInput::Image { url } => content.extend(images.remote(url)),
            UserInput::LocalImage { path } => content.extend(images.local(Path::new(path))),
            // Skills and plugins are read separately; apps are named in the text already.
            UserInput::Skill { .. } | UserInput::Mention { .. } => {}
        }
    }
    Ok(UserText { shown: input, content, ..UserText::default() })
}

/// The images of one input, with one numbering and one size budget.
struct Images<'a> {
    reader: &'a Reader,
    count: usize,
    bytes_left: u64,
    /// The file system hangs. Waiting for each further image would add up.
    is_stuck: bool,
}

impl Images<'_> {
    fn remote(&mut self, url: &str) -> Vec<ContentItem> {
        self.count += 1;
        wrapped("<image>".to_owned(), url.to_owned())
    }

    fn local(&mut self, path: &Path) -> Vec<ContentItem> {
        self.count += 1;
        match self.data_url(path) {
            Ok(url) => wrapped(format!("<image name=[Image #{}]>", self.count), url),
            Err(reason) => {
                let text = format!("[Image #{} ({}) is not shown: {reason}.]", self.count, path.display());
                vec![text_item(text)]
            }
        }
    }

    fn data_url(&mut self, path: &Path) -> Result<String, String> {
        if self.is_stuck {
            return Err("an image before it could not be read in time".to_owned());
        }
        let (reader, named) = (self.reader.clone(), path.to_owned());
        let read = in_time(path, move || reader.read_whole(&named, MAX_IMAGE_BYTES));
        self.is_stuck = read.is_err();
        let bytes = read.and_then(|read| read).map_err(|error| error.problem.to_string())?;
        let kind = media_type(&bytes).ok_or("it is not a PNG, JPEG, GIF or WebP image")?;
        self.bytes_left = self.bytes_left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            format!("the images of this message are larger than {} MiB together", MAX_ALL_IMAGES_BYTES >> 20)
        })?;
        Ok(format!("data:{kind};base64,{}", STANDARD.encode(bytes)))
    }
}

fn wrapped(open: String, image_url: String) -> Vec<ContentItem> {
    vec![text_item(open), ContentItem::InputImage { image_url }, text_item("</image>".to_owned())]
}

fn text_item(text: String) -> ContentItem {
    ContentItem::InputText { text }
}

/// By its first bytes: file names may be wrong.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;

    fn text(text: impl Into<String>) -> UserInput {
        UserInput::Text { text: text.into(), text_elements: Vec::new() }
    }

    fn local(dir: &TempDir, name: &str, bytes: &[u8]) -> UserInput {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("written");
        UserInput::LocalImage { path: path.to_str().expect("plain").to_owned() }
    }

    fn content(input: &[UserInput]) -> Value {
        let read = user_text(input.to_owned(), &Reader::default()).expect("not too large");
        assert_eq!(read.shown, input);
        serde_json::to_value(read.content).expect("plain data")
    }

    fn only_text(value: &Value) -> &str {
        assert_eq!(value.as_array().map(Vec::len), Some(1), "{value}");
        value[0]["text"].as_str().expect("a text")
    }

    #[test]
    fn each_kind_of_image_is_known_by_its_first_bytes() {
        let dir = tempfile::tempdir().expect("a directory");
        let cases: &[(&[u8], &str)] = &[
            (b"\x89PNG\r\n\x1a\nrest", "data:image/png;base64,iVBORw0KGgpyZXN0"),
            (b"\xff\xd8\xff\xe0", "data:image/jpeg;base64,/9j/4A=="),
            (b"GIF87a", "data:image/gif;base64,R0lGODdh"),
            (b"GIF89a", "data:image/gif;base64,R0lGODlh"),
            (b"RIFF\0\0\0\0WEBP", "data:image/webp;base64,UklGRgAAAABXRUJQ"),
        ];
        for (bytes, url) in cases {
            let expected = json!([
                {"type": "input_text", "text": "<image name=[Image #1]>"},
                {"type": "input_image", "image_url": url},
                {"type": "input_text", "text": "</image>"},
            ]);
            assert_eq!(content(&[local(&dir, "a.txt", bytes)]), expected);
        }
    }

    #[test]
    fn parts_stay_in_order_and_images_are_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let got = content(&[
            text("before"),
            UserInput::Image { url: "https://example.org/a.png".to_owned() },
            UserInput::Skill { name: "s".to_owned(), path: "/s/SKILL.md".to_owned() },
            local(&dir, "a", b"GIF89a"),
            UserInput::Mention { name: "m".to_owned(), path: "app://m".to_owned() },
            text("after"),
        ]);
        let expected = json!([
            {"type": "input_text", "text": "before"},
            {"type": "input_text", "text": "<image>"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "<image name=[Image #2]>"},
            {"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlh"},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "after"},
        ]);
        assert_eq!(got, expected);
    }

    #[test]
    fn an_unreadable_image_becomes_a_text() {
        let dir = tempfile::tempdir().expect("a directory");
        let huge = dir.path().join("huge");
        fs::File::create(&huge).and_then(|file| file.set_len(MAX_IMAGE_BYTES + 1)).expect("written");
        let at = |path: &Path| UserInput::LocalImage { path: path.to_str().expect("plain").to_owned() };
        let cases = [
            (local(&dir, "a.png", b"plain text"), "it is not a PNG, JPEG, GIF or WebP image"),
            (local(&dir, "empty.png", b""), "it is not a PNG, JPEG, GIF or WebP image"),
            (at(&dir.path().join("gone.png")), "No such file"),
            (at(dir.path()), "it is not a regular file"),
            (at(Path::new("/dev/zero")), "it is not a regular file"),
            (at(&huge), "it is larger than 20 MiB"),
        ];
        for (input, reason) in cases {
            let got = content(&[input]);
            let told = only_text(&got);
            assert!(told.starts_with("[Image #1 (/") && told.contains(reason), "{told}");
        }
    }

    #[test]
    fn all_images_together_have_a_limit() {
        let reader = Reader::default();
        let mut images = Images { reader: &reader, count: 0, bytes_left: 8, is_stuck: false };
        let dir = tempfile::tempdir().expect("a directory");
        let UserInput::LocalImage { path } = local(&dir, "a", b"GIF89a") else { panic!("just made") };
        assert_eq!(images.local(Path::new(&path)).len(), 3);
        assert_eq!(images.local(Path::new(&path)).len(), 1);
    }

    #[test]
    fn texts_are_counted_in_characters() {
        let cases = [
            (vec![], 0),
            (vec![text("é€😀")], 3),
            (vec![text("ab"), UserInput::Image { url: "data:,aaaa".to_owned() }, text("c")], 3),
        ];
        for (input, chars) in cases {
            assert_eq!(input_chars(&input), chars);
        }
        assert!(user_text(vec![text("é".repeat(MAX_INPUT_CHARS))], &Reader::default()).is_ok());
        let error = user_text(vec![text("a".repeat(MAX_INPUT_CHARS)), text("b")], &Reader::default())
            .expect_err("one too many");
        let (max, actual) = (MAX_INPUT_CHARS, MAX_INPUT_CHARS + 1);
        assert_eq!(error, RuntimeError::InputTooLarge { max, actual });
        assert_eq!(error.to_string(), "Input exceeds the maximum length of 1048576 characters.");
    }
}
