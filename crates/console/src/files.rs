//! Written by `npm run pack` in `console/`. Do not edit.

use crate::ConsoleFile;

pub(crate) const FILES: &[ConsoleFile] = &[
    ConsoleFile {
        path: "/assets/app-7wqWwZsY.js",
        content_type: "text/javascript; charset=utf-8",
        gzip: include_bytes!("../bundle/app-7wqWwZsY.js.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/assets/index-wch8DFM8.css",
        content_type: "text/css; charset=utf-8",
        gzip: include_bytes!("../bundle/index-wch8DFM8.css.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/",
        content_type: "text/html; charset=utf-8",
        gzip: include_bytes!("../bundle/index.html.gz"),
        is_immutable: false,
    },
];
