//! The files of the status page, embedded from `dashboard/`.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageFile {
    /// The path in URLs.
    pub(super) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// All files of the page.
pub(super) const FILES: &[PageFile] = &[
    PageFile {
        path: "/",
        kind: "text/html; charset=utf-8",
        text: include_str!("../../../../dashboard/index.html"),
    },
    PageFile {
        path: "/page.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../../../../dashboard/page.css"),
    },
    PageFile {
        path: "/panels.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../../../dashboard/panels.js"),
    },
    PageFile {
        path: "/page.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../../../dashboard/page.js"),
    },
];

impl IntoResponse for &PageFile {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.kind)], self.text).into_response()
    }
}
