//! Written by `npm run pack` in `console/`. Do not edit.

use crate::ConsoleFile;

pub(crate) const FILES: &[ConsoleFile] = &[
    ConsoleFile {
        path: "/assets/app-C_V-lh8i.js",
        content_type: "text/javascript; charset=utf-8",
        gzip: include_bytes!("../bundle/app-C_V-lh8i.js.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/assets/index-k_P7Wjpp.css",
        content_type: "text/css; charset=utf-8",
        gzip: include_bytes!("../bundle/index-k_P7Wjpp.css.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/",
        content_type: "text/html; charset=utf-8",
        gzip: include_bytes!("../bundle/index.html.gz"),
        is_immutable: false,
    },
];
