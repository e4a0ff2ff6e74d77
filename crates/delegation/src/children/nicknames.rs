//! Nicknames of agents, for people.

/// Birds: there are many of them, with short names.
const NAMES: &[&str] = &[
    "Auk",
    "Avocet",
    "Bittern",
    "Blackbird",
    "Bluethroat",
    "Brambling",
    "Bunting",
    "Bustard",
    "Buzzard",
    "Chaffinch",
    "Chough",
    "Coot",
    "Cormorant",
    "Crake",
    "Crane",
    "Crossbill",
    "Crow",
    "Cuckoo",
    "Curlew",
    "Dipper",
    "Diver",
    "Dotterel",
    "Dove",
    "Duck",
    "Dunlin",
    "Dunnock",
    "Eagle",
    "Egret",
    "Eider",
    "Falcon",
    "Fieldfare",
    "Finch",
    "Firecrest",
    "Flycatcher",
    "Fulmar",
    "Gadwall",
    "Gannet",
    "Garganey",
    "Godwit",
    "Goldcrest",
    "Goldeneye",
    "Goldfinch",
    "Goose",
    "Goshawk",
    "Grebe",
    "Greenfinch",
    "Greenshank",
    "Grouse",
    "Guillemot",
    "Gull",
    "Harrier",
    "Hawfinch",
    "Heron",
    "Hobby",
    "Hoopoe",
    "Jackdaw",
    "Jay",
    "Kestrel",
    "Kingfisher",
    "Kite",
    "Kittiwake",
    "Knot",
    "Lapwing",
    "Lark",
    "Linnet",
    "Magpie",
    "Mallard",
    "Martin",
    "Merlin",
    "Moorhen",
    "Nightjar",
    "Nuthatch",
    "Oriole",
    "Osprey",
    "Ouzel",
    "Owl",
    "Partridge",
    "Petrel",
    "Phalarope",
    "Pintail",
    "Pipit",
    "Plover",
    "Pochard",
    "Puffin",
    "Quail",
    "Rail",
    "Raven",
    "Redpoll",
    "Redshank",
    "Redstart",
    "Robin",
    "Rook",
    "Ruff",
    "Sanderling",
    "Shelduck",
    "Shrike",
    "Siskin",
    "Snipe",
    "Starling",
    "Stonechat",
    "Stork",
    "Swallow",
    "Swift",
    "Teal",
    "Tern",
    "Thrush",
    "Turnstone",
    "Twite",
    "Wagtail",
    "Warbler",
    "Wheatear",
    "Whimbrel",
    "Wigeon",
    "Wren",
    "Wryneck",
];

/// An unused name, chosen by `entropy`. When all are used, a number is appended.
pub fn nickname(own: &[String], taken: &[String], entropy: u128) -> Option<String> {
    let names: Vec<&str> = match own {
        [] => NAMES.to_vec(),
        own => own.iter().map(String::as_str).collect(),
    };
    let start = usize::try_from(entropy % names.len() as u128).unwrap_or(0);
    (1..).find_map(|round: u32| {
        let in_turn = names.iter().cycle().skip(start).take(names.len());
        let mut numbered = in_turn.map(|name| in_round(name, round));
        numbered.find(|name| !taken.contains(name))
    })
}

fn in_round(name: &str, round: u32) -> String {
    let ending = match (round % 10, round % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    if round == 1 { name.to_owned() } else { format!("{name} the {round}{ending}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let distinct: BTreeSet<_> = NAMES.iter().collect();
        assert!(distinct.len() == NAMES.len() && NAMES.len() > 100);
    }

    #[test]
    fn used_names_are_not_given_again() {
        let mut taken = Vec::new();
        for entropy in 0..300u128 {
            let name = nickname(&[], &taken, entropy * 7_919).expect("there is always one");
            assert!(!taken.contains(&name), "{name}");
            taken.push(name);
        }
        assert!(taken[NAMES.len()].ends_with(" the 2nd"), "{}", taken[NAMES.len()]);
    }

    #[test]
    fn a_role_can_have_its_own_names() {
        let own = ["Ann".to_owned(), "Bob".to_owned()];
        let mut taken = Vec::new();
        for expected in ["Bob", "Ann", "Bob the 2nd", "Ann the 2nd", "Bob the 3rd"] {
            taken.push(nickname(&own, &taken, 1).expect("a name"));
            assert_eq!(taken.last().map(String::as_str), Some(expected));
        }
        assert_eq!(in_round("Wren", 11), "Wren the 11th");
        assert_eq!(in_round("Wren", 22), "Wren the 22nd");
    }
}
