//! Tasks, streams, usage and placements.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_store::{
    NewTask, PlacementRow, StoredStream, TaskChange, TaskCreation, TaskFilter, TaskOrder, TaskRow, TaskState,
    TaskStore, UsageFilter, UsageGroup, UsageRow, parse_task_cursor,
};
use serde_json::{Value, json};

use crate::databases::on_each;
use crate::{create, new_task, owned, plain, proposed, replica, thread};

async fn names(store: &TaskStore, filter: TaskFilter) -> Vec<String> {
    let page = store.list_tasks(TaskFilter { limit: 50, ..filter }).await.expect("a page");
    page.tasks.into_iter().map(|task| task.id.as_str().to_owned()).collect()
}

#[tokio::test]
async fn creating_a_task_twice_joins_the_first() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let mut other = new_task("t", None);
        other.settings = json!({"model": "other"});
        let TaskCreation::Existed(found) = store.create_task(other).await.expect("an answer") else {
            panic!("it was made twice")
        };
        assert_eq!((found.settings, found.state), (json!({"model": "m"}), TaskState::Creating));
    })
    .await;
}

#[tokio::test]
async fn a_change_touches_what_it_names_and_nothing_else() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let change = TaskChange { name: Some(Some("fix it".to_owned())), ..TaskChange::default() };
        store.update_task(&thread("t"), change).await.expect("a change");
        let change = TaskChange {
            state: Some(TaskState::Idle),
            preview: Some("hi".to_owned()),
            ..TaskChange::default()
        };
        let row = store.update_task(&thread("t"), change).await.expect("a change");
        assert_eq!(
            (row.name.as_deref(), row.state, row.preview.as_str()),
            (Some("fix it"), TaskState::Idle, "hi")
        );
        assert_eq!(row.labels["team"], "blue");
        let cleared = TaskChange { name: Some(None), ..TaskChange::default() };
        assert_eq!(store.update_task(&thread("t"), cleared).await.expect("a change").name, None);
        assert!(store.update_task(&thread("none"), TaskChange::default()).await.is_err());
    })
    .await;
}

/// A runtime that has been opened and a client that resumes the thread change different parts of them.
#[tokio::test]
async fn changes_of_settings_at_the_same_time_all_stay() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let changes = (0..20).map(|number| {
            let store = store.clone();
            let change = move |settings: &mut Value| settings[format!("part{number}")] = json!(number);
            tokio::spawn(async move { store.change_settings(&thread("t"), change).await.expect("a change") })
        });
        for change in changes.collect::<Vec<_>>() {
            change.await.expect("it ends");
        }
        let row = store.task(&thread("t")).await.expect("an answer").expect("a row");
        let parts: Vec<_> = (0..20).map(|number| row.settings[format!("part{number}")].clone()).collect();
        assert_eq!(parts, (0..20).map(|number| json!(number)).collect::<Vec<_>>());
        let same = store.change_settings(&thread("t"), |_| {}).await.expect("an answer");
        assert_eq!(same, row, "looking is no change");
        assert!(store.change_settings(&thread("none"), |_| {}).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn tasks_are_found_by_their_labels() {
    on_each(|store| async move {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (id, given) in [
            ("a", labels(&[("team", "blue"), ("order", "A-17")])),
            ("b", labels(&[("team", "Blue")])),
            ("c", labels(&[("note", "\"team\":\"blue\"")])),
            ("d", BTreeMap::new()),
        ] {
            let new =
                NewTask { labels: given, agent_digest: Some(format!("sha256:{id}")), ..new_task(id, None) };
            store.create_task(new).await.expect("made");
        }
        for (asked, found) in [
            (labels(&[]), 4),
            (labels(&[("team", "blue")]), 1),
            (labels(&[("team", "blue"), ("order", "A-17")]), 1),
            (labels(&[("team", "blue"), ("order", "A-18")]), 0),
            (labels(&[("team", "blu")]), 0),
            (labels(&[("note", "\"team\":\"blue\"")]), 1),
        ] {
            let filter = TaskFilter { labels: asked.clone(), ..TaskFilter::default() };
            assert_eq!(names(&store, filter).await.len(), found, "{asked:?}");
        }
        let row = store.task(&thread("a")).await.expect("read").expect("it is there");
        assert_eq!(row.agent_digest.as_deref(), Some("sha256:a"));
    })
    .await;
}

#[tokio::test]
async fn tasks_are_listed_and_found_by_what_is_asked() {
    on_each(|store| async move {
        for id in ["a", "b", "c"] {
            create(&store, id, None).await;
        }
        create(&store, "a-child", Some("a")).await;
        let set = |change| TaskChange { name: Some(Some(change)), ..TaskChange::default() };
        store.update_task(&thread("b"), set("100% Done_".to_owned())).await.expect("a change");
        assert_eq!(names(&store, TaskFilter::default()).await.len(), 3, "children are under their parents");
        let under = TaskFilter { root: Some(thread("a")), ..TaskFilter::default() };
        assert_eq!(names(&store, under).await.len(), 2);
        for (search, found) in [("0% dONE", 1), ("done_", 1), ("_one", 0), ("%", 1), ("x", 0)] {
            let filter = TaskFilter { search: Some(search.to_owned()), ..TaskFilter::default() };
            assert_eq!(names(&store, filter).await.len(), found, "{search}");
        }
        let archive = TaskChange { is_archived: Some(true), ..TaskChange::default() };
        store.update_task(&thread("c"), archive).await.expect("a change");
        assert_eq!(names(&store, TaskFilter { is_archived: true, ..TaskFilter::default() }).await, ["c"]);
    })
    .await;
}

#[tokio::test]
async fn pages_of_tasks_leave_none_out() {
    on_each(|store| async move {
        for number in 0..25 {
            create(&store, &format!("t{number:02}"), None).await;
        }
        // The first is the last that changed.
        let name = TaskChange { name: Some(Some("changed".to_owned())), ..TaskChange::default() };
        store.update_task(&thread("t00"), name).await.expect("a change");
        for (order, oldest_first) in [
            (TaskOrder::Updated, false),
            (TaskOrder::Updated, true),
            (TaskOrder::Created, false),
            (TaskOrder::Created, true),
        ] {
            let mut filter = TaskFilter { limit: 7, order, oldest_first, ..TaskFilter::default() };
            let mut found = Vec::new();
            loop {
                let page = store.list_tasks(filter.clone()).await.expect("a page");
                found.extend(page.tasks);
                let Some(cursor) = page.cursor else { break };
                assert!(parse_task_cursor(&cursor).is_some() && parse_task_cursor("garbage").is_none());
                filter.cursor = Some(cursor);
            }
            let time = |task: &TaskRow| match order {
                TaskOrder::Updated => task.updated_at_ms,
                TaskOrder::Created => task.created_at_ms,
            };
            let mut sorted = found.clone();
            sorted.sort_by_key(|task| (time(task), task.id.as_str().to_owned()));
            if !oldest_first {
                sorted.reverse();
            }
            assert_eq!(found, sorted, "{order:?} {oldest_first}");
            let ids: BTreeSet<_> = found.iter().map(|task| task.id.as_str().to_owned()).collect();
            assert_eq!((found.len(), ids.len()), (25, 25));
        }
    })
    .await;
}

#[tokio::test]
async fn deleting_a_task_removes_what_hangs_on_it() {
    on_each(|store| async move {
        let lease = owned(&store, "t", &replica("a", 1)).await;
        create(&store, "child", Some("t")).await;
        store.append(&lease, &thread("t"), 0, vec![plain("one"), proposed(1, "op")]).await.expect("a commit");
        assert!(store.delete_task(&thread("t")).await.expect("an answer"));
        assert!(store.task(&thread("child")).await.expect("an answer").is_none());
        assert!(store.records(&thread("t"), 0, 10).await.expect("records").is_empty());
        assert!(store.operation(&protocol::OperationId::new("op")).await.expect("an answer").is_none());
        assert!(!store.delete_task(&thread("t")).await.expect("an answer"));
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_found_by_its_segment_and_request() {
    on_each(|store| async move {
        create(&store, "t", None).await;
        let events: Vec<u8> = (0..=255).collect();
        let stream = StoredStream {
            thread: thread("t"),
            segment_id: "u:1".to_owned(),
            request_digest: "sha256:aa".to_owned(),
            events,
        };
        store.put_stream(stream.clone()).await.expect("a commit");
        store.put_stream(StoredStream { events: vec![1], ..stream.clone() }).await.expect("no effect");
        assert_eq!(store.stream("u:1", "sha256:aa").await.expect("an answer"), Some(stream));
        assert_eq!(store.stream("u:1", "sha256:bb").await.expect("an answer"), None);
        store.forget_streams(&thread("t")).await.expect("a commit");
        assert_eq!(store.stream("u:1", "sha256:aa").await.expect("an answer"), None);
    })
    .await;
}

fn usage(request: &str, root: &str, model: &str, at_ms: i64) -> UsageRow {
    UsageRow {
        request_id: request.to_owned(),
        thread: thread(root),
        root: thread(root),
        at_ms,
        agent_path: vec!["root".to_owned()],
        purpose: "turn".to_owned(),
        provider: "p".to_owned(),
        model: model.to_owned(),
        input_tokens: 10,
        cached_tokens: 4,
        output_tokens: 2,
        cost_micros: 7,
        duration_ms: 5,
        outcome: "completed".to_owned(),
    }
}

#[tokio::test]
async fn usage_is_counted_once_per_request_and_summed() {
    on_each(|store| async move {
        let day = 86_400_000;
        for row in [
            usage("1", "t", "m", 5),
            usage("1", "t", "m", 5),
            usage("2", "t", "n", day + 5),
            usage("3", "s", "m", day + 6),
        ] {
            store.add_usage(row).await.expect("a commit");
        }
        let sum = |filter: UsageFilter| {
            let store = store.clone();
            async move {
                let totals = store.usage_totals(filter).await.expect("sums");
                totals
                    .into_iter()
                    .map(|total| (total.key, total.requests, total.cost_micros))
                    .collect::<Vec<_>>()
            }
        };
        let by = |group| UsageFilter { group, ..UsageFilter::default() };
        assert_eq!(sum(by(UsageGroup::All)).await, [(String::new(), 3, 21)]);
        assert_eq!(sum(by(UsageGroup::Model)).await, [("m".to_owned(), 2, 14), ("n".to_owned(), 1, 7)]);
        assert_eq!(sum(by(UsageGroup::Day)).await, [("0".to_owned(), 1, 7), (day.to_string(), 2, 14)]);
        assert_eq!(sum(by(UsageGroup::Minute)).await, [("0".to_owned(), 1, 7), (day.to_string(), 2, 14)]);
        let filter = UsageFilter { root: Some(thread("t")), since_ms: Some(day), ..by(UsageGroup::Task) };
        assert_eq!(sum(filter).await, [("t".to_owned(), 1, 7)]);
    })
    .await;
}

#[tokio::test]
async fn placements_without_a_task_are_found() {
    on_each(|store| async move {
        let placement = |id: &str, used_at_ms| PlacementRow {
            id: id.to_owned(),
            backend: "local".to_owned(),
            site: "here".to_owned(),
            state: "ready".to_owned(),
            reference: json!({"version": 1}),
            snapshot: None,
            created_at_ms: 1,
            used_at_ms,
        };
        for (id, used) in [("used", 1), ("old", 2), ("new", 90)] {
            store.put_placement(placement(id, used)).await.expect("a commit");
        }
        let mut task = new_task("t", None);
        task.placement_id = Some("used".to_owned());
        store.create_task(task).await.expect("a task");
        let unused = store.unused_placements(50).await.expect("placements");
        assert_eq!(unused.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["old"]);
        assert!(store.delete_placement("old").await.expect("an answer"));
        assert_eq!(store.placement("old").await.expect("an answer"), None);
        assert_eq!(store.list_placements().await.expect("placements").len(), 2);
    })
    .await;
}

#[tokio::test]
async fn tasks_are_found_by_their_placement_and_by_their_rest() {
    on_each(|store| async move {
        for (id, placement, state, is_archived) in [
            ("a", Some("p"), TaskState::Idle, false),
            ("b", Some("p"), TaskState::Running, true),
            ("c", None, TaskState::Idle, true),
        ] {
            create(&store, id, None).await;
            let change = TaskChange {
                placement_id: Some(placement.map(str::to_owned)),
                state: Some(state),
                is_archived: Some(is_archived),
                ..TaskChange::default()
            };
            store.update_task(&thread(id), change).await.expect("a change");
        }
        create(&store, "child", Some("a")).await;
        let placed = store.tasks_by_placement().await.expect("tasks");
        assert_eq!(placed, BTreeMap::from([("p".to_owned(), vec![thread("a"), thread("b")])]));
        assert_eq!(store.idle_tasks(i64::MAX).await.expect("tasks"), [thread("a"), thread("c")]);
        assert_eq!(store.idle_tasks(0).await.expect("tasks"), []);
    })
    .await;
}
