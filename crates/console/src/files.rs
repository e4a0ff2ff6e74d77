//! Written by `npm run pack` in `console/`. Do not edit.

use crate::ConsoleFile;

pub(crate) const FILES: &[ConsoleFile] = &[
    ConsoleFile {
        path: "/assets/app-D4T7UUvK.js",
        content_type: "text/javascript; charset=utf-8",
        gzip: include_bytes!("../bundle/app-D4T7UUvK.js.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/assets/index-D5di0suP.css",
        content_type: "text/css; charset=utf-8",
        gzip: include_bytes!("../bundle/index-D5di0suP.css.gz"),
        is_immutable: true,
    },
    ConsoleFile {
        path: "/",
        content_type: "text/html; charset=utf-8",
        gzip: include_bytes!("../bundle/index.html.gz"),
        is_immutable: false,
    },
];
