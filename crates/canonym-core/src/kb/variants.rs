//! Names as texts write them, from names as classifications write them: `chickenpox` from `Varicella [chickenpox]`, `obstructive sleep
//! apnea` from `Obstructive sleep apnea (adult) (pediatric)`, `asthma` from `Unspecified asthma`.
//!
//! In classifications such as ICD, square brackets hold synonyms and parentheses hold modifiers that do not change the meaning. A variant
//! is added only if it names one concept: not if another concept has it, nor if the names of several concepts lead to it.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::lexicon::{bag_key, hash_form};
use super::record::Scope;
use crate::text::abbreviations::find_abbreviations;
use crate::text::normalise::fold;

/// What comes before a kind that is left unspecified, or an exception.
const KINDS: [&str; 5] =
    [", unspecified ", " due to unspecified ", " due to unidentified ", " of unspecified ", ", except "];

/// What is left unspecified without being part of the name.
const GENERAL: [&str; 12] = [
    "cause", "degree", "duration", "etiology", "nature", "organism", "origin", "severity", "site", "sites", "stage",
    "type",
];

/// What comes before a place that is left unspecified.
const PLACES: [&str; 3] = [" of unspecified ", " in unspecified ", ", unspecified "];

/// Words in brackets for the kind of a concept.
const KINDS_OF_CONCEPTS: [&str; 10] = [
    "disease",
    "disorder",
    "event",
    "finding",
    "morphologic abnormality",
    "observable entity",
    "organism",
    "procedure",
    "situation",
    "substance",
];

/// Maximum number of words for what is left unspecified.
const MAX_KIND: usize = 3;

/// Minimum length of a variant.
const MIN_LETTERS: usize = 3;

/// Maximum number of words in brackets.
const MAX_WORDS: usize = 5;

/// First words in brackets that limit or illustrate a name.
const REMARKS: [&str; 18] = [
    "after", "any", "as", "at", "by", "due", "during", "e.g", "except", "for", "from", "i.e", "in", "of", "on", "see",
    "sensu", "with",
];

/// Maximum number of brackets of a name with variants.
const MAX_PARTS: usize = 4;

/// Words in brackets that change or limit the meaning of a name.
#[rustfmt::skip]
const CHANGING: [&str; 45] = [
    "absent", "allergy", "attempted", "carrier", "complication", "denied", "denies", "donor", "ex", "excluded", "excludes",
    "exposure", "false", "family", "former", "gestational", "high", "historical", "history", "increased", "inhibitor",
    "low", "negative", "neonatal", "never", "no", "non", "none", "not", "past", "positive", "possible", "pregnancy",
    "previous", "probable", "pseudogene", "raised", "resolved", "risk", "ruled", "screening", "secondary", "suspected",
    "vaccine", "without",
];

/// Endings of classifications for a concept as such.
const AS_SUCH: [&str; 11] = [
    ", NOS",
    " NOS",
    ", NEC",
    ", not elsewhere classified",
    ", not otherwise specified",
    ", site not specified",
    ", site unspecified",
    ", part unspecified",
    ", type unspecified",
    ", cause unspecified",
    ", unspecified",
];

/// Words for classes of disorders, which are of one place or of the other: `Disease of bronchus and lung`.
const CLASSES: [&str; 11] = [
    "calculus",
    "carcinoma",
    "disease",
    "diseases",
    "disorder",
    "disorders",
    "fracture",
    "infection",
    "injury",
    "melanoma",
    "neoplasm",
];

/// Words after *of* that are no places.
const NO_PLACES: [&str; 10] = ["both", "left", "lower", "multiple", "one", "other", "right", "two", "unknown", "upper"];

/// A part of a name in brackets: the positions of the brackets, and whether they are square.
#[derive(Debug, Clone, Copy)]
struct Part {
    open: usize,
    close: usize,
    is_square: bool,
}

/// The parts of a name in brackets that stand apart from its words and hold words only; none if the brackets are nested or unbalanced.
fn parts(name: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, letter) in name.char_indices() {
        match (letter, open) {
            ('(' | '[', None) => open = Some((at, letter)),
            (')', Some((start, '('))) | (']', Some((start, '['))) => {
                found.push(Part { open: start, close: at, is_square: letter == ']' });
                open = None;
            }
            ('(' | '[' | ')' | ']', _) => return Vec::new(),
            _ => {}
        }
    }
    let stands_apart = |part: &Part| {
        let (before, after) = (&name[..part.open], &name[part.close + 1..]);
        (before.is_empty() || before.ends_with(' ')) && (after.is_empty() || after.starts_with([' ', ',', ';']))
    };
    let is_words = |part: &Part| {
        let inside = name[part.open + 1..part.close].trim();
        let mut words = inside.split([' ', '-']);
        let is_letter = |letter: char| letter.is_alphabetic() || matches!(letter, ' ' | '-' | '.' | '\'' | '’');
        let first = words.clone().next().unwrap_or_default().trim_end_matches('.').to_lowercase();
        inside.chars().all(is_letter)
            && words.clone().count() <= MAX_WORDS
            && !REMARKS.contains(&&*first)
            && !words.any(|word| CHANGING.contains(&&*word.to_lowercase()))
            && inside.chars().any(char::is_alphabetic)
    };
    let n_all = found.len();
    found.retain(|part| stands_apart(part) && is_words(part));
    if n_all > MAX_PARTS { Vec::new() } else { found }
}

/// A name without superfluous blanks and commas.
fn tidy(name: &str) -> String {
    let joined = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let joined = joined.replace(" ,", ",").replace(" ;", ";").replace(",,", ",");
    joined.trim_matches([' ', ',', ';']).to_owned()
}

/// A name without the parts.
fn without_parts(name: &str, parts: &[Part]) -> String {
    let mut without = String::with_capacity(name.len());
    let mut end = 0;
    for part in parts {
        without.push_str(&name[end..part.open]);
        end = part.close + 1;
    }
    without.push_str(&name[end..]);
    without
}

/// What a part in brackets stands for: the name with it in place of the words before it.
fn instead(name: &str, part: Part) -> Option<String> {
    let inside = name[part.open + 1..part.close].trim();
    let (before, after) = (&name[..part.open], &name[part.close + 1..]);
    if let Some(short) = find_abbreviations(name).into_iter().find(|short| short.short.of(name) == inside) {
        return Some(format!("{}{inside}{after}", &name[..short.long.start as usize]));
    }
    let is_short = inside.chars().filter(|letter| letter.is_uppercase()).count() > 1 && !inside.contains(' ');
    // `PH-2 [Monkey]` is no monkey.
    let is_proper = inside.starts_with(char::is_uppercase) && !inside.contains(' ');
    // `HM2 [Hamster melanoma]` is no melanoma.
    let is_symbol = before.contains(|letter: char| letter.is_ascii_digit()) || before.contains('(');
    if !part.is_square || is_short || is_proper || is_symbol {
        return None;
    }
    // `Fourth [trochlear] nerve palsy`: one word for another.
    let is_inner = after.starts_with(' ');
    let (kept, replaced) = before.trim_end().rsplit_once(' ').unwrap_or(("", before.trim_end()));
    match is_inner {
        true if inside.contains(' ') || replaced.is_empty() || !is_adjective(inside) => None,
        true => Some(format!("{kept} {inside}{after}")),
        false => Some(format!("{inside}{after}")),
    }
}

/// Whether a word ends like adjectives of places and kinds: `trochlear`, `scaphoid`, `pregnancy-induced`.
fn is_adjective(word: &str) -> bool {
    ["al", "ar", "ed", "ic", "id"].iter().any(|ending| word.ends_with(ending))
}

/// A name without the words by which classifications mark a concept as such.
fn as_such(name: &str) -> Option<String> {
    let ends_so = |ending: &&&str| {
        let start = name.len().checked_sub(ending.len()).filter(|start| name.is_char_boundary(*start));
        start.is_some_and(|start| start > 0 && name[start..].eq_ignore_ascii_case(ending))
    };
    // `NOS` and `NEC` are no words in lower case.
    let is_written_so = |ending: &&&str| !ending.ends_with(char::is_uppercase) || name.ends_with(**ending);
    let ending = AS_SUCH.iter().find(|ending| ends_so(ending) && is_written_so(ending));
    let of_ending = ending.map(|ending| &name[..name.len() - ending.len()]);
    // `Pneumonia, unspecified organism`, `Influenza due to unidentified influenza virus`, `Malignant neoplasm of kidney, except renal
    // pelvis`.
    let of_kind = || {
        let (at, kind) = KINDS.iter().filter_map(|kind| Some((name.find(kind)?, kind))).min()?;
        let rest = &name[at + kind.len()..];
        let is_kind = !kind.ends_with("unspecified ") || GENERAL.contains(&rest);
        let is_short = rest.split(' ').count() <= MAX_KIND && !rest.contains(',') && !name.contains(['(', '[']);
        (is_kind && is_short).then(|| &name[..at])
    };
    let of_start = || name.strip_prefix("Unspecified ").or_else(|| name.strip_prefix("unspecified "));
    // `Exostosis of unspecified orbit`.
    let of_place = || {
        let of = PLACES.iter().find(|of| name.contains(**of))?;
        let rest = name.split_once(of)?.1;
        let is_general = GENERAL.contains(&rest.split([' ', ',']).next().unwrap_or_default());
        (!is_general).then(|| name.replacen(of, of.strip_suffix("unspecified ").unwrap_or(of), 1))
    };
    let short = of_ending.or_else(of_kind).or_else(of_start).map(tidy).or_else(of_place);
    short.filter(|short| short.chars().any(char::is_alphabetic) && !is_remainder(short))
}

/// Whether a name is for what its siblings leave: `Other disorders of lung`.
fn is_remainder(name: &str) -> bool {
    let first = name.split(' ').next().unwrap_or_default();
    ["other", "others"].contains(&&*first.to_lowercase())
}

/// The parts of a name that joins two places: `Malignant neoplasm of lung` from `Malignant neoplasm of bronchus and lung`.
pub fn joined_parts(name: &str) -> Vec<String> {
    let Some((head, places)) = name.split_once(" of ") else { return Vec::new() };
    let Some((one, other)) = places.split_once(" and ").or_else(|| places.split_once(" or ")) else {
        return Vec::new();
    };
    let is_place = |place: &str| {
        let is_noun = !NO_PLACES.contains(&place);
        let is_letter = |letter: char| letter.is_alphabetic() || letter == ' ';
        is_noun
            && (1..=2).contains(&place.split(' ').count())
            && place.chars().all(is_letter)
            && !place.contains("other")
    };
    let is_class = |word: &str| CLASSES.contains(&&*word.to_lowercase());
    let is_apart = head.split(' ').any(is_class)
        && !head.contains([',', '(', '['])
        && ![" and ", " or "].iter().any(|word| head.contains(word));
    if is_remainder(name) || !is_apart || !is_place(one) || !is_place(other) {
        return Vec::new();
    }
    [one, other].map(|place| format!("{head} of {place}")).into()
}

/// A name of cells without that word, if a letter or a symbol with a digit comes before it: `memory B`, `ILC2`.
fn without_cell(name: &str) -> Option<&str> {
    let head = name.strip_suffix(" cell").or_else(|| name.strip_suffix(" cells"))?;
    let (before, last) = head.rsplit_once(' ').unwrap_or(("", head));
    let is_letter = last.chars().count() == 1 && last.starts_with(char::is_uppercase);
    let is_described = !before.is_empty() && !before.ends_with(" of") && !before.ends_with(" in");
    let is_symbol = last.contains(|letter: char| letter.is_ascii_digit()) && last.starts_with(char::is_alphabetic);
    (is_letter && is_described || is_symbol).then_some(head)
}

/// The variants of a name; empty for most names. `is_only` says whether it is the only name of its concept, as in classifications and
/// lists; elsewhere, brackets often hold what limits a name (`fundus (uterus)`), and only definitions of short forms and words for kinds of
/// concepts are left out.
pub fn variants(name: &str, is_only: bool) -> Vec<String> {
    let mut parts = if name.contains(['(', '[']) { parts(name) } else { Vec::new() };
    let defined = if parts.is_empty() { Vec::new() } else { find_abbreviations(name) };
    let is_defined = |part: &Part| {
        defined.iter().any(|one| part.open < one.short.start as usize && (one.short.end as usize) <= part.close)
    };
    let is_kind = |part: &Part| KINDS_OF_CONCEPTS.contains(&&name[part.open + 1..part.close]);
    parts.retain(|part| is_only || is_defined(part) || is_kind(part));
    let mut found: Vec<String> = Vec::new();
    if !parts.is_empty() {
        found.push(tidy(&without_parts(name, &parts)));
        // Other parts are left out in these.
        for part in &parts {
            let other = instead(name, *part).map(|name| tidy(&without_parts(&name, &self::parts(&name))));
            found.extend(other);
        }
    }
    if is_only {
        let whole = parts.is_empty().then_some(name);
        let such = whole.into_iter().chain(found.iter().map(String::as_str)).filter_map(as_such);
        found.extend(such.collect::<Vec<String>>());
    }
    found.extend(without_cell(name).map(str::to_owned));
    // `Trigger thumb, thumb`.
    let repeats = |variant: &str| {
        let mut words = variant.rsplit([' ', ',']).filter(|word| !word.is_empty());
        words.next() == words.next()
    };
    found.retain(|variant| variant.chars().count() >= MIN_LETTERS && variant != name && !repeats(variant));
    found.sort_unstable();
    found.dedup();
    found
}

/// A variant of a name of a concept.
struct Variant {
    /// Key of its words.
    key: u64,
    concept: u32,
    /// Key of the words of the name that leads to it.
    source: u64,
    scope: Scope,
    name: String,
}

/// The variants to add as `(concept, name, scope)`, in the order of the names; `name` returns the concept and the text of a name. Only
/// exact names have variants.
pub(super) fn plan<'a>(
    n_names: usize,
    name: impl Fn(usize) -> (u32, &'a str) + Sync,
    is_exact: impl Fn(usize) -> bool + Sync,
) -> Vec<(u32, String, Scope)> {
    let mut n_exact: Vec<u32> = Vec::new();
    for row in (0..n_names).filter(|row| is_exact(*row)) {
        let concept = name(row).0 as usize;
        n_exact.resize(n_exact.len().max(concept + 1), 0);
        n_exact[concept] += 1;
    }
    let key_of = |name: &str| {
        let hashes = hash_form(&fold(name));
        bag_key(hashes.iter().filter(|hashes| !hashes.linking).map(|hashes| hashes.canonical))
    };
    let candidates: Vec<Variant> = (0..n_names)
        .into_par_iter()
        .filter(|row| is_exact(*row))
        .flat_map_iter(|row| {
            let (concept, text) = name(row);
            let is_only = n_exact[concept as usize] == 1;
            let narrow = if is_only { joined_parts(text) } else { Vec::new() };
            let exact = variants(text, is_only).into_iter().map(|name| (name, Scope::Exact));
            let found: Vec<_> = exact.chain(narrow.into_iter().map(|name| (name, Scope::Narrow))).collect();
            let source = if found.is_empty() { 0 } else { key_of(text) };
            let variant = move |(name, scope): (String, Scope)| {
                let key = key_of(&name);
                Variant { key, concept, source, scope, name }
            };
            found.into_iter().map(variant)
        })
        .filter(|variant| variant.key != 0)
        .collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    // What leads to a variant; `None` if several concepts do, or if it is a name. Exact ones come before narrow ones.
    let mut leading: HashMap<u64, Option<(Scope, u64, u32)>> = HashMap::new();
    let mut by_scope: Vec<&Variant> = candidates.iter().collect();
    by_scope.sort_by_key(|variant| variant.scope);
    for Variant { key, concept, source, scope, .. } in by_scope {
        let is_same = |known: &(Scope, u64, u32)| known.0 != *scope || known.1 == *source || known.2 == *concept;
        leading
            .entry(*key)
            .and_modify(|known| *known = known.filter(is_same))
            .or_insert(Some((*scope, *source, *concept)));
    }
    let is_led_to = |key: &u64| leading.contains_key(key);
    let taken: Vec<u64> = (0..n_names).into_par_iter().map(|row| key_of(name(row).1)).filter(is_led_to).collect();
    leading.extend(taken.into_iter().map(|key| (key, None)));
    let mut added = HashSet::new();
    let is_new = |variant: &Variant| {
        leading[&variant.key].is_some_and(|(scope, ..)| scope == variant.scope)
            && added.insert((variant.concept, variant.key))
    };
    candidates.into_iter().filter(is_new).map(|variant| (variant.concept, variant.name, variant.scope)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_hold_synonyms_and_modifiers() {
        for (name, expected) in [
            ("Varicella [chickenpox]", &["Varicella", "chickenpox"][..]),
            ("Obstructive sleep apnea (adult) (pediatric)", &["Obstructive sleep apnea"]),
            ("Essential (primary) hypertension", &["Essential hypertension"]),
            ("Chronic kidney disease (CKD)", &["CKD", "Chronic kidney disease"]),
            ("Adenosine deaminase [ADA] deficiency", &["ADA deficiency", "Adenosine deaminase deficiency"]),
            ("Abnormal electroencephalogram [EEG]", &["Abnormal EEG", "Abnormal electroencephalogram"]),
            (
                "Fourth [trochlear] nerve palsy, left eye",
                &["Fourth nerve palsy, left eye", "trochlear nerve palsy, left eye"],
            ),
            ("Carbuncle of back [any part, except buttock]", &[]),
            ("Cold (disorder)", &["Cold"]),
            (
                "Crohn's disease [regional enteritis], unspecified",
                &[
                    "Crohn's disease",
                    "Crohn's disease, unspecified",
                    "regional enteritis",
                    "regional enteritis, unspecified",
                ],
            ),
            ("Pneumonia, unspecified organism", &["Pneumonia"]),
            ("Unspecified asthma", &["asthma"]),
            ("Influenza due to unidentified influenza virus", &["Influenza"]),
            ("Exostosis of unspecified orbit", &["Exostosis of orbit"]),
            ("Bursitis, unspecified hand", &["Bursitis, hand"]),
            ("Burn due to unspecified watercraft on fire", &[]),
            ("Frostbite of unspecified sites", &["Frostbite"]),
            ("Malignant neoplasm of kidney, except renal pelvis", &["Malignant neoplasm of kidney"]),
            ("Other asthma, unspecified", &[]),
            ("Blind loop syndrome, not elsewhere classified", &["Blind loop syndrome"]),
            ("Tumour NOS", &["Tumour"]),
            ("unspecified", &[]),
            ("NOS", &[]),
            ("Induction of nos", &[]),
            ("memory B cell", &["memory B"]),
            ("MAIT cells", &[]),
            ("ILC2 cells", &["ILC2"]),
            ("negative regulation of activation of T cell", &[]),
            ("Depression [screening]", &[]),
            ("MRSA (negative)", &[]),
            ("Diabetes (in pregnancy)", &[]),
            ("Fall (from bed)", &[]),
            ("HM2 [Hamster melanoma]", &["HM2"]),
            ("quinone dehydrogenase [quinone] measurement", &["quinone dehydrogenase measurement"]),
            ("Burn of unspecified degree of knee", &[]),
            ("Trigger thumb, unspecified thumb", &[]),
            ("hES cells", &[]),
            ("B cell", &[]),
            ("stem cell", &[]),
            ("iron(2+) sulfate", &[]),
            ("Benzo[a]pyrene", &[]),
            ("PH-2 [Monkey]", &["PH-2"]),
            ("C (sensu Mustela)", &[]),
            ("heat shock protein (Hsp70) member 8", &[]),
            ("POM121 transmembrane nucleoporin B (pseudogene)", &[]),
            ("(R)-warfarin", &[]),
            ("a (b [c) d]", &[]),
            ("(x) [", &[]),
            ("[D]Fever", &[]),
            (
                "Fieber [süß], nicht näher bezeichnet",
                &["Fieber, nicht näher bezeichnet", "süß, nicht näher bezeichnet"],
            ),
            ("", &[]),
        ] {
            assert_eq!(variants(name, true), expected, "{name}");
        }
    }

    #[test]
    fn brackets_limit_names_of_concepts_with_other_names() {
        for (name, expected) in [
            ("fundus (uterus)", &[][..]),
            ("anemia (phenotype)", &[]),
            ("Asthma, unspecified", &[]),
            ("cold (disorder)", &["cold"]),
            ("chronic myelomonocytic leukaemia (CMML)", &["CMML", "chronic myelomonocytic leukaemia"]),
            ("memory B cell", &["memory B"]),
        ] {
            assert_eq!(variants(name, false), expected, "{name}");
        }
    }

    #[test]
    fn one_of_two_places_is_narrower() {
        for (name, expected) in [
            (
                "Malignant neoplasm of bronchus and lung",
                &["Malignant neoplasm of bronchus", "Malignant neoplasm of lung"][..],
            ),
            ("Aplasia of radius and ulna", &[]),
            ("Other diseases of bronchus and lung", &[]),
            ("Injury of skin, muscle and nerve", &[]),
            ("Disease of heart", &[]),
        ] {
            assert_eq!(joined_parts(name), expected, "{name}");
        }
        let names = [(0, "Disease of heart and lung"), (1, "Disease of lung, unspecified")];
        let added: Vec<_> = plan(2, |row| names[row], |_| true);
        let named = |concept, name: &str, scope| (concept, name.to_owned(), scope);
        assert_eq!(added, [named(0, "Disease of heart", Scope::Narrow), named(1, "Disease of lung", Scope::Exact)]);
    }

    #[test]
    fn a_variant_names_one_concept() {
        let names = [
            (0, "Varicella [chickenpox]"),
            (1, "Cold (disorder)"),
            (2, "Cold (temperature)"),
            (3, "Mercury (element)"),
            (4, "mercury"),
            (5, "Pneumonia, unspecified organism"),
            (6, "Pneumonia, unspecified organism"),
            (7, "Gout [podagra]"),
            (8, "Wart (viral)"),
            (8, "verruca"),
        ];
        let added: Vec<String> = plan(names.len(), |row| names[row], |_| true)
            .into_iter()
            .map(|(concept, name, _)| format!("{concept} {name}"))
            .collect();
        assert_eq!(added, ["0 Varicella", "0 chickenpox", "5 Pneumonia", "6 Pneumonia", "7 Gout", "7 podagra"]);
    }
}
