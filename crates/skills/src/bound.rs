//! Limits the list of skills for the model, which is part of every request.

use engine::SkillLine;

/// Limit of all lines: about two hundred skills with short descriptions.
pub(super) const MAX_LIST_BYTES: usize = 24 << 10;
/// Descriptions are not cut below this; skills are left out instead.
const SHORTEST_DESCRIPTION: usize = 60;
/// Bytes of a line besides name, description and path.
const AROUND: usize = "- :  (file: )\n".len();

/// A list within its limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BoundedList {
    pub(super) lines: Vec<SkillLine>,
    /// The number of cut descriptions.
    pub(super) shortened: usize,
    /// The number of skills left out. The user can still mention them.
    pub(super) left_out: usize,
}

/// Shortens the longest descriptions first, then leaves out skills from the end.
pub(super) fn bounded(mut lines: Vec<SkillLine>, max: usize) -> BoundedList {
    let fixed = |line: &SkillLine| line.name.len() + line.path.len() + AROUND;
    let whole: usize = lines.iter().map(|line| fixed(line) + line.description.len()).sum();
    if whole <= max {
        return BoundedList { lines, ..BoundedList::default() };
    }
    let count = lines.len();
    let mut used = 0;
    lines.retain(|line| {
        used += fixed(line) + line.description.len().min(SHORTEST_DESCRIPTION);
        used <= max
    });
    let left_out = count - lines.len();
    let room = max.saturating_sub(lines.iter().map(fixed).sum());
    let longest = longest_that_fits(lines.iter().map(|line| line.description.len()).collect(), room);
    let mut shortened = 0;
    for line in lines.iter_mut().filter(|line| line.description.len() > longest) {
        line.description.truncate(line.description.floor_char_boundary(longest.saturating_sub("…".len())));
        line.description.push('…');
        shortened += 1;
    }
    BoundedList { lines, shortened, left_out }
}

/// The maximum length at which all fit together.
fn longest_that_fits(mut lengths: Vec<usize>, mut room: usize) -> usize {
    lengths.sort_unstable();
    let mut left = lengths.len();
    for length in lengths {
        if length * left > room {
            return room / left;
        }
        room -= length;
        left -= 1;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skills(count: usize, description: usize) -> Vec<SkillLine> {
        let line = |number: usize| SkillLine {
            name: format!("skill-{number:05}"),
            description: "ä".repeat(description / 2),
            path: format!("/user/.agents/skills/skill-{number:05}/SKILL.md"),
        };
        (0..count).map(line).collect()
    }

    fn bytes(list: &BoundedList) -> usize {
        list.lines
            .iter()
            .map(|line| format!("- {}: {} (file: {})\n", line.name, line.description, line.path).len())
            .sum()
    }

    #[test]
    fn a_list_that_fits_stays_as_it_is() {
        let list = bounded(skills(50, 300), MAX_LIST_BYTES);
        assert_eq!((list.lines, list.shortened, list.left_out), (skills(50, 300), 0, 0));
    }

    #[test]
    fn long_descriptions_are_shortened_before_skills_are_left_out() {
        let mut many = skills(100, 400);
        many[7].description = "short".to_owned();
        let list = bounded(many, MAX_LIST_BYTES);
        assert_eq!((list.lines.len(), list.shortened, list.left_out), (100, 99, 0));
        assert_eq!(list.lines[7].description, "short");
        assert!(list.lines[8].description.ends_with("ä…"), "{:?}", list.lines[8]);
        assert!((MAX_LIST_BYTES - 1_000..=MAX_LIST_BYTES).contains(&bytes(&list)), "{}", bytes(&list));
    }

    #[test]
    fn thousands_of_skills_do_not_make_a_request_larger() {
        let list = bounded(skills(8_000, 40), MAX_LIST_BYTES);
        assert!(bytes(&list) <= MAX_LIST_BYTES && list.lines.len() > 150, "{}", list.lines.len());
        assert_eq!(list.lines.len() + list.left_out, 8_000);
        assert_eq!(list.lines[0].name, "skill-00000", "those that come first count most");
        let none = bounded(skills(3, 40), 10);
        assert_eq!((none.lines.len(), none.left_out), (0, 3));
    }
}
