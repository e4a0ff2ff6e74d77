//! Written by `npm run pack` in `console/`. Do not edit.

use crate::ConsoleFile;

pub(crate) const FILES: &[ConsoleFile] = &[
    ConsoleFile {
        path: "/assets/app-C1tnFN-4.js",
        content_type: "text/javascript; charset=utf-8",
        gzip: include_bytes!("../bundle/app-C1tnFN-4.js.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/assets/index-BuJraq_Z.css",
        content_type: "text/css; charset=utf-8",
        gzip: include_bytes!("../bundle/index-BuJraq_Z.css.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/",
        content_type: "text/html; charset=utf-8",
        gzip: include_bytes!("../bundle/index.html.gz"),
        is_immutable: false,
    },
];
