//! Owns the console: the built web page as compressed bytes, and the headers it must be served with. It knows nothing of
//! servers and of the wire. The source is in `console/`; `npm run pack` there writes `bundle/` and `files.rs`.

mod files;

/// One file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct ConsoleFile {
    /// As the browser asks for it.
    pub path: &'static str,
    pub content_type: &'static str,
    /// The content, compressed: to be sent with `Content-Encoding: gzip`.
    pub gzip: &'static [u8],
    /// Its path holds its digest, so it never changes.
    pub is_immutable: bool,
}

/// Sent with every file. The page runs its own script and nothing else, loads nothing from elsewhere, and cannot be
/// framed; where the browser knows trusted types, text cannot become markup at all.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
];

impl ConsoleFile {
    pub fn cache_control(&self) -> &'static str {
        if self.is_immutable { "public, max-age=31536000, immutable" } else { "no-store" }
    }
}

/// The file of this path, if the page has one.
pub fn find(path: &str) -> Option<&'static ConsoleFile> {
    files::FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that the page may have in all, compressed.
    const MAX_BYTES: usize = 250 * 1024;

    #[test]
    fn the_page_is_there_and_small() {
        let page = find("/").expect("a page");
        assert!(page.content_type.starts_with("text/html") && !page.is_immutable);
        assert!(page.cache_control() == "no-store");
        let bytes: usize = files::FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes}");
        assert!(files::FILES.iter().all(|file| file.gzip.starts_with(&[0x1f, 0x8b])));
    }

    #[test]
    fn all_but_the_page_are_named_by_their_digest() {
        let (named, rest): (Vec<_>, Vec<_>) = files::FILES.iter().partition(|file| file.is_immutable);
        assert_eq!(rest.len(), 1);
        assert!(named.iter().all(|file| file.path.starts_with("/assets/")), "{named:?}");
        assert!(find("/assets/").is_none() && find("/../etc/passwd").is_none());
    }
}
