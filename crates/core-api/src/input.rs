//! The user's input of one turn.

use std::path::Path;

use runtime::protocol::UserInput;

/// The words, images and skills of one message, in the order they were added.
///
/// A text is an input already; more parts are added one by one:
///
/// ```
/// use oarlock_core_api::TurnInput;
///
/// let input = TurnInput::from("What is in this picture?").image("diagram.png");
/// assert_eq!(input.parts().len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnInput(Vec<UserInput>);

impl TurnInput {
    /// Adds a text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(UserInput::Text { text: text.into(), text_elements: Vec::new() })
    }

    /// Adds an image file: PNG, JPEG, GIF or WebP. One that cannot be read is told to the model in words.
    #[must_use]
    pub fn image(self, path: impl AsRef<Path>) -> Self {
        self.part(UserInput::LocalImage { path: path.as_ref().to_string_lossy().into_owned() })
    }

    /// Adds an image by its web address or data URL.
    #[must_use]
    pub fn image_url(self, url: impl Into<String>) -> Self {
        self.part(UserInput::Image { url: url.into() })
    }

    /// Asks for a skill; `path` is its `SKILL.md`.
    #[must_use]
    pub fn skill(self, name: impl Into<String>, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_string_lossy().into_owned();
        self.part(UserInput::Skill { path, name: name.into() })
    }

    /// Adds a part as the protocol has it.
    #[must_use]
    pub fn part(mut self, part: UserInput) -> Self {
        self.0.push(part);
        self
    }

    /// The parts added so far.
    pub fn parts(&self) -> &[UserInput] {
        &self.0
    }

    pub(crate) fn into_parts(self) -> Vec<UserInput> {
        self.0
    }
}

impl From<&str> for TurnInput {
    fn from(text: &str) -> Self {
        Self::default().text(text)
    }
}

impl From<String> for TurnInput {
    fn from(text: String) -> Self {
        Self::default().text(text)
    }
}

impl From<Vec<UserInput>> for TurnInput {
    fn from(parts: Vec<UserInput>) -> Self {
        Self(parts)
    }
}
