//! `thread/turns/list` and `thread/items/list`.

use protocol::{
    SortDirection, ThreadId, ThreadItem, ThreadItemEntry, ThreadItemsListParams, ThreadItemsListResponse,
    ThreadReadParams, ThreadTurnsListParams, ThreadTurnsListResponse, Turn, TurnItemsView,
};

use crate::error::RuntimeError;
use crate::runtime::Runtime;

const DEFAULT_LIMIT: u32 = 25;
const MAX_LIMIT: u32 = 100;

impl Runtime {
    pub async fn list_turns(
        &self,
        params: ThreadTurnsListParams,
    ) -> Result<ThreadTurnsListResponse, RuntimeError> {
        turns_page(&self.turns_of(&params.thread_id).await?, &params)
    }

    pub async fn list_items(
        &self,
        params: ThreadItemsListParams,
    ) -> Result<ThreadItemsListResponse, RuntimeError> {
        items_page(&self.turns_of(&params.thread_id).await?, &params)
    }

    /// Oldest first. An empty thread has none.
    async fn turns_of(&self, thread_id: &ThreadId) -> Result<Vec<Turn>, RuntimeError> {
        let params =
            ThreadReadParams { thread_id: thread_id.clone(), include_turns: true, exclude_turns: false };
        match self.read_thread(params).await {
            Ok(thread) => Ok(thread.turns),
            Err(RuntimeError::NothingSaid(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// The requested page of these turns, which are sorted oldest first.
pub fn turns_page(
    turns: &[Turn],
    params: &ThreadTurnsListParams,
) -> Result<ThreadTurnsListResponse, RuntimeError> {
    let marks: Vec<String> = turns.iter().map(|turn| turn.id.to_string()).collect();
    let request = PageRequest {
        cursor: params.cursor.as_deref(),
        limit: params.limit,
        direction: params.sort_direction.unwrap_or(SortDirection::Desc),
    };
    let page = page(&marks, &request)?;
    let view = params.items_view.as_ref().unwrap_or(&TurnItemsView::Summary);
    let data = page.places.iter().map(|at| seen_as(&turns[*at], view)).collect();
    Ok(ThreadTurnsListResponse { data, next_cursor: page.next, backwards_cursor: page.backwards })
}

/// The requested page of these turns' items, which are sorted oldest first.
pub fn items_page(
    turns: &[Turn],
    params: &ThreadItemsListParams,
) -> Result<ThreadItemsListResponse, RuntimeError> {
    let is_wanted = |turn: &&Turn| params.turn_id.as_ref().is_none_or(|wanted| turn.id == *wanted);
    if let Some(wanted) = &params.turn_id
        && !turns.iter().any(|turn| is_wanted(&turn))
    {
        let problem = format!("names no turn of this thread: {wanted}");
        return Err(RuntimeError::Field { field: "turnId", problem });
    }
    let mut marks = Vec::new();
    let mut entries: Vec<(&Turn, &ThreadItem)> = Vec::new();
    for turn in turns.iter().filter(is_wanted) {
        for (at, item) in turn.items.iter().enumerate() {
            // By position, since an id may occur twice.
            marks.push(format!("{}/{at}", turn.id));
            entries.push((turn, item));
        }
    }
    let request = PageRequest {
        cursor: params.cursor.as_deref(),
        limit: params.limit,
        direction: params.sort_direction.unwrap_or(SortDirection::Desc),
    };
    let page = page(&marks, &request)?;
    let shown = |at: &usize| {
        let (turn, item) = entries[*at];
        ThreadItemEntry { turn_id: turn.id.clone(), item: item.clone() }
    };
    let data = page.places.iter().map(shown).collect();
    Ok(ThreadItemsListResponse { data, next_cursor: page.next, backwards_cursor: page.backwards })
}

fn seen_as(turn: &Turn, view: &TurnItemsView) -> Turn {
    let is_first = |item: &&ThreadItem| matches!(item, ThreadItem::UserMessage { .. });
    let is_last = |item: &&ThreadItem| matches!(item, ThreadItem::AgentMessage { .. });
    let items = match view {
        TurnItemsView::NotLoaded => Vec::new(),
        TurnItemsView::Full => turn.items.clone(),
        TurnItemsView::Summary => {
            let first = turn.items.iter().find(is_first);
            first.into_iter().chain(turn.items.iter().rev().find(is_last)).cloned().collect()
        }
    };
    Turn { items, ..turn.clone() }
}

struct PageRequest<'a> {
    cursor: Option<&'a str>,
    limit: Option<u32>,
    direction: SortDirection,
}

#[derive(Debug, PartialEq)]
struct Page {
    /// Positions in the list, in display order.
    places: Vec<usize>,
    next: Option<String>,
    backwards: Option<String>,
}

/// `marks` name the entries, oldest first. A cursor is such a mark: with `>` the page starts after it, with `=` at it.
/// So later entries do not shift a page.
fn page(marks: &[String], request: &PageRequest<'_>) -> Result<Page, RuntimeError> {
    let limit = request.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
    let mut places: Vec<usize> = (0..marks.len()).collect();
    if request.direction == SortDirection::Desc {
        places.reverse();
    }
    if let Some(cursor) = request.cursor {
        let invalid = || RuntimeError::InvalidCursor(cursor.to_owned());
        let (mark, is_behind) = match (cursor.strip_prefix('>'), cursor.strip_prefix('=')) {
            (Some(mark), _) => (mark, true),
            (None, Some(mark)) => (mark, false),
            (None, None) => return Err(invalid()),
        };
        let at = places.iter().position(|place| marks[*place] == mark).ok_or_else(invalid)?;
        places.drain(..at + usize::from(is_behind));
    }
    let has_more = places.len() > limit;
    places.truncate(limit);
    let next = places.last().filter(|_| has_more).map(|place| format!(">{}", marks[*place]));
    let backwards = places.first().map(|place| format!("={}", marks[*place]));
    Ok(Page { places, next, backwards })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("t{at}")).collect()
    }

    fn all(count: usize, limit: u32, direction: SortDirection) -> Vec<usize> {
        let marks = marks(count);
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let request = PageRequest { cursor: cursor.as_deref(), limit: Some(limit), direction };
            let page = page(&marks, &request).expect("a page");
            seen.extend(page.places);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return seen,
            }
        }
    }

    #[test]
    fn pages_hold_everything_once() {
        for count in [0, 1, 5, 6] {
            for limit in [1, 2, 3, 6, 100] {
                let ascending: Vec<usize> = (0..count).collect();
                assert_eq!(all(count, limit, SortDirection::Asc), ascending);
                let descending: Vec<usize> = ascending.into_iter().rev().collect();
                assert_eq!(all(count, limit, SortDirection::Desc), descending);
            }
        }
    }

    #[test]
    fn going_back_begins_with_the_first_of_the_page() {
        let first = PageRequest { cursor: None, limit: Some(2), direction: SortDirection::Desc };
        let newest = page(&marks(4), &first).expect("a page");
        assert_eq!((newest.places, newest.backwards.as_deref()), (vec![3, 2], Some("=t3")));
        // Two more were added since.
        let back = PageRequest { cursor: Some("=t3"), limit: None, direction: SortDirection::Asc };
        assert_eq!(page(&marks(6), &back).expect("a page").places, [3, 4, 5]);
        for cursor in ["", "t1", ">t9", "=", "x"] {
            let request = PageRequest { cursor: Some(cursor), limit: None, direction: SortDirection::Asc };
            assert_eq!(page(&marks(4), &request), Err(RuntimeError::InvalidCursor(cursor.to_owned())));
        }
    }
}
