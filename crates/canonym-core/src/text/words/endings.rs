//! Adjectives of Greek and Latin nouns, by suffix: `thrombotic` to `thrombosis`.

/// Suffixes of adjectives and of their nouns; the first match wins.
const ENDS: &[(&str, &str)] = &[
    ("ematous", "ema"),
    ("omatous", "oma"),
    ("plegic", "plegia"),
    ("trophic", "trophy"),
    ("plastic", "plasia"),
    ("static", "stasis"),
    ("lytic", "lysis"),
    ("rrhagic", "rrhage"),
    ("rrheic", "rrhea"),
    ("algic", "algia"),
    ("philic", "philia"),
    ("penic", "penia"),
    ("phrenic", "phrenia"),
    ("phobic", "phobia"),
    ("tensive", "tension"),
    ("kinetic", "kinesia"),
    ("ectatic", "ectasia"),
    ("pathic", "pathy"),
    ("tonic", "tonia"),
    ("uric", "uria"),
    ("otic", "osis"),
    ("emic", "emia"),
    ("itic", "itis"),
    ("oxic", "oxia"),
    ("pneic", "pnea"),
    ("paretic", "paresis"),
    ("poietic", "poiesis"),
    ("genetic", "genesis"),
];

/// Exceptions: words that only look like such adjectives, or whose noun has another meaning.
const KEPT: &[&str] = &[
    "academic",
    "amniotic",
    "antibiotic",
    "aquatic",
    "dendritic",
    "endemic",
    "epidemic",
    "epigenetic",
    "epizootic",
    "exotic",
    "hydrostatic",
    "hypnotic",
    "idiopathic",
    "isotonic",
    "narcotic",
    "orthostatic",
    "pandemic",
    "parasitic",
    "prostatic",
    "robotic",
    "symbiotic",
    "systemic",
    "toxic",
    "tonic",
];

/// Minimum number of letters before a suffix.
const MIN_STEM: usize = 2;

/// The noun of an adjective with a known suffix.
pub fn noun_of(token: &str) -> Option<String> {
    let last = *token.as_bytes().last()?;
    if token.len() < 6 || !matches!(last, b'c' | b's' | b'e') || KEPT.contains(&token) {
        return None;
    }
    // "-toxic" is toxicity, "-oxic" is lack of oxygen.
    if token.ends_with("toxic") {
        return None;
    }
    ENDS.iter().find_map(|(end, noun)| {
        let stem = token.strip_suffix(end)?;
        (stem.len() >= MIN_STEM).then(|| format!("{stem}{noun}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(adjective: &str, noun: Option<&str>) {
        assert_eq!(noun_of(adjective).as_deref(), noun, "{adjective}");
    }

    #[test]
    fn adjectives_become_nouns() {
        check("thrombotic", Some("thrombosis"));
        check("anemic", Some("anemia"));
        check("nephritic", Some("nephritis"));
        check("hypertensive", Some("hypertension"));
        check("dystrophic", Some("dystrophy"));
        check("edematous", Some("edema"));
        check("adenomatous", Some("adenoma"));
        check("metastatic", Some("metastasis"));
    }

    #[test]
    fn lookalikes_are_unchanged() {
        for word in ["systemic", "prostatic", "antibiotic", "hepatotoxic", "tonic", "disease", "static"] {
            check(word, None);
        }
    }
}
