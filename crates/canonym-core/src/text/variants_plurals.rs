//! Tables and suffix rules of [`singular`](super::variants::singular).

/// Irregular plurals. Sorted by plural.
const IRREGULAR: [(&str, &str); 104] = [
    ("apices", "apex"),
    ("atlases", "atlas"),
    ("axes", "axis"),
    ("biases", "bias"),
    ("buffaloes", "buffalo"),
    ("calories", "calorie"),
    ("calves", "calf"),
    ("calyces", "calyx"),
    ("canvases", "canvas"),
    ("cheeses", "cheese"),
    ("children", "child"),
    ("cicatrices", "cicatrix"),
    ("clitorises", "clitoris"),
    ("cookies", "cookie"),
    ("corpora", "corpus"),
    ("cortices", "cortex"),
    ("crises", "crisis"),
    ("criteria", "criterion"),
    ("crura", "crus"),
    ("doses", "dose"),
    ("echoes", "echo"),
    ("enemata", "enema"),
    ("epididymides", "epididymis"),
    ("feet", "foot"),
    ("foramina", "foramen"),
    ("fornices", "fornix"),
    ("fructoses", "fructose"),
    ("fucoses", "fucose"),
    ("galactoses", "galactose"),
    ("gases", "gas"),
    ("geese", "goose"),
    ("genera", "genus"),
    ("glucoses", "glucose"),
    ("grandchildren", "grandchild"),
    ("halves", "half"),
    ("hexoses", "hexose"),
    ("hooves", "hoof"),
    ("hoses", "hose"),
    ("irides", "iris"),
    ("irises", "iris"),
    ("juices", "juice"),
    ("knives", "knife"),
    ("lactoses", "lactose"),
    ("larynges", "larynx"),
    ("leaves", "leaf"),
    ("lenses", "lens"),
    ("lice", "louse"),
    ("lives", "life"),
    ("loaves", "loaf"),
    ("lumina", "lumen"),
    ("maltoses", "maltose"),
    ("mangoes", "mango"),
    ("mannoses", "mannose"),
    ("megadoses", "megadose"),
    ("men", "man"),
    ("mice", "mouse"),
    ("mosquitoes", "mosquito"),
    ("movies", "movie"),
    ("niches", "niche"),
    ("noses", "nose"),
    ("ova", "ovum"),
    ("overdoses", "overdose"),
    ("overuses", "overuse"),
    ("oxen", "ox"),
    ("pancreases", "pancreas"),
    ("pelves", "pelvis"),
    ("pelvises", "pelvis"),
    ("penes", "penis"),
    ("penises", "penis"),
    ("pentoses", "pentose"),
    ("phenomena", "phenomenon"),
    ("poses", "pose"),
    ("potatoes", "potato"),
    ("primroses", "primrose"),
    ("purposes", "purpose"),
    ("radices", "radix"),
    ("riboses", "ribose"),
    ("roses", "rose"),
    ("salpinges", "salpinx"),
    ("saphenae", "saphena"),
    ("schemata", "schema"),
    ("scoleces", "scolex"),
    ("septa", "septum"),
    ("sera", "serum"),
    ("shelves", "shelf"),
    ("spermatozoa", "spermatozoon"),
    ("sphinges", "sphinx"),
    ("stigmata", "stigma"),
    ("sucroses", "sucrose"),
    ("taxes", "tax"),
    ("teeth", "tooth"),
    ("testes", "testis"),
    ("thieves", "thief"),
    ("thoraces", "thorax"),
    ("tomatoes", "tomato"),
    ("traumata", "trauma"),
    ("trehaloses", "trehalose"),
    ("uses", "use"),
    ("varices", "varix"),
    ("volcanoes", "volcano"),
    ("wives", "wife"),
    ("wolves", "wolf"),
    ("women", "woman"),
    ("xyloses", "xylose"),
];

/// Singular words in `s`, other than those in `ss`, `us` and `is`. Sorted.
#[rustfmt::skip]
const SINGULAR: [&str; 61] = [
    "achilles", "aedes", "aids", "always", "anopheles", "asbestos", "ascites", "atlas", "bias", "biceps",
    "cannabis", "canvas", "caries", "chaos", "cosmos", "cutis", "diabetes", "does", "ethos", "facies", "feces",
    "forceps", "gas", "goes", "haemonchus", "herpes", "hives", "isosporas", "jealous", "kudos", "kwas", "lens",
    "less", "lues", "manubes", "measles", "menses", "mumps", "pampas", "pancreas", "pathos", "plus", "pubes",
    "pyrites", "quadriceps", "rabies", "rickets", "sans", "scabies", "series", "shingles", "species", "superficies",
    "tabes", "tetanos", "texas", "tongs", "triceps", "whereas", "xerotes", "yaws",
];

/// Suffixes of singular words in `s`, such as genera.
const SINGULAR_ENDS: [&str; 4] = ["ceps", "monas", "myces", "oides"];

/// Suffixes of plurals in `i` with singular `us`.
#[rustfmt::skip]
const US: [&str; 35] = [
    "acini", "alveoli", "annuli", "bacilli", "bronchi", "calculi", "canaliculi", "cocci", "colliculi", "cumuli",
    "emboli", "foci", "fundi", "fungi", "glomeruli", "gyri", "hippocampi", "humeri", "hypothalami", "loci",
    "menisci", "nevi", "nidi", "nuclei", "nucleoli", "radii", "rami", "sinusoidi", "stimuli", "sulci", "thalami",
    "thrombi", "tophi", "tragi", "villi",
];

/// Suffixes of plurals in `ae`. Others are names of families, or genitives in species names: "Klebsiella pneumoniae".
#[rustfmt::skip]
const AE: [&str; 50] = [
    "algae", "ampullae", "amygdalae", "antennae", "aortae", "aphthae", "areolae", "axillae", "bullae", "bursae",
    "cannulae", "caveolae", "chordae", "cisternae", "cochleae", "conchae", "cristae", "faunae", "fibulae",
    "fimbriae", "fistulae", "formulae", "fossae", "hyphae", "lacunae", "laminae", "larvae", "maculae", "mammae",
    "maxillae", "papillae", "papulae", "patellae", "petechiae", "placentae", "pleurae", "plicae", "pupae",
    "retinae", "scapulae", "sequelae", "striae", "tibiae", "trabeculae", "ulnae", "uvulae", "vaginae", "valvulae",
    "vertebrae", "vesiculae",
];

/// Suffixes of plurals in `a` with their singular. "media", "data" and the like are unchanged.
const A: [(&str, &str); 17] = [
    ("atria", "atrium"),
    ("bacteria", "bacterium"),
    ("chondria", "chondrion"),
    ("cilia", "cilium"),
    ("crania", "cranium"),
    ("diverticula", "diverticulum"),
    ("endothelia", "endothelium"),
    ("epithelia", "epithelium"),
    ("ganglia", "ganglion"),
    ("mesothelia", "mesothelium"),
    ("myocardia", "myocardium"),
    ("omata", "oma"),
    ("ostia", "ostium"),
    ("reticula", "reticulum"),
    ("septula", "septulum"),
    ("sporangia", "sporangium"),
    ("ventricula", "ventriculum"),
];

/// Suffixes with `s` and their singular; the first match wins, so long suffixes come before short ones.
const ENDINGS: [(&str, &str); 58] = [
    ("itides", "itis"),
    ("phalanges", "phalanx"),
    ("pharynges", "pharynx"),
    ("appendices", "appendix"),
    ("neocortices", "neocortex"),
    ("cervices", "cervix"),
    ("cortices", "cortex"),
    ("helices", "helix"),
    ("plices", "plex"),
    ("indices", "index"),
    ("matrices", "matrix"),
    ("vertices", "vertex"),
    ("vortices", "vortex"),
    ("eyelashes", "eyelash"),
    ("headaches", "headache"),
    ("backaches", "backache"),
    ("toothaches", "toothache"),
    ("earaches", "earache"),
    ("stomachaches", "stomachache"),
    ("staxes", "staxis"),
    ("ylaxes", "ylaxis"),
    ("celluloses", "cellulose"),
    ("iases", "iasis"),
    ("stases", "stasis"),
    ("ectases", "ectasis"),
    ("yses", "ysis"),
    ("eses", "esis"),
    ("oses", "osis"),
    ("schises", "schisis"),
    ("phthises", "phthisis"),
    ("sepses", "sepsis"),
    ("opses", "opsis"),
    ("apses", "apse"),
    ("auses", "ause"),
    ("ouses", "ouse"),
    ("fuses", "fuse"),
    ("abuses", "abuse"),
    ("misuses", "misuse"),
    ("excuses", "excuse"),
    ("reuses", "reuse"),
    ("uses", "us"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("eaches", "each"),
    ("oaches", "oach"),
    ("tches", "tch"),
    ("nches", "nch"),
    ("rches", "rch"),
    ("aches", "ache"),
    ("ches", "ch"),
    ("xes", "x"),
    ("zzes", "zz"),
    ("tzes", "tz"),
    ("quies", "quy"),
    ("women", "woman"),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
];

/// One step towards the singular; `None` for a singular.
pub(super) fn step(token: &str) -> Option<String> {
    // Shorter tokens are ambiguous: "as", "gas", "its".
    if token.len() <= 2 {
        return None;
    }
    if let Ok(row) = IRREGULAR.binary_search_by_key(&token, |pair| pair.0) {
        return Some(IRREGULAR[row].1.to_owned());
    }
    match token.as_bytes().last()? {
        b's' if token.len() >= 4 => without_s(token),
        b'i' => US.iter().any(|end| token.ends_with(end)).then(|| format!("{}us", &token[..token.len() - 1])),
        b'e' => AE.iter().any(|end| token.ends_with(end)).then(|| token[..token.len() - 1].to_owned()),
        b'a' => {
            let (plural, one) = A.iter().find(|(plural, _)| token.ends_with(plural))?;
            Some(format!("{}{one}", token.strip_suffix(plural)?))
        }
        _ => None,
    }
}

fn without_s(token: &str) -> Option<String> {
    if SINGULAR.binary_search(&token).is_ok() || SINGULAR_ENDS.iter().any(|end| token.ends_with(end)) {
        return None;
    }
    if let Some((plural, one)) = ENDINGS.iter().find(|(plural, _)| token.ends_with(plural)) {
        return Some(format!("{}{one}", token.strip_suffix(plural)?));
    }
    if let Some(stem) = token.strip_suffix("ies") {
        // "ties", "pies", but "bodies".
        return Some(if stem.len() <= 1 { format!("{stem}ie") } else { format!("{stem}y") });
    }
    // A plural `s` follows a letter: "1980s" is unchanged.
    token.strip_suffix('s').filter(|stem| stem.ends_with(char::is_alphabetic)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::variants::singular;

    fn check(pairs: &str) {
        for pair in pairs.split_whitespace() {
            let (plural, one) = pair.split_once('>').unwrap_or((pair, pair));
            assert_eq!(singular(plural), one, "{plural}");
        }
    }

    #[test]
    fn tables_are_sorted() {
        assert!(IRREGULAR.is_sorted());
        assert!(SINGULAR.is_sorted());
    }

    #[test]
    fn english_plurals() {
        check(
            "tumors>tumor biopsies>biopsy diseases>disease boxes>box abscesses>abscess rashes>rash headaches>headache \
             viruses>virus sinuses>sinus causes>cause houses>house nurses>nurse synapses>synapse proteases>protease \
             responses>response feet>foot teeth>tooth women>woman children>child calories>calorie potatoes>potato toes>toe \
             valves>valve leaves>leaf branches>branch sizes>size kidneys>kidney exercises>exercise cases>case ties>tie",
        );
    }

    #[test]
    fn latin_and_greek_plurals() {
        check(
            "metastases>metastasis diagnoses>diagnosis neuroses>neurosis prostheses>prosthesis analyses>analysis \
             carcinomata>carcinoma vertebrae>vertebra nuclei>nucleus bacilli>bacillus streptococci>streptococcus \
             bacteria>bacterium indices>index cortices>cortex ganglia>ganglion phalanges>phalanx diverticula>diverticulum \
             arthritides>arthritis candidiases>candidiasis crises>crisis criteria>criterion foramina>foramen ova>ovum \
             mitochondria>mitochondrion testes>testis bronchiectases>bronchiectasis acidoses>acidosis doses>dose bases>base",
        );
    }

    #[test]
    fn singular_words_in_s_stay() {
        check(
            "virus diabetes pancreas herpes rabies caries scabies mumps measles biceps series species axis pelvis aids \
             ascites abscess pertussis tetanus gas pseudomonas streptomyces lens pneumoniae influenzae coli data media \
             is as us its does 1980s",
        );
    }

    proptest! {
        #[test]
        fn singular_is_settled_after_one_call(token in "(s|es|ses|ies|ch|x|us|a|e|i|o|women|feet|uses|omata|[a-zéα]){0,8}") {
            let once = singular(&token).into_owned();
            prop_assert_eq!(singular(&once), once.clone());
            prop_assert_eq!(once.is_empty(), token.is_empty());
        }
    }
}
