//! Whether an open terminal has more permissions than a command that starts now.

use std::path::{Path, PathBuf};

use sandbox::{Confinement, ReadAccess};

/// `None` for no sandbox.
pub(crate) fn exceeds(opened: Option<&Confinement>, now: Option<&Confinement>) -> bool {
    let Some(now) = now else { return false };
    let Some(opened) = opened else { return true };
    (opened.network && !now.network)
        || !all_beneath(&opened.writable, &now.writable)
        || reads_more(&opened.read, &now.read)
        || now.hidden.iter().any(|path| !opened.hidden.contains(path))
        || opened.unix_sockets.iter().any(|socket| !now.unix_sockets.contains(socket))
}

fn reads_more(opened: &ReadAccess, now: &ReadAccess) -> bool {
    match (opened, now) {
        (_, ReadAccess::Everything) => false,
        (ReadAccess::Everything, _) | (ReadAccess::Only(_), ReadAccess::Exactly(_)) => true,
        (
            ReadAccess::Only(opened) | ReadAccess::Exactly(opened),
            ReadAccess::Only(now) | ReadAccess::Exactly(now),
        ) => !all_beneath(opened, now),
    }
}

fn all_beneath(paths: &[PathBuf], roots: &[PathBuf]) -> bool {
    let is_beneath = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    paths.iter().all(|path| is_beneath(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(writable: &[&str], network: bool, read: ReadAccess) -> Confinement {
        let writable = writable.iter().map(PathBuf::from).collect();
        Confinement { writable, network, read, ..Confinement::read_only() }
    }

    #[test]
    fn any_additional_permission_exceeds() {
        let only = |paths: &[&str]| ReadAccess::Only(paths.iter().map(PathBuf::from).collect());
        let narrow = confinement(&["/w"], false, only(&["/w"]));
        assert!(!exceeds(None, None) && !exceeds(Some(&narrow), None));
        assert!(exceeds(None, Some(&narrow)));
        assert!(!exceeds(Some(&narrow), Some(&narrow)));
        let cases = [
            (confinement(&["/w/sub"], false, only(&["/w/sub"])), false),
            (confinement(&[], false, only(&[])), false),
            (confinement(&["/w", "/tmp"], false, only(&["/w"])), true),
            (confinement(&["/w"], true, only(&["/w"])), true),
            (confinement(&["/w"], false, only(&["/w", "/etc"])), true),
            (confinement(&["/w"], false, ReadAccess::Everything), true),
            (confinement(&["/w2"], false, only(&["/w"])), true),
        ];
        for (opened, expected) in cases {
            assert_eq!(exceeds(Some(&opened), Some(&narrow)), expected, "{opened:?}");
        }
        let hiding = Confinement { hidden: vec!["/key".into()], ..narrow.clone() };
        assert!(exceeds(Some(&narrow), Some(&hiding)) && !exceeds(Some(&hiding), Some(&narrow)));
    }
}
