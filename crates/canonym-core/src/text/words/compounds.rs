//! Compounds of an organ and a disorder: `nephropathy` is a disease of the kidney.

/// Combining forms of organs, and the roots of the organs.
const ORGANS: &[(&str, &str)] = &[
    ("nephro", "kidney"),
    ("reno", "kidney"),
    ("hepato", "liver"),
    ("cardio", "heart"),
    ("neuro", "nerve"),
    ("encephalo", "brain"),
    ("cerebro", "brain"),
    ("myo", "muscle"),
    ("arthro", "joint"),
    ("osteo", "bone"),
    ("dermato", "skin"),
    ("ophthalmo", "eye"),
    ("oculo", "eye"),
    ("retino", "retina"),
    ("oto", "hearing"),
    ("vestibulo", "vestibular"),
    ("cochleo", "cochlea"),
    ("pneumo", "lung"),
    ("gastro", "stomach"),
    ("entero", "intestine"),
    ("colo", "colon"),
    ("pancreato", "pancreas"),
    ("spleno", "spleen"),
    ("hemato", "blood"),
    ("thrombocyto", "platelet"),
    ("myelo", "marrow"),
    ("lympho", "lymph"),
    ("lymphadeno", "lymph"),
    ("angio", "vessel"),
    ("vasculo", "vessel"),
    ("valvulo", "valve"),
    ("glomerulo", "glomerulus"),
    ("tubulo", "tubule"),
    ("uro", "urine"),
    ("masto", "breast"),
    ("psycho", "psychiatric"),
    ("immuno", "immunity"),
    ("embryo", "embryo"),
    ("fetu", "fetus"),
    ("feto", "fetus"),
    ("endocrino", "endocrine"),
    ("coagulo", "coagulation"),
    ("chondro", "cartilage"),
    ("tendo", "tendon"),
];

/// Suffixes, and the roots of the disorders.
const ENDS: &[(&str, &str)] = &[
    ("pathy", "disease"),
    ("pathic", "disease"),
    ("toxicity", "toxicity"),
    ("toxic", "toxicity"),
    ("megaly", "dilatation"),
    ("deficiency", "deficiency"),
    ("deficient", "deficiency"),
    ("suppression", "suppression"),
    ("degeneration", "degeneration"),
    ("carcinogenesis", "carcinogenesis"),
    ("carcinogen", "carcinogenesis"),
    ("malformation", "abnormality"),
];

/// The organ and the disorder of a canonical token, as representatives of their synonym groups.
pub fn parts_of(token: &str) -> Option<[&'static str; 2]> {
    if token.len() < 8 {
        return None;
    }
    ENDS.iter().find_map(|(end, disorder)| {
        let stem = token.strip_suffix(end)?;
        let organ = ORGANS.iter().find(|(form, _)| *form == stem)?;
        Some([organ.1, *disorder])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compounds_are_taken_apart() {
        assert_eq!(parts_of("hepatotoxicity"), Some(["liver", "toxicity"]));
        assert_eq!(parts_of("nephrotoxic"), Some(["kidney", "toxicity"]));
        assert_eq!(parts_of("cardiomyopathy"), None);
        assert_eq!(parts_of("pathy"), None);
    }
}
