//! Adjectives of Greek and Latin nouns: `thrombotic` to `thrombosis`, by ending.

/// Ends of adjectives and of their nouns. The first that fits counts.
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

/// Words that only look as if they had one of these ends, or of which the noun means something else.
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

/// Letters that must stand before an ending.
const MIN_STEM: usize = 2;

/// The noun of an adjective that ends in a known way.
pub fn noun_of(token: &str) -> Option<String> {
    let last = *token.as_bytes().last()?;
    if token.len() < 6 || !matches!(last, b'c' | b's' | b'e') || KEPT.contains(&token) {
        return None;
    }
    // "-toxic" is toxicity, "-oxic" is a lack of oxygen.
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
    fn lookalikes_stay() {
        for word in ["systemic", "prostatic", "antibiotic", "hepatotoxic", "tonic", "disease", "static"] {
            check(word, None);
        }
    }
}
