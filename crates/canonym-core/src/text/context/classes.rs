//! Classes of words that tell what an item of a list is: a finding, or a statement with a verb, a value or a result.

/// A class of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Verbs whose subject is the patient after a comma: `mother with cancer, presents with …`.
    Subjectless,
    /// Adjectives of degree that start a new finding after a comma: `no SBO, mild atrophy`.
    NewFinding,
    /// Words that start a statement after a comma: `no LOC, vomited once`, `no meningism, alert`.
    Opening,
    /// Verbs inside a statement: `no rash, abdomen is soft`.
    Verb,
    /// Those of several subjects.
    Plural,
    /// What is said of a finding rather than about something else: `no effusion, nodule was seen`.
    Seen,
    /// Last words of a statement: `no rash, chest clear`, `bowels not open, Laxido given`.
    Result,
    /// Units and frequencies after a value: `reflux 8 L`, `aspirin 75 mg daily`.
    Unit,
    /// Words before a number that is no value: `type 2`, `trisomy 21`, `for 3 days`.
    Numbered,
    /// Conjunctions of alternatives.
    Or,
    /// Conjunctions that add.
    And,
    /// Starts of relative clauses.
    Relative,
    /// Starts of conditions.
    Condition,
    /// Conditions that limit an order, such as `hold`.
    Limit,
    /// Participles of exclusion.
    Excluded,
    /// Verbs in the past, so that what follows is no condition: `once PE was excluded`.
    Past,
    /// What is suggested is absent too if it describes an absent finding: `no mass suspicious for cancer`.
    Suggesting,
    /// Its verb after `to`: `no lesion to suggest infarction`.
    Suggest,
    /// Before a verb.
    To,
    /// Words of trials, in which `vs` compares.
    Trial,
    /// Animals and tissues after a genotype such as `+/-`.
    Carrier,
    /// Pronouns for a relative that the writer calls `my`.
    Pronoun,
    /// The writer.
    Writer,
    /// What is measured in an order: `hold for SBP < 90`.
    Measure,
    /// Before what is measured.
    For,
    /// Participles of auxiliaries.
    Been,
    /// Before a current medication.
    On,
}

/// The words of each class.
#[rustfmt::skip]
pub(super) const CLASSES: &[(Class, &[&str])] = &[
    (Class::Subjectless, &[
        "admits", "admitted", "c", "came", "comes", "complained", "complaining", "complains", "continued", "currently", "denied", "denies",
        "endorses", "given", "here", "now", "on", "prescribed", "presented", "presenting", "presents", "put", "reports", "started", "takes",
        "treated",
    ]),
    (Class::NewFinding, &[
        "NUM", "chronic", "fatty", "mild", "mildly", "moderate", "moderately", "scattered", "stable", "unchanged",
    ]),
    (Class::Opening, &[
        // Verbs.
        "admitted", "appears", "ate", "became", "came", "can", "collapsed", "complained", "complaining", "complains", "could", "described",
        "describes", "developed", "drank", "drinks", "fell", "feels", "felt", "gained", "got", "had", "has", "is", "lives", "looked", "looks",
        "lost", "presented", "presents", "remains", "reported", "reports", "said", "says", "sleeps", "slept", "smokes", "takes", "took", "uses",
        "vomited", "walked", "walks", "wants", "was", "wears", "went", "works",
        // What is done.
        "add", "added", "admit", "advise", "advised", "arrange", "arranged", "book", "booked", "check", "commence", "commenced", "continue",
        "continued", "discharge", "discharged", "discuss", "discussed", "encourage", "encouraged", "gave", "give", "given", "increase", "increased",
        "monitor", "offer", "offered", "plan", "prescribe", "prescribed", "reassure", "reassured", "recommend", "refer", "referred", "repeat",
        "repeated", "restart", "restarted", "review", "reviewed", "rx", "send", "start", "started", "stop", "stopped", "suggest", "take",
        "treat", "treated", "try", "use",
        // States of the patient.
        "able", "afebrile", "alert", "apyrexial", "asymptomatic", "awake", "comfortable", "drinking", "eating", "mobilising", "mobilizing",
        "orientated", "oriented", "settled", "tolerating", "walking", "well",
    ]),
    (Class::Verb, &[
        "are", "became", "becomes", "began", "came", "did", "does", "had", "has", "have", "is", "remain", "remained", "remains", "show", "showed",
        "shows", "was", "were",
    ]),
    (Class::Plural, &["are", "have", "were"]),
    (Class::Seen, &[
        "appreciated", "demonstrated", "detected", "evident", "felt", "found", "heard", "identified", "noted", "observed", "palpated", "present",
        "reported", "seen", "visible", "visualised", "visualized", "elicited",
    ]),
    (Class::Result, &[
        "absent", "administered", "advised", "afebrile", "alert", "applied", "arranged", "awaited", "aware", "booked", "clear", "commenced",
        "continued", "done", "elevated", "equal", "fine", "given", "good", "high", "increased", "informed", "inserted", "intact", "irregular", "low", "moist", "nad",
        "neg", "negative", "normal", "offered", "ok", "okay", "ongoing", "ordered", "pending", "performed", "planned", "pos", "positive",
        "prescribed", "present", "raised", "reactive", "reassuring", "reduced", "regular", "removed", "repeated", "requested", "resolved", "restarted", "sent",
        "settled", "soft", "stable", "started", "supple", "symmetrical", "unchanged", "unremarkable", "warm", "weak", "weaned", "well",
    ]),
    (Class::Unit, &[
        "am", "bd", "bid", "bpm", "c", "cm", "daily", "dl", "f", "g", "h", "im", "iu", "iv", "k", "kcal", "kg", "l", "m", "mane", "mcg", "meq", "mg",
        "min", "ml", "mm", "mmhg", "mmol", "mol", "ng", "nmol", "nocte", "od", "pg", "pm", "pmol", "po", "prn", "qds", "qid", "ra", "sc", "sec",
        "tds", "tid", "u", "units", "weekly", "µg", "μg",
    ]),
    (Class::Numbered, &[
        "a", "about", "after", "and", "at", "before", "by", "chapter", "chromosome", "class", "day", "every", "factor", "figure", "for", "from",
        "grade", "group", "hepatitis", "hpv", "in", "last", "least", "level", "of", "on", "or", "over", "past", "serotype", "since", "stage",
        "strain", "than", "the", "to", "trisomy", "type", "types", "under", "week", "with", "within", "x",
    ]),
    (Class::Or, &["nor", "or"]),
    (Class::And, &["and"]),
    (Class::Relative, &["that", "which", "who", "whose"]),
    (Class::Condition, &["assuming", "if", "once", "provided", "providing", "unless", "until", "till"]),
    (Class::Limit, &["if", "should", "unless", "when", "whenever"]),
    (Class::Excluded, &["excluded", "out"]),
    (Class::Past, &["was", "were"]),
    (Class::Suggesting, &[
        "compatible", "concerning", "consistent", "indicative", "suggesting", "suggestive", "suspicious", "worrisome",
    ]),
    (Class::Suggest, &["suggest"]),
    (Class::To, &["to"]),
    (Class::Trial, &[
        "arm", "arms", "comparator", "controlled", "efficacy", "placebo", "randomisation", "randomised", "randomization", "randomized", "sham",
        "trial", "trials",
    ]),
    (Class::Carrier, &[
        "animals", "cells", "embryos", "females", "fibroblasts", "littermates", "males", "mice", "mouse", "mutants", "neurons", "pups", "rats", "zebrafish",
    ]),
    (Class::Pronoun, &["he", "she", "himself", "herself", "his", "her", "they", "their"]),
    (Class::Writer, &["i", "im", "ive", "me", "my", "myself"]),
    (Class::Measure, &[
        "bp", "glucose", "heart", "hr", "inr", "k", "map", "platelets", "pulse", "rr", "sbp", "systolic",
    ]),
    (Class::For, &["for"]),
    (Class::Been, &["been", "being"]),
    (Class::On, &["on"]),
];
