//! Variants of a lower-case token: American spelling, singular, Greek letters, numerals.
//!
//! Works by tables and suffixes, without a dictionary. The result need not be an English word, which is harmless if
//! both sides of a comparison are converted. Convert spelling before number: `singular(&american_spelling(token))`.
//!
//! ```
//! use canonym_core::text::variants::{american_spelling, singular};
//! assert_eq!(american_spelling("haemangiomata"), "hemangiomata");
//! assert_eq!(singular("hemangiomata"), "hemangioma");
//! ```

use std::borrow::Cow;

use super::variants_plurals;

/// Longer tokens, in bytes, are returned unchanged.
const MAX_TOKEN: usize = 64;

/// British `ae` and `oe` in Greek and Latin stems, at any position.
const DIGRAPHS: [(&str, &str); 27] = [
    ("aemi", "emi"),
    ("aesth", "esth"),
    ("aetiol", "etiol"),
    ("amoebia", "amebia"),
    ("amoebic", "amebic"),
    ("archaeolog", "archeolog"),
    ("caecal", "cecal"),
    ("caecum", "cecum"),
    ("caesarean", "cesarean"),
    ("caesarian", "cesarean"),
    ("caesium", "cesium"),
    ("coeliac", "celiac"),
    ("diaeresis", "dieresis"),
    ("foetal", "fetal"),
    ("foeto", "feto"),
    ("foetus", "fetus"),
    ("gynaec", "gynec"),
    ("haem", "hem"),
    ("homoeo", "homeo"),
    ("manoeuvre", "maneuver"),
    ("naevus", "nevus"),
    ("orthopaed", "orthoped"),
    ("palaeo", "paleo"),
    ("phaeo", "pheo"),
    ("pnoe", "pne"),
    ("praevia", "previa"),
    ("toxaem", "toxem"),
];

/// British stems with `oe`, and the preceding letters after which the `o` belongs to a combining form: "angio-edema".
const O_STEMS: [(&str, &str, &[&str]); 3] = [
    ("oedem", "edem", &["angi", "leuk"]),
    ("oesoph", "esoph", &["aort", "bronch", "cardi", "gastr", "laryng", "nas", "pharyng", "trache"]),
    ("oestr", "estr", &["phyt", "pr", "xen", "myc"]),
];

/// British stems with `our`, at any position.
const OUR: [(&str, &str); 14] = [
    ("armour", "armor"),
    ("behaviour", "behavior"),
    ("colour", "color"),
    ("favour", "favor"),
    ("flavour", "flavor"),
    ("harbour", "harbor"),
    ("honour", "honor"),
    ("humour", "humor"),
    ("labour", "labor"),
    ("neighbour", "neighbor"),
    ("odour", "odor"),
    ("savour", "savor"),
    ("tumour", "tumor"),
    ("vapour", "vapor"),
];

/// Other British stems, at any position.
const STEMS: [(&str, &str); 13] = [
    ("aluminium", "aluminum"),
    ("analogue", "analog"),
    ("catalogue", "catalog"),
    ("centred", "centered"),
    ("discectom", "diskectom"),
    ("fibreo", "fibero"),
    ("leucocyt", "leukocyt"),
    ("leucoderm", "leukoderm"),
    ("leucodystroph", "leukodystroph"),
    ("leucoenceph", "leukoenceph"),
    ("leucopen", "leukopen"),
    ("leucoplak", "leukoplak"),
    ("sulph", "sulf"),
];

/// Whole words. Sorted.
const WHOLE: [(&str, &str); 24] = [
    ("defence", "defense"),
    ("disc", "disk"),
    ("discs", "disks"),
    ("draught", "draft"),
    ("enrol", "enroll"),
    ("enrolment", "enrollment"),
    ("faecal", "fecal"),
    ("faecally", "fecally"),
    ("faeces", "feces"),
    ("foetid", "fetid"),
    ("foetor", "fetor"),
    ("grey", "gray"),
    ("greying", "graying"),
    ("greyish", "grayish"),
    ("leucotomy", "leukotomy"),
    ("mould", "mold"),
    ("moulds", "molds"),
    ("naevi", "nevi"),
    ("offence", "offense"),
    ("paralyse", "paralyze"),
    ("paralysed", "paralyzed"),
    ("programme", "program"),
    ("programmes", "programs"),
    ("sceptical", "skeptical"),
];

/// Words in `re` with American `er`.
const RE: [&str; 9] = ["calibre", "centre", "fibre", "goitre", "litre", "lustre", "metre", "theatre", "titre"];

/// Letters before `ise` in verbs with American `ize`.
const ISE_BEFORE: [&str; 25] = [
    "al", "an", "ar", "at", "en", "er", "et", "gn", "ic", "id", "il", "im", "in", "iod", "it", "ol", "om", "on", "or",
    "os", "ot", "rd", "thes", "um", "un",
];

/// Stems of words in `ise` that are the same in American spelling.
const ISE_KEPT: [&str; 18] = [
    "an",
    "ar",
    "cer",
    "comprom",
    "den",
    "improv",
    "mal",
    "nor",
    "paterson",
    "porp",
    "prem",
    "prom",
    "tort",
    "treat",
    "uncomprom",
    "immunocomprom",
    "val",
    "televis",
];

/// The American spelling of a lower-case token: `oedema` to `edema`, `tumour` to `tumor`.
pub fn american_spelling(token: &str) -> Cow<'_, str> {
    settle(token, respell)
}

/// The singular of a lower-case English, Latin or Greek token: `metastases` to `metastasis`.
///
/// Singular words in `s` are unchanged: `diabetes`, `virus`, `pelvis`, `species`.
pub fn singular(token: &str) -> Cow<'_, str> {
    settle(token, variants_plurals::step)
}

/// Applies `step` until nothing changes, so the result is a fixed point.
fn settle(token: &str, step: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    if token.len() > MAX_TOKEN {
        return Cow::Borrowed(token);
    }
    let mut current = Cow::Borrowed(token);
    // Every step shortens the token or produces an ending that no rule matches.
    for _ in 0..MAX_TOKEN {
        match step(&current) {
            Some(next) if next != *current && !next.is_empty() => current = Cow::Owned(next),
            _ => break,
        }
    }
    current
}

/// Applies one spelling rule, if any matches.
fn respell(token: &str) -> Option<String> {
    if let Ok(row) = WHOLE.binary_search_by_key(&token, |pair| pair.0) {
        return Some(WHOLE[row].1.to_owned());
    }
    let has = |first: u8, second: u8| token.as_bytes().windows(2).any(|pair| pair == [first, second]);
    let replaced = |table: &[(&str, &str)]| {
        let (british, american) = table.iter().find(|(british, _)| token.contains(british))?;
        Some(token.replacen(british, american, 1))
    };
    let mut found = None;
    if has(b'a', b'e') || has(b'o', b'e') {
        found = replaced(&DIGRAPHS).or_else(|| respell_digraph(token));
    }
    if found.is_none() && has(b'o', b'u') {
        found = replaced(&OUR);
    }
    found.or_else(|| replaced(&STEMS)).or_else(|| respell_re(token)).or_else(|| respell_ise(token))
}

/// Digraphs whose conversion depends on the neighbouring letters.
fn respell_digraph(token: &str) -> Option<String> {
    for (british, american, american_before) in O_STEMS {
        if let Some(at) = token.find(british) {
            let is_american = american_before.iter().any(|before| token[..at].ends_with(before));
            return (!is_american).then(|| token.replacen(british, american, 1));
        }
    }
    // "gonorrhoeae" is part of a species name.
    if let Some(at) = token.find("rrhoe") {
        let species = token[at..].starts_with("rrhoeae");
        return (!species).then(|| token.replacen("rrhoe", "rrhe", 1));
    }
    token.strip_prefix("paed").map(|rest| format!("ped{rest}"))
}

/// "fibre", "fibres".
fn respell_re(token: &str) -> Option<String> {
    let (bare, plural) = token.strip_suffix('s').map_or((token, ""), |bare| (bare, "s"));
    let stem = bare.strip_suffix("re")?;
    RE.iter().any(|end| bare.ends_with(end)).then(|| format!("{stem}er{plural}"))
}

/// "-isation", "-ise" and "-yse" with their inflections.
fn respell_ise(token: &str) -> Option<String> {
    for end in ["isation", "isations", "isational"] {
        if let Some(stem) = token.strip_suffix(end) {
            return (stem.len() >= 3 && !ISE_KEPT.contains(&stem)).then(|| format!("{stem}iz{}", &end[2..]));
        }
    }
    for end in ["ise", "ised", "ises", "iser", "isers", "ising"] {
        if let Some(stem) = token.strip_suffix(end) {
            let is_verb =
                stem.len() >= 3 && ISE_BEFORE.iter().any(|before| stem.ends_with(before)) && !ISE_KEPT.contains(&stem);
            return is_verb.then(|| format!("{stem}iz{}", &end[2..]));
        }
    }
    for end in ["ysed", "yser", "ysers", "ysing"] {
        if let Some(stem) = token.strip_suffix(end) {
            // "lysed" is from "lyse", which has no American variant.
            return (stem.len() >= 3 && stem.ends_with('l')).then(|| format!("{stem}yz{}", &end[2..]));
        }
    }
    None
}

/// Names of Greek letters, alpha to omega.
const GREEK: [(char, &str); 24] = [
    ('α', "alpha"),
    ('β', "beta"),
    ('γ', "gamma"),
    ('δ', "delta"),
    ('ε', "epsilon"),
    ('ζ', "zeta"),
    ('η', "eta"),
    ('θ', "theta"),
    ('ι', "iota"),
    ('κ', "kappa"),
    ('λ', "lambda"),
    ('μ', "mu"),
    ('ν', "nu"),
    ('ξ', "xi"),
    ('ο', "omicron"),
    ('π', "pi"),
    ('ρ', "rho"),
    ('σ', "sigma"),
    ('τ', "tau"),
    ('υ', "upsilon"),
    ('φ', "phi"),
    ('χ', "chi"),
    ('ψ', "psi"),
    ('ω', "omega"),
];

/// The name of a token that is one Greek letter: `α` and `Α` to `alpha`, the micro sign to `mu`.
pub fn greek_letter(token: &str) -> Option<&'static str> {
    let mut chars = token.chars();
    let c = chars.next().filter(|c| !c.is_ascii())?;
    let mut lower = c.to_lowercase();
    let folded = match lower.next()? {
        'µ' => 'μ',
        'ς' => 'σ',
        'ϵ' => 'ε',
        'ϑ' => 'θ',
        'ϕ' => 'φ',
        other => other,
    };
    if chars.next().is_some() || lower.next().is_some() {
        return None;
    }
    GREEK.iter().find(|pair| pair.0 == folded).map(|pair| pair.1)
}

/// The value of a Roman numeral from 1 to 39 in standard form, all upper case or all lower case.
pub fn roman_numeral(token: &str) -> Option<u32> {
    let is_one_case =
        token.bytes().all(|byte| byte.is_ascii_uppercase()) || token.bytes().all(|byte| byte.is_ascii_lowercase());
    if token.is_empty() || token.len() > 7 || !is_one_case {
        return None;
    }
    let lower = token.to_ascii_lowercase();
    let units = lower.trim_start_matches('x');
    let n_tens = lower.len() - units.len();
    let ones = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"];
    // The `x` of "ix" belongs to the units, not to the tens.
    let value = ones.iter().position(|one| *one == units)?;
    (n_tens <= 3).then_some(10 * n_tens as u32 + value as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_spelling(pairs: &str) {
        for pair in pairs.split_whitespace() {
            let (british, american) = pair.split_once('>').unwrap_or((pair, pair));
            assert_eq!(american_spelling(british), american, "{british}");
        }
    }

    #[test]
    fn tables_are_sorted() {
        assert!(WHOLE.is_sorted());
    }

    #[test]
    fn digraphs_become_single_letters() {
        check_spelling(
            "haemorrhage>hemorrhage anaemia>anemia leukaemia>leukemia ischaemic>ischemic septicaemia>septicemia \
             hypoglycaemia>hypoglycemia oesophageal>esophageal gastrooesophageal>gastroesophageal transoesophageal>transesophageal oedema>edema \
             lymphoedema>lymphedema diarrhoea>diarrhea seborrhoeic>seborrheic apnoea>apnea dyspnoea>dyspnea foetal>fetal \
             foetuses>fetuses paediatric>pediatric orthopaedic>orthopedic gynaecology>gynecology anaesthesia>anesthesia \
             paraesthesia>paresthesia aetiology>etiology coeliac>celiac caesarean>cesarean faecal>fecal oestrogen>estrogen \
             phaeochromocytoma>pheochromocytoma manoeuvre>maneuver haemophilia>hemophilia naevus>nevus",
        );
    }

    #[test]
    fn other_british_endings_change() {
        check_spelling(
            "tumour>tumor tumours>tumors colour>color behavioural>behavioral labour>labor fibre>fiber fibres>fibers \
             centre>center litre>liter goitre>goiter millimetres>millimeters sulphate>sulfate aluminium>aluminum grey>gray \
             localised>localized organisation>organization catheterise>catheterize hospitalisation>hospitalization \
             randomised>randomized dialyser>dialyzer leucocyte>leukocyte",
        );
    }

    #[test]
    fn words_that_only_look_british_stay() {
        check_spelling(
            "does shoe michael aerobic poem coefficient coenzyme archaea angioedema leukoedema gonorrhoeae faecalis israel \
             phytoestrogen proestrus tracheoesophageal gastroesophageal hour four contour source genre nombre exercise noise precise rise arise compromise promise disease \
             phalangeal analyses lysed advertised supervised crises toe oboe phoenix",
        );
    }

    #[test]
    fn greek_letters_have_names() {
        assert_eq!(greek_letter("α"), Some("alpha"));
        assert_eq!(greek_letter("Ω"), Some("omega"));
        assert_eq!(greek_letter("µ"), Some("mu"));
        assert_eq!(greek_letter("a"), None);
        assert_eq!(greek_letter("αβ"), None);
    }

    #[test]
    fn roman_numerals_are_strict() {
        let values = [("I", 1), ("iv", 4), ("VIII", 8), ("IX", 9), ("XIV", 14), ("xix", 19), ("XX", 20), ("XXXIX", 39)];
        for (token, value) in values {
            assert_eq!(roman_numeral(token), Some(value), "{token}");
        }
        for token in ["", "IIII", "VX", "IXX", "XL", "Iv", "XXXX", "a", "α", "1", "IC"] {
            assert_eq!(roman_numeral(token), None, "{token}");
        }
    }

    proptest! {
        #[test]
        fn spelling_is_settled_after_one_call(token in "(aem|oe|our|is[ae]|ed|tum|sulph|r[er]|tre|[a-zé]|an){0,10}") {
            let once = american_spelling(&token).into_owned();
            prop_assert_eq!(american_spelling(&once), once.clone());
            prop_assert_eq!(once.is_empty(), token.is_empty());
        }
    }
}
