use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::candidates::{Candidates, PathCandidate};
use super::ranking::{Ranking, path_matcher};
use super::*;

struct Scene {
    _dir: TempDir,
    top: PathBuf,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(dir.path()).expect("there");
        let scene = Self { _dir: dir, top };
        files.iter().for_each(|(path, content)| scene.file(path, content));
        scene
    }

    fn file(&self, path: &str, content: &str) {
        let at = self.top.join(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("made");
        fs::write(&at, content).expect("written");
    }

    fn root(&self, path: &str) -> String {
        self.top.join(path).to_string_lossy().trim_end_matches('/').to_owned()
    }
}

async fn search(query: &str, roots: &[String]) -> Vec<FileMatch> {
    FileSearch::start(query.to_owned(), roots.to_vec()).expect("started").matches().await
}

async fn paths(query: &str, scene: &Scene) -> Vec<String> {
    search(query, &[scene.root("")]).await.into_iter().map(|found| found.path).collect()
}

#[tokio::test]
async fn matches_are_ordered_by_score_and_path_and_have_indices() {
    let scene = Scene::new(&[("src/alpha.rs", ""), ("src/beta.rs", ""), ("docs/alpha.md", "")]);
    let found = search("alp", &[scene.root("")]).await;
    let rows: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.score, &one.indices[..])).collect();
    // The reference's result.
    assert_eq!(rows, [("docs/alpha.md", 84, &[5, 6, 7][..]), ("src/alpha.rs", 84, &[4, 5, 6][..])]);
    assert_eq!(found[0].root, scene.root(""));
    assert_eq!(paths("src", &scene).await, ["src", "src/alpha.rs", "src/beta.rs"]);
    assert_eq!(paths("alpha !md", &scene).await, ["src/alpha.rs"]);
    assert_eq!(paths("Alpha", &scene).await, [""; 0], "upper case counts");
    assert_eq!(paths("", &scene).await, [""; 0]);
    assert_eq!(search("alp", &[]).await, []);
    assert_eq!(search("alp", &["/nowhere/at/all".to_owned()]).await, []);
}

#[tokio::test]
async fn ignored_files_are_left_out_as_git_does() {
    let scene = Scene::new(&[
        (".gitignore", "*.log\n!keep.log\n/build\n"),
        ("x.log", ""),
        ("keep.log", ""),
        ("build/x.txt", ""),
        ("deep/build/x.txt", ""),
        ("deep/.gitignore", "x.txt\n"),
        ("deep/.ignore", "!x.txt\n"),
        ("deep/y.log", ""),
        (".hidden/x.txt", ""),
    ]);
    let outside = paths("log", &scene).await;
    assert!(outside.contains(&"x.log".to_owned()), "rules of git hold in repositories only: {outside:?}");
    scene.file(".git/info/exclude", "secret.txt\n");
    scene.file("secret.txt", "");
    assert_eq!(paths(".log", &scene).await, ["keep.log"]);
    let mut found = paths("x.txt", &scene).await;
    found.sort();
    assert_eq!(found, [".hidden/x.txt", "deep/build/x.txt"], "`.ignore` wins, and a folder's own rules");
    assert_eq!(paths("secret.txt", &scene).await, [""; 0]);
    let below = search("ylog", &[scene.root("deep")]).await;
    assert_eq!(below, [], "rules of folders above a root hold as well");
    scene.file("deep/inner/.git/HEAD", "");
    scene.file("deep/inner/z.log", "");
    assert_eq!(paths("zlog", &scene).await, ["deep/inner/z.log"], "but not in a repository inside");
}

#[tokio::test]
async fn links_are_listed_and_not_followed() {
    let outside = Scene::new(&[("treasure.txt", "")]);
    let scene = Scene::new(&[("real/treasure.rs", "")]);
    symlink(&outside.top, scene.top.join("out")).expect("linked");
    symlink(scene.top.join("real"), scene.top.join("again")).expect("linked");
    symlink("..", scene.top.join("real/up")).expect("linked");
    assert_eq!(paths("treasure", &scene).await, ["real/treasure.rs"]);
    let found = search("out", &[scene.root("")]).await;
    assert_eq!((found[0].path.as_str(), found[0].kind), ("out", MatchKind::Folder));
}

#[tokio::test]
async fn a_pipe_in_place_of_rules_stops_nothing() {
    let scene = Scene::new(&[("a/file.txt", ""), (".git/HEAD", "")]);
    for name in [".gitignore", ".ignore", "a/.gitignore"] {
        mknodat(CWD, scene.top.join(name), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    }
    let found = tokio::time::timeout(Duration::from_secs(20), paths("file", &scene)).await;
    assert_eq!(found.expect("in time"), ["a/file.txt"]);
}

#[tokio::test]
async fn a_root_inside_another_one_is_searched_once() {
    let scene = Scene::new(&[("src/alpha.rs", ""), ("alpha", "")]);
    let found = search("alpha", &[scene.root(""), scene.root("src"), scene.root("src")]).await;
    let rows: Vec<_> = found.iter().map(|one| (one.root.as_str(), one.path.as_str())).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.contains(&(&scene.root("src"), "alpha.rs")) && rows.contains(&(&scene.root(""), "alpha")));
}

async fn next(reports: &mut SearchReports) -> SearchEvent {
    let next = tokio::time::timeout(Duration::from_secs(20), reports.next());
    next.await.expect("in time").expect("a report")
}

fn updated(event: SearchEvent) -> (String, Vec<String>) {
    match event {
        SearchEvent::Updated { query, matches } => (query, matches.into_iter().map(|one| one.path).collect()),
        SearchEvent::Completed { query } => panic!("{query} is completed"),
    }
}

fn completed(query: &str) -> SearchEvent {
    SearchEvent::Completed { query: query.to_owned() }
}

#[tokio::test]
async fn a_session_follows_the_query() {
    let scene = Scene::new(&[("src/alpha.rs", ""), ("src/beta.rs", "")]);
    let (session, mut reports) = SearchSession::start(vec![scene.root("")]).expect("started");
    for (query, expected) in [
        ("", &[][..]),
        ("al", &["src/alpha.rs"]),
        ("alp", &["src/alpha.rs"]),
        ("alp", &["src/alpha.rs"]),
        ("zzz", &[]),
        ("beta", &["src/beta.rs"]),
        ("", &[]),
        ("rs", &["src/beta.rs", "src/alpha.rs"]),
    ] {
        session.set_query(query.to_owned());
        let (of, found) = updated(next(&mut reports).await);
        assert_eq!((of.as_str(), found.len()), (query, expected.len()), "{query}: {found:?}");
        assert!(expected.iter().all(|path| found.contains(&(*path).to_owned())), "{query}: {found:?}");
        assert_eq!(next(&mut reports).await, completed(query));
    }
    drop(session);
    assert_eq!(reports.next().await, None);
}

#[tokio::test]
async fn a_query_right_after_the_start_is_the_first_to_be_reported() {
    let scene = Scene::new(&[("src/alpha.rs", "")]);
    let (session, mut reports) = SearchSession::start(vec![scene.root("")]).expect("started");
    session.set_query("alpha".to_owned());
    assert_eq!(updated(next(&mut reports).await), ("alpha".to_owned(), vec!["src/alpha.rs".to_owned()]));
    assert_eq!(next(&mut reports).await, completed("alpha"));
}

#[tokio::test]
async fn an_ended_search_ends_its_walk() {
    let scene = Scene::new(&[("a", "")]);
    let before = Instant::now();
    for _ in 0..200 {
        // If walks did not end, there would be too many.
        let search = loop {
            match FileSearch::start("a".to_owned(), vec![scene.root("")]) {
                Ok(search) => break search,
                Err(SearchError::TooManyWalks(_)) if before.elapsed() < Duration::from_secs(20) => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
        };
        drop(search);
    }
    assert_eq!(SearchSession::start(Vec::new()).expect_err("none"), SearchError::NoRoots);
}

/// Paths as in a large repository.
fn many(count: usize) -> Candidates {
    let list = Candidates::default();
    let words =
        ["config", "server", "handlers", "thread", "protocol", "alpha", "tests", "render", "Main", "über"];
    let word = |at: usize| words[at % words.len()];
    for first in (0..count).step_by(250) {
        let path = |at: usize| {
            let path = format!(
                "{}/{}{}/{}/{}_{at}.rs",
                word(at / 7),
                word(at / 13),
                at / 250,
                word(at),
                word(at / 3)
            );
            PathCandidate { path: path.into(), root: 0, kind: MatchKind::File }
        };
        list.add((first..(first + 250).min(count)).map(path).collect());
    }
    list.complete();
    list
}

fn rank(ranking: &mut Ranking, list: &Candidates) -> Vec<FileMatch> {
    let mut matcher = path_matcher();
    while !ranking.advance(list, &mut matcher, Instant::now()) {}
    ranking.best(&["/r".to_owned()], &mut matcher)
}

#[test]
fn narrowing_finds_what_matching_everything_finds() {
    let list = many(20_000);
    for typed in ["chs12", "Main", "überser", "config !rs alp", "th ha", "'alpha99", "rsrs9"] {
        let mut narrowed = Ranking::new("");
        let letters: Vec<char> = typed.chars().collect();
        for end in 1..=letters.len() {
            let query: String = letters[..end].iter().collect();
            narrowed = narrowed.next_query(&query);
            if end % 2 == 0 {
                // One slice of the work, and then the next key.
                narrowed.advance(&list, &mut path_matcher(), Instant::now());
                continue;
            }
            let found = rank(&mut narrowed, &list);
            assert_eq!(found, rank(&mut Ranking::new(&query), &list), "{query}");
            assert!(found.len() <= MAX_MATCHES);
        }
    }
}

#[test]
fn matches_are_those_of_a_search_without_slices() {
    let list = many(5_000);
    let mut matcher = path_matcher();
    let pattern = nucleo_matcher::pattern::Pattern::parse(
        "alpha7",
        nucleo_matcher::pattern::CaseMatching::Smart,
        nucleo_matcher::pattern::Normalization::Smart,
    );
    let all: Vec<String> =
        list.blocks(0).iter().flat_map(|block| block.iter().map(|one| one.path.to_string())).collect();
    let mut expected = pattern.match_list(all, &mut matcher);
    expected.sort_by(|(one, score), (other, other_score)| {
        other_score.cmp(score).then(one.len().cmp(&other.len())).then(one.cmp(other))
    });
    expected.truncate(MAX_MATCHES);
    expected.sort_by(|(one, score), (other, other_score)| other_score.cmp(score).then(one.cmp(other)));
    let found = rank(&mut Ranking::new("alpha7"), &list);
    let found: Vec<(String, u32)> = found.into_iter().map(|one| (one.path, one.score)).collect();
    assert_eq!(found, expected);
    assert!(Path::new(&found[0].0).is_relative());
}

/// Compiling the rules of a file takes far longer than reading them.
#[tokio::test]
async fn rules_that_are_costly_do_not_hold_up_a_search() {
    let long = "*a".repeat(100_000);
    let many: String = (0..20_000).map(|number| format!("*a*b*{number}*\n")).collect();
    let nul = "\0".repeat(200_000);
    let files: Vec<(String, &String)> = [&long, &many, &nul]
        .into_iter()
        .enumerate()
        .flat_map(|(kind, rules)| (0..4).map(move |at| (format!("{kind}/{at}/.ignore"), rules)))
        .collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, rules)| (path.as_str(), rules.as_str())).collect();
    let scene = Scene::new(&files);
    scene.file("found", "");
    let began = Instant::now();
    assert_eq!(paths("found", &scene).await, ["found"]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
