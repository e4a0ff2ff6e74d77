//! Trusting projects and accepting their reviewed settings.

use std::path::Path;

use crate::{ConfigError, LoadRequest, Loader, Review, edit};

impl Loader {
    /// The project settings of a folder that exceed the user's own, as if the project were trusted.
    pub fn to_review(&self, folder: &Path) -> Result<Vec<Review>, ConfigError> {
        let request = LoadRequest { cwd: Some(folder.to_owned()), ..LoadRequest::default() };
        let root = self.load(&request)?.project_docs.project_root.unwrap_or_else(|| folder.to_owned());
        let projects = serde_json::json!({ root.to_string_lossy(): { "trust_level": "trusted" } });
        let trusted = [("projects".to_owned(), projects)].into();
        self.load(&LoadRequest { config: Some(&trusted), ..request }).map(|config| config.reviews)
    }

    /// Trusts the projects of these reviews, and records exactly what was reviewed.
    pub fn accept(&self, reviews: &[Review]) -> Result<(), ConfigError> {
        edit::edit(self.home(), |document| {
            reviews.iter().try_for_each(|review| edit::record(document, review))
        })
    }

    /// Trusts a project whose settings need no review.
    pub fn trust(&self, root: &Path) -> Result<(), ConfigError> {
        edit::edit(self.home(), |document| edit::trust(document, root))
    }
}
