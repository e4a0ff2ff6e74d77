//! `view_image`: shows the model an image from a file.

use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::ToolOutcome;
use protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem, ImageDetail, ItemId, ThreadItem};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::files::access::{FileAccess, StopFlag, Stoppable, absolute, failed, look_soon};
use crate::remote::{OPEN, look_there};
use crate::schema::function_json;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

/// Providers accept no larger image.
const LARGEST: u64 = 20 << 20;
/// The feature that allows sending an image in its original size.
const ORIGINAL_DETAIL: &str = "image_detail_original";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the image file, absolute or relative to the working directory.
    path: String,
    /// `original` to see every pixel, for small print and exact positions. Leave it out otherwise.
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct ViewImage;

impl BuiltinTool for ViewImage {
    const NAME: &'static str = "view_image";
    const ABOUT: &'static str = "Look at a picture in a file (PNG, JPEG, GIF or WebP, up to 20 MB). Use it when the \
        user names a picture by its path, or to check a picture you made.";
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.images)
    }

    fn spec(offer: &Offer) -> Value {
        let mut spec = function_json::<Args>(Self::NAME, Self::ABOUT);
        if !offer.has_feature(ORIGINAL_DETAIL)
            && let Some(Value::Object(properties)) = spec.pointer_mut("/parameters/properties")
        {
            properties.shift_remove("detail");
        }
        spec
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let detail = detail(&args, cx)?;
        let path = absolute(cx.cwd(), &args.path)?.display().to_string();
        let image_url = match cx.elsewhere() {
            Some(place) => {
                let script = format!("{OPEN}head -c {} <\"$real\"\nexit 0\n", LARGEST + 1);
                let most = usize::try_from(LARGEST).unwrap_or(usize::MAX).saturating_add(64 << 10);
                let looked = look_there(cx, &place, &args.path, &script, most).await?;
                encoded(&looked.rest, &looked.real)?
            }
            None => {
                let given = args.path.clone();
                look_soon(cx, &given, move |access, stop| data_url(&args.path, access, stop)).await?
            }
        };
        let item = ThreadItem::ImageView { id: ItemId::new(cx.call_id()), path };
        cx.notify(cx.bench().options().item_started(cx.thread_id(), cx.turn_id(), item.clone())).await;
        let image = FunctionCallOutputContentItem::InputImage { image_url, detail };
        let output = FunctionCallOutputBody::Content(vec![image]);
        Ok(ToolOutcome { output, item: Some(Box::new(item)), ..ToolOutcome::text("") })
    }
}

/// Ignored without the feature, so that a model that remembers the argument does not fail.
fn detail(args: &Args, cx: &ToolCx) -> Result<Option<ImageDetail>, ToolError> {
    match args.detail.as_deref() {
        None => Ok(None),
        Some("original") => {
            let honoured = cx.bench().options().features.contains(ORIGINAL_DETAIL);
            Ok(honoured.then_some(ImageDetail::Original))
        }
        Some(other) => {
            Err(ToolError::Failed(format!("detail can only be `original` or left out, not `{other}`")))
        }
    }
}

fn data_url(given: &str, access: &FileAccess, stop: &StopFlag) -> Result<String, ToolError> {
    let seen = access.open(given)?;
    if seen.metadata.len() > LARGEST {
        return Err(too_large(&seen.path));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    let mut source = Stoppable { inner: seen.file.take(LARGEST + 1), stop };
    source.read_to_end(&mut bytes).map_err(|error| failed(&seen.path, &error))?;
    encoded(&bytes, &seen.path)
}

fn too_large(path: &Path) -> ToolError {
    ToolError::Failed(format!("{} is too large: a picture may have up to 20 MB", path.display()))
}

fn encoded(bytes: &[u8], path: &Path) -> Result<String, ToolError> {
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(path));
    }
    let Some(kind) = kind(bytes) else {
        return Err(ToolError::Failed(format!("{} is not a PNG, JPEG, GIF or WebP picture", path.display())));
    };
    Ok(format!("data:image/{kind};base64,{}", STANDARD.encode(bytes)))
}

/// By its first bytes; the name does not matter.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("png"),
        [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use protocol::ServerNotification;
    use serde_json::json;

    use super::*;
    use crate::Registry;
    use crate::scene::Scene;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.png"), PNG).expect("written");
        std::fs::create_dir(folder.path().join("x")).expect("made");
        folder
    }

    #[tokio::test]
    async fn the_model_gets_the_image_and_clients_an_item() {
        let folder = folder();
        let path = folder.path().join("a.png").display().to_string();
        for given in ["a.png", "./x/../a.png", path.as_str()] {
            let scene = Scene::in_folder(folder.path());
            let outcome = scene.run("view_image", &json!({"path": given})).await;
            assert!(outcome.success);
            assert_eq!(
                serde_json::to_value(&outcome.output).expect("plain data"),
                json!([{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgpyZXN0"}])
            );
            let expected = json!({"type": "imageView", "id": "call_1", "path": path});
            assert_eq!(serde_json::to_value(&outcome.item).expect("plain data"), expected);
            let told = scene.told();
            let [ServerNotification::ItemStarted(started)] = told.as_slice() else { panic!("{told:?}") };
            assert_eq!(serde_json::to_value(&started.item).expect("plain data"), expected);
        }
    }

    #[tokio::test]
    async fn detail_counts_only_with_its_feature() {
        let folder = folder();
        for (features, expected) in [(vec![], json!(null)), (vec![ORIGINAL_DETAIL], json!("original"))] {
            let scene = Scene::in_folder(folder.path()).with_features(&features);
            let outcome = scene.run("view_image", &json!({"path": "a.png", "detail": "original"})).await;
            let output = serde_json::to_value(&outcome.output).expect("plain data");
            assert_eq!(output[0].get("detail").cloned().unwrap_or_default(), expected);
            let offer = Offer { features: scene.bench.options().features.clone(), ..Offer::default() };
            let spec = ViewImage::spec(&offer);
            assert_eq!(spec["parameters"]["properties"].get("detail").is_some(), !features.is_empty());
            assert_eq!(spec["parameters"]["required"], json!(["path"]));
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_image_is_refused_and_not_shown() {
        let folder = folder();
        let root = folder.path();
        std::fs::write(root.join("text.png"), "words").expect("written");
        let huge = std::fs::File::create(root.join("huge.png")).expect("made");
        huge.set_len(LARGEST + 1).expect("grown");
        for (arguments, expected) in [
            (json!({"path": "text.png"}), "is not a PNG, JPEG, GIF or WebP picture"),
            (json!({"path": "huge.png"}), "is too large"),
            (json!({"path": "gone.png"}), "does not exist"),
            (json!({"path": "."}), "is a folder"),
            (json!({"path": "/dev/null"}), "is not a regular file"),
            (json!({"path": "a\0.png"}), "NUL"),
            (
                json!({"path": "a.png", "detail": "low"}),
                "detail can only be `original` or left out, not `low`",
            ),
        ] {
            let scene = Scene::in_folder(root);
            let outcome = scene.run("view_image", &arguments).await;
            let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
            assert!(text.contains(expected) && !outcome.success, "{text}");
            assert_eq!((outcome.item, scene.told()), (None, Vec::new()));
        }
    }

    #[test]
    fn the_type_comes_from_the_first_bytes() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (PNG, Some("png")),
            (b"\xff\xd8\xff\xe0", Some("jpeg")),
            (b"GIF87a", Some("gif")),
            (b"GIF89a...", Some("gif")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some("webp")),
            (b"RIFF\x01\x02\x03\x04WAVE", None),
            (b"<svg", None),
            (b"", None),
        ];
        for (bytes, expected) in cases {
            assert_eq!(kind(bytes), *expected);
        }
    }

    #[test]
    fn it_is_offered_only_to_models_that_take_images() {
        for images in [true, false] {
            let offer = Offer { images, ..Offer::default() };
            let offered = Registry::builtin().specs(&offer).iter().any(|spec| spec.name == "view_image");
            assert_eq!(offered, images);
        }
    }
}
