//! Names of people, places, teams and makes that look like names of concepts: `Dr. Foot`, `Mary Burns`, `against the Lions`.
//!
//! The word lists were written for this project.
//!
//! ```
//! use canonym_core::text::{proper_names::is_proper_name, Span};
//! let is = |text: &str, word: &str| {
//!     let start = text.find(word).unwrap();
//!     is_proper_name(text, Span::new(start, start + word.len()))
//! };
//! assert!(is("Mary T. Burns wrote the report.", "Burns"));
//! assert!(!is("Treated for Burns of both hands.", "Burns"));
//! assert!(is("He fell at a match against the Lions.", "Lions"));
//! assert!(!is("Lions were sampled in two parks.", "Lions"));
//! ```

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Span;

/// Whether a capitalised word is a person's name after a title or a given name, a given name before a surname, a road, or
/// a place, team or make within a sentence.
pub fn is_proper_name(text: &str, span: Span) -> bool {
    let (before, word, after) = (&text[..span.start as usize], span.of(text), &text[span.end as usize..]);
    if !is_title_case(word) {
        return false;
    }
    let preceding = preceding(before);
    let following = following(after);
    let is_flower = |name: &str| FLOWERS.contains(&name) && !PRODUCTS.contains(&word);
    let is_name =
        |name: &str| TITLES.contains(&name) || GIVEN.contains(name) || MAKES.contains(&name) || is_flower(name);
    if preceding.is_some_and(is_name) || is_town(after) {
        return true;
    }
    let Some(following) = following else { return is_name_in_sentence(word, preceding) };
    ROADS.contains(&following)
        || (GIVEN.contains(word) || FLOWERS.contains(&word))
            && is_title_case(following)
            && !PRODUCTS.contains(&following)
        || is_name_in_sentence(word, preceding)
}

/// Whether a word is a given name or a country, and so no concept that a biomedical terminology merely lacks.
pub fn is_given_name_or_country(word: &str) -> bool {
    GIVEN.contains(word) || COUNTRIES.contains(word)
}

/// Whether a state of the United States follows: `Lyme, Connecticut`.
fn is_town(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(", ") else { return false };
    STATES.iter().any(|state| rest.strip_prefix(state).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
}

/// Whether a word of [`PLACES`] follows a word in lower case.
fn is_name_in_sentence(word: &str, preceding: Option<&str>) -> bool {
    preceding.is_some_and(|preceding| preceding.starts_with(char::is_lowercase)) && PLACES.contains(&word)
}

/// The word before, separated by a single space and at most a full stop and a middle initial.
fn preceding(before: &str) -> Option<&str> {
    let before = before.strip_suffix(' ').filter(|before| !before.ends_with(char::is_whitespace))?;
    let last = last_word(before);
    let is_initial = last.len() == 1 && last.starts_with(|letter: char| letter.is_ascii_uppercase());
    if is_initial {
        let rest = before.trim_end_matches('.').strip_suffix(last)?.strip_suffix(' ')?;
        let given = last_word(rest);
        return Some(if GIVEN.contains(given) { given } else { last });
    }
    (!last.is_empty()).then_some(last)
}

/// The last word, without a full stop after it.
fn last_word(text: &str) -> &str {
    let text = text.strip_suffix('.').unwrap_or(text);
    let start = text
        .rfind(|letter: char| !letter.is_alphanumeric())
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    &text[start..]
}

/// The word after, separated by a single space.
fn following(after: &str) -> Option<&str> {
    let after = after.strip_prefix(' ')?;
    let end = after.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(after.len());
    (end > 0).then(|| &after[..end])
}

/// Whether a word is `Capitalised`.
fn is_title_case(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.all(|letter| letter.is_lowercase() || letter == '-')
}

/// Titles of people.
const TITLES: [&str; 9] = ["Dr", "Miss", "Mr", "Mrs", "Ms", "Mx", "Prof", "Professor", "Sister"];

/// Makes of cars.
#[rustfmt::skip]
const MAKES: [&str; 13] = [
    "Audi", "Chevrolet", "Chevy", "Dodge", "Fiat", "Ford", "Honda", "Jeep", "Nissan", "Peugeot", "Plymouth", "Toyota", "Volkswagen",
];

/// States of the United States.
#[rustfmt::skip]
const STATES: [&str; 50] = [
    "Alabama", "Alaska", "Arizona", "Arkansas", "California", "Colorado", "Connecticut", "Delaware", "Florida", "Georgia", "Hawaii", "Idaho",
    "Illinois", "Indiana", "Iowa", "Kansas", "Kentucky", "Louisiana", "Maine", "Maryland", "Massachusetts", "Michigan", "Minnesota",
    "Mississippi", "Missouri", "Montana", "Nebraska", "Nevada", "New Hampshire", "New Jersey", "New Mexico", "New York", "North Carolina",
    "North Dakota", "Ohio", "Oklahoma", "Oregon", "Pennsylvania", "Rhode Island", "South Carolina", "South Dakota", "Tennessee", "Texas", "Utah",
    "Vermont", "Virginia", "Washington", "West Virginia", "Wisconsin", "Wyoming",
];

/// Last words of addresses.
const ROADS: [&str; 8] = ["Avenue", "Boulevard", "County", "Inc", "Lane", "Ltd", "Road", "Street"];

/// Given names that are names of plants or animals as well.
#[rustfmt::skip]
const FLOWERS: [&str; 17] = [
    "Basil", "Coral", "Daisy", "Ginger", "Hazel", "Heather", "Holly", "Iris", "Ivy", "Jasmine", "Lily", "Olive",
    "Poppy", "Robin", "Rose", "Rosemary", "Violet",
];

/// What is made of such plants.
#[rustfmt::skip]
const PRODUCTS: [&str; 12] = [
    "Ale", "Extract", "Hip", "Juice", "Leaf", "Oil", "Pollen", "Root", "Seed", "Tea", "Tree", "Water",
];

/// Countries, islands, teams, makes and given names that are names of animals or plants in lower case.
#[rustfmt::skip]
const PLACES: [&str; 45] = [
    "Bears", "Beetle", "Bruins", "Bucks", "Bulls", "Canaries", "Cardinals", "Caterpillar", "Cobra", "Cobras", "Colts",
    "Crows", "Daisy", "Dolphins", "Dove", "Ducks", "Eagle", "Eagles", "Falcons", "Fox", "Hawks", "Hornets", "Impala",
    "Jaguar", "Jaguars", "Lions", "Magpies", "Mustang", "Orioles", "Panther", "Panthers", "Pelicans", "Penguin",
    "Penguins", "Poppy", "Puffin", "Puma", "Python", "Rams", "Ravens", "Robin", "Sharks", "Swift", "Tigers", "Wolves",
];

/// Countries of one word.
static COUNTRIES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| COUNTRY_NAMES.split_ascii_whitespace().collect());

const COUNTRY_NAMES: &str = "Afghanistan Albania Algeria America Andorra Angola Argentina Armenia Australia Austria Azerbaijan Bahamas Bahrain Bangladesh Barbados \
    Belarus Belgium Belize Benin Bhutan Bolivia Botswana Brazil Britain Brunei Bulgaria Burundi Cambodia Cameroon Canada Chile China Colombia Comoros Congo Croatia Cuba Cyprus \
    Denmark Djibouti Dominica Ecuador Egypt England Eritrea Estonia Eswatini Ethiopia Fiji Finland France Gabon Gambia Georgia Germany Ghana Greece Grenada Guatemala Guinea \
    Guyana Haiti Honduras Hungary Iceland India Indonesia Iran Iraq Ireland Israel Italy Jamaica Japan Jordan Kazakhstan Kenya Kiribati Korea Kosovo Kuwait Kyrgyzstan Laos \
    Latvia Lebanon Lesotho Liberia Libya Liechtenstein Lithuania Luxembourg Madagascar Malawi Malaysia Maldives Mali Malta Mauritania Mauritius Mexico Micronesia Moldova Monaco \
    Mongolia Montenegro Morocco Mozambique Myanmar Namibia Nauru Nepal Netherlands Nicaragua Niger Nigeria Norway Oman Pakistan Palau Palestine Panama Paraguay Peru Philippines \
    Poland Portugal Qatar Romania Russia Rwanda Samoa Scotland Senegal Serbia Seychelles Singapore Slovakia Slovenia Somalia Spain Sudan Suriname Sweden Switzerland Syria Taiwan \
    Tajikistan Tanzania Thailand Togo Tonga Tunisia Turkmenistan Tuvalu Uganda Ukraine Uruguay Uzbekistan Vanuatu Venezuela Vietnam Wales Yemen Zambia Zimbabwe";

/// Given names, without those that are common words or places.
static GIVEN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| GIVEN_NAMES.split_ascii_whitespace().collect());

const GIVEN_NAMES: &str = "Aaron Abigail Adam Adrian Agnes Ahmed Aisha Alan Albert Alejandro Alessandro Alex Alexander Alexandra Alexis Alfred Ali Alice Alicia Alison \
    Allison Amanda Amelia Amir Amit Amy Ana Andrea Andreas Andrew Angela Anita Anna Anne Annie Anthony Antonio Anya Arjun Arthur Ashley Audrey Barbara Barry \
    Beatrice Benjamin Bernadette Bernard Bethany Betty Beverly Brandon Brenda Brian Bridget Bruce Bryan Callum Cameron Carl Carla Carlos Carmen Caroline Catherine Cecilia \
    Chad Charles Charlie Chelsea Cheryl Chloe Chris Christina Christine Christopher Cindy Claire Clara Claudia Colin Connor Craig Cynthia Daniel Daniela Danielle Darren \
    David Deborah Debra Denise Dennis Derek Diana Diane Diego Dmitri Dominic Donald Donna Doris Dorothy Douglas Duncan Dylan Eddie Edith Edward Edwin Eileen Elaine Eleanor \
    Elena Elijah Elizabeth Ella Ellen Emily Emma Eric Erica Erik Erin Esther Ethan Eugene Eva Evelyn Fatima Felix Fernando Fiona Frances Francesca Francis Francisco Fred \
    Frederick Gabriel Gareth Gary Gavin Geoff Geoffrey George Gerald Gillian Giovanni Giulia Gloria Gordon Graham Greg Gregory Gwen Hannah Harold Harriet Harry Hassan Heidi \
    Helen Helena Henry Hiroshi Howard Hugh Hussein Ian Ibrahim Ingrid Irene Isabel Isabella Isabelle Isla Ivan Jacob Jacqueline Jake James Jamie Jan Jane Janet Janice Jason \
    Javier Jayne Jeff Jeffrey Jennifer Jenny Jeremy Jerome Jesse Jessica Jill Jim Jimmy Joan Joanna Joanne Joe Joel Johan Johannes John Johnny Jonathan Jorge Jose Joseph \
    Joshua Joyce Juan Juanita Judith Judy Julia Julian Juliana Julie Justin Karen Karl Kate Katherine Kathleen Kathryn Kathy Katie Keith Kelly Kenneth Kenji Kerry Kevin \
    Khalid Kieran Kimberly Klaus Kristen Kristina Kumar Kyle Larry Lars Laura Lauren Laurence Leah Leila Leo Leon Leonard Lewis Liam Linda Lisa Lorraine Louis Louise Lucas \
    Lucia Lucy Luigi Luis Luke Lydia Lynn Maggie Malcolm Manuel Marco Marcus Margaret Maria Marie Marilyn Marta Mario Marion Martha Martin Mary Matthew Maureen Megan Melanie \
    Melissa Mei Michael Michelle Miguel Mike Mildred Mohamed Mohammed Moira Molly Monica Muhammad Nadia Nancy Naomi Natalie Natasha Neil Nicholas Nicola Nicole Nigel Nina \
    Noah Noel Nora Norman Olga Oliver Olivia Omar Oscar Owen Pablo Pamela Patricia Patrick Paul Paula Pauline Pedro Peggy Peter Philip Phillip Phyllis Pierre Priya Rachel \
    Rajesh Ralph Raymond Rebecca Ricardo Richard Rita Robert Roberta Roberto Roger Ronald Rosa Rosie Ross Roy Russell Ruth Ryan Sally Salma Samantha Samuel Sandra Sanjay Sara \
    Sarah Scott Sean Sebastian Sergei Sergio Shane Shannon Sharon Sheila Shirley Simon Sofia Sophia Sophie Stacey Stanley Stefan Stephanie Stephen Steve Steven Stuart Susan \
    Suzanne Sven Sylvia Tara Teresa Terry Theodore Theresa Thomas Tim Timothy Tina Toby Todd Tom Tommy Tony Tracey Tracy Trevor Tyler Ursula Valerie Vanessa Vera Vernon \
    Veronica Vikram Vincent Vivian Vladimir Walter Wanda Wayne Wendy William Winston Yasmin Yolanda Yusuf Yvonne Zachary Zoe";

#[cfg(test)]
mod tests {
    use super::*;

    fn is(text: &str, word: &str) -> bool {
        let start = text.rfind(word).unwrap();
        is_proper_name(text, Span::new(start, start + word.len()))
    }

    #[test]
    fn people_places_and_makes_are_proper_names() {
        for (text, word) in [
            ("Discussed with Dr. Burns today.", "Burns"),
            ("Seen by Professor Head", "Head"),
            ("John Crohn is here.", "Crohn"),
            ("Jonathan Rice, a farmer", "Jonathan"),
            ("Rosemary Clark came in.", "Rosemary"),
            ("He lives in Wilson Street.", "Wilson"),
            ("a match against the Lions", "Lions"),
            ("He drives a Jaguar.", "Jaguar"),
            ("He drove a Ford Cougar.", "Cougar"),
            ("They met in Lyme, Connecticut.", "Lyme"),
        ] {
            assert!(is(text, word), "{text}: {word}");
        }
    }

    #[test]
    fn capitalised_concepts_are_no_proper_names() {
        for (text, word) in [
            ("Hx of Diabetes and Fever", "Fever"),
            ("Rose Hip and Ginger Tea", "Ginger"),
            ("she has a Cat", "Cat"),
            ("LIONS AND TIGERS", "TIGERS"),
            ("Mary has Burns", "Burns"),
            ("Mary\nBurns of the hand", "Burns"),
            ("Allergies: Turkey, Poppy", "Turkey"),
            ("é. Burns", "Burns"),
            ("Lions", "Lions"),
        ] {
            assert!(!is(text, word), "{text}: {word}");
        }
    }
}
