//! How much a text resembles a research article, as opposed to a note, a letter or news.
//!
//! Annotated corpora consist of abstracts and articles, so models trained on them are most reliable on such texts. The
//! word lists were written for this project: general research vocabulary without medical terms, and everyday
//! vocabulary.
//!
//! ```
//! use canonym_core::text::register::research;
//! let results = "We investigated the effects of both drugs. Compared with controls, levels were significantly increased; these findings suggest a role of \
//!                the receptor in both groups.";
//! assert!(research(results) > 0.8);
//! assert_eq!(research("My doctor said I should take it at night. Has anyone else felt sick after it?"), 0.0);
//! ```

use std::collections::HashSet;
use std::sync::OnceLock;

/// General vocabulary of research articles.
const RESEARCH: &str = "aim aimed aims addition although analyses analysis analyzed analysed appears assess assessed assessment associated association background baseline \
    between characterized cohort comparable compared comparison concentrations conclude conclusion conclusions conducted confirmed consistent contribute contributes \
    contrast control controls correlated correlation data decrease decreased demonstrate demonstrated demonstrates determine determined dependent \
    detected differences displayed effect effects elevated elucidate enhanced estimated evaluate evaluated evaluation evidence examine examined exhibited experimental experiments \
    expressed expression factors findings furthermore groups here hence however hypothesis hypothesized identified identify impaired implicated incidence increase increased increases indicate indicated \
    indicates indicating induce induced induces influence inhibited inhibition investigate investigated investigation involved involvement levels markedly mean measured measurements mechanism \
    mechanisms mediated methods mice model models moreover mouse novel objective objectives observed obtained our parameters participants performed phenotype placebo population potential \
    presence present prevalence previous previously primary prospective provide proposed randomized rat rats receiving recently reduced reduction regulated \
    related relative report reported respectively response result resulted resulting results retrospective revealed role sample samples showed shown significance significant \
    significantly similar statistically studied studies study subjects subsequent subsequently suggest suggested suggesting suggests support tested these thus therefore underlying using \
    versus vitro vivo we were whereas whether";

/// Vocabulary of notes, letters and news.
const EVERYDAY: &str = "ago anybody anymore anyone anything ask asked bed came come cope dad daughter denies doc doctor doctors everyone everything feel feeling feels felt friend friends \
    get gets getting go goes going gone got gp hello help hi home hubby hurts husband i'd i'll i'm i've kids know last let me meds mom monday mum my myself neighbor neighbour next nice now \
    off okay ok pill pills please pmh really said say says she's he's sick son someone started talk tell thank thanks thing things think thought today told tomorrow totook tried \
    try tuesday wait want wanted watch week wife worry yesterday yo you you're your";

/// The score rises linearly from 0 to 1 between these shares of research words.
const RESEARCH_RANGE: [f32; 2] = [0.01, 0.06];

/// Pseudo-count added to the number of words, so that short texts score lower.
const PSEUDO_COUNT: f32 = 25.0;

/// Weight of an everyday word against a research word.
const EVERYDAY_WEIGHT: f32 = 1.5;

/// Research-article score from 0 to 1. Short texts score lower, because a sentence or two is little evidence.
pub fn research(text: &str) -> f32 {
    static LISTS: OnceLock<[HashSet<&str>; 2]> = OnceLock::new();
    let lists = || [RESEARCH, EVERYDAY].map(|list| list.split_ascii_whitespace().collect());
    let [research, everyday] = LISTS.get_or_init(lists);
    let is_in_word = |c: char| c.is_alphabetic() || c == '\'';
    let (mut n_words, mut n_research, mut n_everyday) = (0.0, 0.0, 0.0);
    let mut small = String::new();
    for word in text.split(|c: char| !is_in_word(c)).filter(|word| !word.is_empty()) {
        small.clear();
        small.extend(word.chars().map(|c| c.to_ascii_lowercase()));
        n_words += 1.0;
        n_research += f32::from(u8::from(research.contains(small.as_str())));
        n_everyday += f32::from(u8::from(everyday.contains(small.as_str())));
    }
    let share = (n_research - EVERYDAY_WEIGHT * n_everyday) / (n_words + PSEUDO_COUNT);
    ((share - RESEARCH_RANGE[0]) / (RESEARCH_RANGE[1] - RESEARCH_RANGE[0])).clamp(0.0, 1.0)
}
