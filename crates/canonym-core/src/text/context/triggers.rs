//! English triggers, pseudo-triggers and terminations, and their lookup.
//!
//! Written for this project from the published descriptions of NegEx and ConText. A pattern consists of lower-case
//! words: `(a|b c|)` means any of the alternatives, `KIN` a word for a relative, `NUM` a number of up to three digits
//! or a number word, `YEAR` a year, and the words of [`SPECIAL`] stand for non-words. Words are tokens of
//! [`crate::text::tokens`]: `doesn't` is `doesn t`, `r/o` is `r o`, `mother's` is `mother`.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::{Context, Experiencer, Negation, Temporality};

/// The effect of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Negated,
    Possible,
    Historical,
    Hypothetical,
    Family,
}

/// Kinds of effects; triggers of different kinds do not interfere.
pub(super) const NEGATION: usize = 0;
pub(super) const TEMPORALITY: usize = 1;
pub(super) const EXPERIENCER: usize = 2;

impl Effect {
    pub(super) const N_KINDS: usize = 3;

    pub(super) fn kind(self) -> usize {
        match self {
            Effect::Negated | Effect::Possible => NEGATION,
            Effect::Historical | Effect::Hypothetical => TEMPORALITY,
            Effect::Family => EXPERIENCER,
        }
    }

    pub(super) fn apply(self, context: &mut Context) {
        match self {
            Effect::Negated => context.negation = Negation::Negated,
            Effect::Possible => context.negation = Negation::Possible,
            Effect::Historical => context.temporality = Temporality::Historical,
            Effect::Hypothetical => context.temporality = Temporality::Hypothetical,
            Effect::Family => context.experiencer = Experiencer::Family,
        }
    }
}

/// The direction in which a trigger applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
    Both,
}

impl Direction {
    pub(super) fn is_forward(self) -> bool {
        self != Direction::Backward
    }

    pub(super) fn is_backward(self) -> bool {
        self != Direction::Forward
    }
}

/// Words for non-words: the start and the end of a sentence, a question mark before a word, numbers, signs before words, answers
/// after words, and the colon after `negative`.
pub(super) const SPECIAL: [&str; 11] =
    ["START", "END", "?", "NUM", "YEAR", "PLUS", "MINUS", "PLUSMINUS", "YES", "NO", "COLON"];

/// Bit of a termination that also ends the effect of headings.
pub(super) const HEADED: usize = 7;
/// Bit of a termination that ends only [`BRIEF`] triggers.
pub(super) const BRIEFLY: usize = 6;

/// The role of a phrase.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rule {
    /// No effect, and its words do not match other rules.
    Pseudo,
    /// Ends the scopes of the kinds whose bits are set.
    Termination(u8),
    /// Suspends the kinds whose bits are set up to the next comma: `history of diabetes on metformin, and gout`.
    Aside(u8),
    /// Applies to the text in its scope.
    Trigger { effects: &'static [Effect], direction: Direction, window: u8 },
}

impl Rule {
    pub(super) fn is_backward(&self) -> bool {
        matches!(self, Rule::Trigger { direction, .. } if direction.is_backward())
    }
}

use Direction::{Backward, Both, Forward};
use Effect::{Family, Historical, Hypothetical, Negated, Possible};

/// Maximum scope of backward triggers in words; in longer clauses the subject is usually another.
const BACK: u8 = 8;
/// Scope of `not` in words; it often negates a verb.
const NOT: u8 = 6;

/// Window of a trigger whose scope ends before `with`: `s/p fall with hip pain`.
pub(super) const BRIEF: u8 = u8::MAX;

/// Effects, direction, window in words (0 means unlimited) and patterns.
type Row = (&'static [Effect], Direction, u8, &'static [&'static str]);

#[rustfmt::skip]
const TRIGGERS: &[Row] = &[
    (&[Negated], Forward, 0, &[
        "no", "non", "denies", "denied", "denying", "deny", "without", "w o", "neither", "nor", "never",
        "absence of", "lack of", "free of", "free from", "clear of",
        "negative for", "(is|was|are|were|has been|have been) (negative|unremarkable) for", "unremarkable for", "declines", "with no", "instead of", "rather than",
        "(rules|ruling) out", "ruled (him|her|patient|the patient) out for", "(is|was|been|) ruled out for",
        "(fail|fails|failed|failing) to (show|reveal|demonstrate|identify|detect|find|disclose)",
        "(not|cannot|can not|could not|unable to) (see|identify|find|detect|demonstrate|appreciate|visualize|visualise)",
        "no (evidence|sign|signs|indication|suggestion|findings|complaint|complaints|symptoms) (|of|for|to suggest|suggesting|suggestive of|suspicious for|concerning for|consistent with)",
        "no (new|acute|definite|obvious|overt|apparent|further|more|other|known|possible|probable|suspected)",
        "no (reason|cause) to (suspect|think|believe)", "no (suspicion|concern) (of|for)",
        "no longer (any|has|have|having|had|reports|complains of|)",
        "nothing (to suggest|suggesting|suggestive of|to indicate|consistent with)",
        "not (suggestive of|consistent with|compatible with|suspicious for|concerning for|indicative of|thought to be|felt to be)",
        "(does|do|did|is|was|are|were|has|have|had) not (have|show|reveal|demonstrate|suggest|indicate|report|complain of|experience|exhibit)",
        "(doesn|don|didn) t (have|show|reveal|suggest|report|complain of|experience|exhibit|)",
        "(hasn|haven|hadn|isn|wasn|aren|weren) t",
        "at no time", "resolution of", "unlikely to (have|be|represent)", "unlikely that",
        "(hardly|scarcely) any", "ruling out", "excludes", "excluded", "excluding",
        "KIN (denies|denied|deny)",
        "MINUS", "MINUS (for|ve for)", "neg", "neg for", "(|pertinent) negatives (|include|including|are|for)", "(negative|neg) COLON",
        "(denies|denied|never|without) (takes|taking|use of)", "no longer (takes|taking|on)",
    ]),
    (&[Negated], Forward, NOT, &["not", "cannot have", "(|currently|now) not on"]),
    (&[Negated], Forward, 2, &["(lacks|lacked|lacking)"]),
    (&[Negated], Forward, 2, &["(withhold|withholds|withheld|withholding|hold|holding|held|refuses|refused|refusing|declined|discontinue|discontinued|discontinues)"]),
    (&[Negated], Both, BACK, &["(|very|highly) unlikely", "absent", "nil", "ruled out"]),
    (&[Negated], Backward, BACK, &[
        "(is|was|are|were|has been|have been|been) ruled out",
        "(is|was|are|were|has been|have been) excluded",
        "(is|was|are|were|has been|have been|) (not|never) (present|seen|found|detected|identified|noted|observed|demonstrated|reported|evident|appreciated|visualized|visualised|visible|confirmed|heard|felt|palpable|palpated|elicited)",
        "(could not|cannot|can not|couldn t) be (seen|found|detected|identified|demonstrated|appreciated|visualized|visualised|confirmed|elicited)",
        "(is|was|are|were) (absent|negative|lacking|denied|nonexistent|unremarkable)", "(has|have) been (absent|denied|negative)",
        "(is|was|are|were|be|been) (not|never) (given|administered|started|prescribed|used|indicated)", "(not|never) (given|administered|taken|started) END",
        "(is|was|are|were|be|been|being) (withheld|held|discontinued|stopped|refused|omitted)",
        "none", "negative", "NO", "MINUS ve",
        "(has|have|had) (|now|since|completely|fully) resolved", "(is|are|was|were) (|now|completely) (resolved|gone)", "resolved",
        "(has|have|had) (disappeared|cleared|subsided|abated)",
        "(is|was) (|highly|very) unlikely", "(has|have) been (ruled out|excluded)", "free",
    ]),
    (&[Possible], Forward, 0, &[
        "possible", "possibly", "possibility of", "probable", "probably", "perhaps", "maybe", "presumed", "presumably",
        "presumptive", "suspect", "suspects", "suspicion of", "suspicion for", "suspicious for", "suspicious of",
        "likely", "most likely", "(highly|very|more) likely", "apparent", "questionable", "(question|questions) of", "?", "query",
        "(suggests|suggest|suggested|suggesting|suggestive of|suggestion of|indicative of)",
        "(consistent|compatible|in keeping) with", "(concern|concerns|concerning|worrisome) (for|about|of)",
        "(may|might|could|can) (be|have|represent|reflect|indicate|suggest|also be|also have|be due to|be related to)",
        "may be due to", "might be due to", "could be due to", "may well be", "might well be",
        "(cannot|can not|could not|can t|couldn t|unable to|not able to) (rule out|exclude|completely rule out|entirely exclude|definitively rule out)",
        "rule out", "r o", "to exclude", "(must|should|would|will|need to|needs to|please) rule out",
        "(evaluate|evaluated|evaluation|assess|assessed|workup|work up|investigated|investigation|check|checked) for",
        "(appears|appear|appeared|seems|seem|seemed) to (have|be|represent)", "thought to (be|have|represent)", "felt to (be|have|represent)",
        "believed to (be|have|represent)", "differential (diagnosis|diagnoses|) (includes|included|include|of|is|was|)", "ddx",
        "(unclear|uncertain|unknown|unsure|doubtful) (if|whether|that)", "not (certain|sure|clear|known) (if|whether|that)",
        "whether", "(is|was) there", "raises (the|) (question|possibility|suspicion) of",
        "working diagnosis (of|is|)", "impression of", "not (convincing|diagnostic) for", "equivocal for", "borderline", "PLUSMINUS",
    ]),
    (&[Possible], Backward, BACK, &[
        "(cannot|can not|could not|can t|couldn t|has not been|have not been|is not|was not|not) (be|) (|completely|entirely|definitively|fully) (ruled out|excluded)",
        "(is|was|are|were|remains|has been) (|strongly|highly|clinically) (suspected|possible|probable|likely|questionable|questioned|considered|presumed|conceivable|a possibility|a concern|in question|in the differential)",
        "(must|should|has to|have to|needs to|to) be (considered|excluded|ruled out)", "(is|was) unclear", "(is|was) uncertain",
        "not yet confirmed",
    ]),
    (&[Negated], Backward, 3, &["(withheld|held|discontinued|stopped|refused|declined|omitted) END"]),
    (&[Possible], Both, BACK, &["suspected"]),
    (&[Possible], Backward, 3, &["(possible|possibly|probable|probably|perhaps|presumably|likely|maybe) END"]),
    (&[Possible], Both, 3, &["versus", "vs"]),
    (&[Historical], Forward, 0, &[
        "(history|hx|histories) (of|for|significant for|notable for|remarkable for|positive for|includes|included|including)", "h o", "hx", "history",
        "(previous|prior|earlier|past|old|remote|former)",
        "(previously|formerly) (diagnosed with|treated for|had|known|suffered from)",
        "past (medical|surgical|) history (|of|significant for|notable for|remarkable for|positive for|includes|is significant for|is notable for)",
        "(pmh|pmhx|psh|pshx|past medical hx) (|of|significant for|sig for|notable for|positive for|includes|include)", "medical history (|of|significant for|notable for|includes)",
        "years ago (he|she|patient)", "START NUM (years|year|months|decades) ago", "START in YEAR", "START in (childhood|adolescence)", "START (last|the last) year",
        "START as a (child|teenager|boy|girl|youth|baby|young man|young woman|young adult)", "survivor of", "recovered from", "used to have",
    ]),
    (&[Historical], Forward, BRIEF, &["(status|) post", "s p"]),
    (&[Historical], Forward, 2, &["childhood"]),
    (&[Historical], Backward, 10, &[
        "(|NUM|many|several|some|a few) (years|decades|months) (ago|earlier|before|previously)", "(a|one) (year|decade) (ago|earlier)",
        "(in|back in|around|circa) (|early|late|the) YEAR", "last year", "in (the past|childhood|adolescence|infancy|early childhood|youth)", "in (his|her) (childhood|youth|teens|twenties|thirties|forties)",
        "as (a|an) (child|teenager|boy|girl|youth|baby|infant|young man|young woman|young adult|adolescent)", "in remote past", "in remission", 
        "in the distant past",
    ]),
    (&[Historical], Both, BACK, &["previously", "formerly"]),
    (&[Hypothetical], Forward, 0, &[
        "if", "unless", "in (case|the event) of", "in (case|the event) that", "in the case of", "as needed for", "prn", "p r n", "when needed for",
        "return (|to the hospital|to the clinic|to clinic|to the emergency department|to the emergency room|to the er|to the ed|immediately|here) for",
        "(come back|call|see a doctor|seek care|seek attention) for", "START should", "should (he|she|the patient|you|they|there be) (have|develop|experience|notice|get|feel|)",
        "(watch|monitor|monitored|monitoring|look|observe|observed|alert|beware) (|out|closely) (for|of)", "(|at|increased|high|low|higher|lower|elevated|the|his|her) (risk|risks) (of|for)",
        "at (|high|increased|low) risk (of|for)", "at risk", "(prevent|prevents|preventing|prevention of|to avoid|avoid|avoidance of|guard against|protect against)",
        "(prophylaxis|prophylactic|vaccination|vaccinated|immunization|immunisation|vaccine) (against|for|of)", "(screen|screened|screening|screens) for",
        "(warned|cautioned|counselled|counseled|advised|educated|instructed|concerned|worried|warning|fear|fears|fearful|afraid|precautions) (about|against|of|for|on)",
        "return precautions", "signs and symptoms of", "(potential|potentially) (for|)", "(will|would|to) (return|call) (if|for|with)", "in order to prevent", "until", "so as not to get",
    ]),
    (&[Hypothetical], Backward, 4, &["(prophylaxis|precautions|prevention|screening|vaccination|vaccine|risk)"]),
    (&[Family], Forward, 0, &[
        "family medical history", "(familial|family) (background|predisposition) of", "KIN", "(fh|fhx|fam hx|family hx) (of|for|PLUS for|positive for|pos for|significant for|sig for|notable for|remarkable for)", "KIN (had|has|have|with|died of|died from|suffers from|suffered from|diagnosed with|is|was|presented with|presents with|takes|taking|is on)", "patient KIN",
    ]),
    (&[Negated, Family], Forward, 0, &["(fh|fhx|fam hx|family hx|fam history) (neg|negative|MINUS) for"]),
    (&[Family], Both, 12, &["(family|fam) (history|hx)", "famhx", "fhx"]),
    (&[Family], Backward, BACK, &[
        "(in|of|by|from) (|his|her|the|a|an|both|NUM|several|many|one|two|three|another|other|all|the patient) (|paternal|maternal|older|younger|elder|half) KIN",
        "(in|affecting|on) (|paternal|maternal|both) KIN", "(runs|run|running) in (the|his|her) family", "in (the|his|her) family", "on (the|his|her) (mother|father|maternal|paternal) side",
    ]),
];

#[rustfmt::skip]
const PSEUDO: &[&str] = &[
    // Negations of a change, a cause or an action.
    "(no|without|not any) (|significant|further|interval|appreciable|real|much|marked|apparent|major|obvious) (change|changes|increase|decrease|improvement|worsening|progression|relief|reduction|response|benefit|alteration|difference|deterioration) (|in|of|from|for|to|with|on)",
    "no (|further|additional|other|specific) (treatment|therapy|surgery|operation|medication|medications|intervention|need|follow up|workup|work up|investigation|tests|testing)",
    "no (doubt|question|wonder) (|about|of|that|but)", "(not|no) only", "not (merely|just|simply|solely|necessarily)", "no sooner", "no one", "no matter",
    "without (difficulty|difficulties|treatment|therapy|help|assistance|delay|doubt|further|intervention|medication|surgery)",
    "(did|does|do|has|have|had|was|is|could|can|would|will|should) not (|fully|completely|adequately) (relieve|relieved|cure|cured|improve|improved|help|helped|take|taken|taking|treat|treated|respond|responded|tolerate|tolerated|sleep|walk|work|stop|stopped|resolve|resolved|resolving|alleviate|control|controlled|well controlled|prevent|prevented|change|changed|affect|know|want|like|attend|see a|return)",
    "(didn|doesn|don|couldn|wouldn) t (relieve|cure|improve|help|take|treat|respond|tolerate|sleep|walk|work|stop|resolve|control|know|want|like)",
    "(cannot|can not) (tolerate|sleep|walk|work|stop|recall|remember)",
    "(is|are|was|were|) not (well|fully|adequately|poorly) (controlled|treated|managed)", "not (improving|improved|improve|resolved|resolving|healing|better|responding|further|drain|changed|new|a new|in|yet on|treated|controlled|known to be)",
    "(gram|receptor|her NUM|rh|pressure|culture|estrogen receptor|progesterone receptor|triple|antigen|smear|seronegative) negative", "negative (pressure|margins|feedback|symptoms|symptom|control|controls|family history|affect|experience)",
    "non (small|hodgkin|insulin|steroidal|compliant|compliance|specific|invasive|tender|st|alcoholic|healing|union)",
    "absent minded", "free (air|fluid|flap|text|water|t NUM)", "none (the less|theless)", "not (infrequent|infrequently|uncommon|uncommonly|rare|rarely|unusual|unusually)", "if not",
    // Words of uncertainty without that meaning.
    "as likely", "(may|june) YEAR", "(quite|clearly) apparent", "whether or not",
    // `History` that is current.
    "history of (present|the present|presenting) (illness|complaint|problem)", "(social|travel|occupational|sexual|obstetric|developmental|birth|drug|medication|smoking|surgical consult) history (|of)",
    "(history|histories) (and|or|taking|obtained|given|provided|per|is|was|from|physical|limited|unobtainable|as)", "by history", "natural history (|of)", "case history", "(poor|good|reliable|unreliable) (historian|history)", "history NUM", "per history",
    "(past|last|previous|prior) (|NUM|few|several|couple of) (day|days|night|nights|week|weeks|month|months|hour|hours|evening|morning)", "prior to", "previous to", "(previously|prior) (healthy|well|fit)", "(in|over|for|during) the (past|last) (|NUM|few|several) (day|days|week|weeks|month|months|hour|hours|year|years)",
    "(previous|prior|earlier|old) (study|studies|exam|examination|film|films|scan|visit|admission|report|imaging|ct|mri)", "NUM (year|years|month|months|week|weeks|day|days) old", "year old", "post (op|operative|operatively|prandial|menopausal|mortem)",
    // No hypothetical meaning.
    "(asked|asks|asking|wonders|wondered|wondering|inquired) (if|whether)", "as if", "even if", "what if", "risk (factor|factors) (|for|of|include|includes|including)", "(low|high) risk pregnancy", "until (today|now|yesterday|recently)", "asked about",
    // Places and times, not drugs.
    "on (the|his|her|their|a|an|exam|exertion|ct|mri|cxr|ecg|ekg|echo|ultrasound|us|xray|x ray|imaging|scan|film|biopsy|left|right|both|room|day|days|monday|tuesday|wednesday|thursday|friday|saturday|sunday|NUM|palpation|auscultation|inspection|discharge|hold|side|top|account|average|and off|review|repeat|follow|standing|walking|movement|swallowing|urination|inspiration)",
    // Relatives who live with the patient, and words that mean no relatives.
    "(lives|living|lived|stays|staying|resides|accompanied|presents|came|brought|brought in|found|witnessed|observed|seen|reported|according|discussed|spoke|spoken|speaking) (with|by|to) (|his|her|the|both|a) KIN", "per (|his|her|the|patient|patient s) KIN",
    "(foster|adoptive|step|host) KIN", "KIN in law", "(nursing|religious) sister", "family (physician|doctor|practice|practitioner|planning|medicine|meeting|member present|room)", "(sister|mother|daughter) (cell|cells|ship|lesion|nodule|chromatid|chromatids|liquor)",
];

/// Kinds that end, and patterns.
#[rustfmt::skip]
const TERMINATIONS: &[(&[usize], &[&str])] = &[
    (&[NEGATION, TEMPORALITY], &["but", "however", "nevertheless", "nonetheless", "yet", "though", "although", "whereas", "while", "despite", "in spite of"]),
    (&[NEGATION], &[
        "(except|except for|excepting|aside from|apart from|other than|besides|with the exception of)",
        "(because|because of|due to|secondary to|caused by|on account of|owing to|as a result of|attributed to|related to)",
        "(as|for) (a|the) (cause|source|reason|etiology|origin) (of|for)", "(cause|source|reason|etiology|origin|trigger) (of|for)", "(causes|causing|which causes) (of|for|)",
        "and (the|a|an|his|her|has|had|is|was|are|were|does|did|reports|shows|showed|remains|still|now|presents|developed|complains|admits|endorses|positive|with)",
        "positive for", "(is|was|are|were) (positive|present)", "(reports|reported|reporting|endorses|endorsed|admits|admitted|admits to|complains|complained|complains of|complained of|states|developed|reveals|revealed|shows|showed|demonstrates|demonstrated|confirmed|confirms)",
        "which", "that (is|was|has)", "then", "only", "and only",
        "PLUS", "PLUS (for|ve|ve for)", "YES", "pos", "pos for", "(|pertinent) positives (|include|including|are)", "(positive|pos) COLON", "c o", "p w",
    ]),
    (&[TEMPORALITY], &[
        "because", "because of", "since (|yesterday|today|this|last week|monday|tuesday|wednesday|thursday|friday|saturday|sunday|NUM)", "(presents|presented|presenting|presentation) (with|for|)", "now", "now (with|has|having|presents with)", "today", "currently", "(complains|complaining|complained) of", "complains",
        "(was|is|been|) admitted (with|for|because of)", "admitted", "with (persisting|persistent|residual|ongoing|current|chronic|acute|new|worsening|recurrent)", "(who|and) (now|presents|presented|developed|complains)", "who", "in a (man|woman|boy|girl|patient)", "(comes|came) in (with|for)", "(found|noted) to have", "has (had|been having|developed)", "(reports|reported|reporting|noted|notes|states|stated)", "this (morning|evening|week|time)", "none since", "(on|at) (examination|presentation|admission|arrival)", "here (for|with)",
    ]),
    (&[EXPERIENCER], &["patient", "patients", "pt", "the patient", "he", "she", "himself", "herself", "infant", "newborn", "baby", "the child", "the boy", "the girl", "proband", "our patient", "who presents", "child"]),
    (&[TEMPORALITY, EXPERIENCER], &["(the|) patient (presents|presented|complains|reports|now|has|had)", "(he|she) (presents|presented|complains|reports|now)", "(presents|presented|presenting) (with|for)", "p w", "here (for|with)", "c o"]),
    (&[EXPERIENCER], &["(is|was|are|were) (worried|concerned|anxious) about (his|her|their|the patient|the child|him)"]),
    (&[TEMPORALITY, HEADED], &["(presents|presented|presenting|presentation) (with|for|)", "now", "now (with|has|having|presents with)", "today", "currently", "(complains|complaining|complained) of", "c o", "p w", "here (for|with)"]),
    (&[EXPERIENCER, HEADED], &["patient", "pt", "the patient", "our patient"]),
    // Relatives who report on the patient or care for them.
    (&[EXPERIENCER, HEADED], &[
        "KIN (reports|reported|report|states|stated|state|says|said|notes|noted|notices|noticed|describes|described|brought|brings|called|calls|believes|thinks|feels|observed|witnessed|found|worries|worried|gives|gave|confirms|confirmed|accompanied|accompanies|cares|asks|asked)",
        "KIN (|is|was|are) (worried|concerned|anxious|afraid|scared) (|about|for|that)", "KIN (presents|presented) with (her|his|their|the)",
    ]),
    // The speaker.
    (&[EXPERIENCER, HEADED], &[
        "i (have|had|am|was|take|took|get|got|feel|felt|do|don|did|also|m|ve|think|started|want|need|work|smoke|use|used|never|now|still|just)",
        "(and|but|so|while|though) (i|we|my|pt|patient|the patient)",
        "(brought|brings|bringing) (him|her|them|me|us|the child|the patient|the boy|the girl|the baby) (|in|here) (|for|with|because of|to)",
    ]),
    // After a comma only, see `SUBJECTLESS` and `NEW_FINDING`.
    (&[], &["(mild|mildly|moderate|moderately|chronic|stable|unchanged|scattered|fatty)", "NUM (cm|mm)"]),
    (&[], &["given", "prescribed", "treated (with|by)", "put on", "continued on"]),
    (&[TEMPORALITY, EXPERIENCER, HEADED], &["(the|) patient (presents|presented|complains|reports|now|has|had)"]),
    // Current medication ends negations and history.
    (&[NEGATION, TEMPORALITY, HEADED], &["(|is|currently|now|and|still) (takes|taking)", "(|was|is|been|being|and|recently|newly) started on", "(is|are|being|currently) (treated|managed|maintained|controlled) (with|on|by)"]),
    (&[BRIEFLY], &["with", "w"]),
];

/// Kinds that are suspended up to the next comma, and patterns.
const ASIDES: &[(&[usize], &[&str])] = &[(
    &[NEGATION, TEMPORALITY],
    &["(|is|currently|now|still|already|and|maintained) on", "(controlled|managed) (with|on|by)"],
)];

/// Verbs whose subject is the patient after a comma: `mother with cancer, presents with …`.
#[rustfmt::skip]
const SUBJECTLESS: [&str; 26] = [
    "admits", "admitted", "c", "came", "comes", "complained", "complaining", "complains", "continued", "currently", "denied", "denies", "endorses",
    "given", "here", "now", "on", "prescribed", "presented", "presenting", "presents", "put", "reports", "started", "takes", "treated",
];

/// Adjectives of degree that start a new finding after a comma: `no SBO, mild atrophy`.
#[rustfmt::skip]
const NEW_FINDING: [&str; 10] = [
    "NUM", "chronic", "fatty", "mild", "mildly", "moderate", "moderately", "scattered", "stable", "unchanged",
];

/// Blood relatives, singular and collective. Spouses are excluded because they more often report than have a finding.
#[rustfmt::skip]
const KIN: &[&str] = &[
    "mother", "mothers", "father", "fathers", "mom", "mum", "dad", "parent", "parents", "sister", "sisters", "brother", "brothers",
    "sibling", "siblings", "twin brother", "twin sister", "son", "sons", "daughter", "daughters", "aunt", "aunts", "uncle", "uncles",
    "cousin", "cousins", "niece", "nieces", "nephew", "nephews", "grandmother", "grandmothers", "grandfather", "grandfathers",
    "grandparent", "grandparents", "grandson", "granddaughter", "relative", "relatives", "family member", "family members", "half brother", "half sister",
    "maternal side", "paternal side", "maternal grandmother", "maternal grandfather", "paternal grandmother", "paternal grandfather",
];

/// Whether a lower-case word means a relative.
pub(super) fn is_kin(word: &str) -> bool {
    KIN.contains(&word)
}

const NUMBERS: &[&str] =
    &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty"];

/// Id of a word that occurs in a pattern; 0 for all others.
pub(super) type Word = u32;

/// All rules as a trie over words.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    words: HashMap<String, Word>,
    subjectless: HashSet<Word>,
    new_finding: HashSet<Word>,
    /// Child of a node by word; node 0 is the root.
    next: HashMap<(u32, Word), u32>,
    /// Rule of the phrase that ends at each node.
    rules: Vec<Option<Rule>>,
}

impl Triggers {
    /// The rules of this file.
    pub(super) fn get() -> &'static Triggers {
        static TRIGGERS: OnceLock<Triggers> = OnceLock::new();
        TRIGGERS.get_or_init(Triggers::build)
    }

    fn build() -> Triggers {
        let mut triggers = Triggers { rules: vec![None], ..Triggers::default() };
        for special in SPECIAL {
            triggers.intern(special);
        }
        for (phrase, rule) in phrases() {
            triggers.add(&phrase, rule);
        }
        triggers.subjectless = SUBJECTLESS.iter().map(|word| triggers.word(word)).collect();
        triggers.new_finding = NEW_FINDING.iter().map(|word| triggers.words[*word]).collect();
        triggers
    }

    fn intern(&mut self, word: &str) -> Word {
        let n_words = self.words.len() as Word;
        *self.words.entry(word.to_owned()).or_insert(n_words + 1)
    }

    /// Adds a phrase. Of duplicates the first wins, except that terminations are combined.
    fn add(&mut self, phrase: &str, rule: Rule) {
        let mut node = 0;
        for word in phrase.split(' ') {
            let word = self.intern(word);
            let n_nodes = self.rules.len() as u32;
            let next = *self.next.entry((node, word)).or_insert(n_nodes);
            if next == n_nodes {
                self.rules.push(None);
            }
            node = next;
        }
        match (&mut self.rules[node as usize], rule) {
            (Some(Rule::Termination(kinds)), Rule::Termination(others)) => *kinds |= others,
            (Some(_), _) => {}
            (free, rule) => *free = Some(rule),
        }
    }

    /// Id of a word of [`SPECIAL`].
    pub(super) fn special(&self, name: &str) -> Word {
        self.words[name]
    }

    /// Whether a word after a comma starts a clause about the patient.
    pub(super) fn is_subjectless(&self, word: Word) -> bool {
        self.subjectless.contains(&word)
    }

    /// Whether a word after a comma starts a new finding, which is not negated with those before.
    pub(super) fn is_new_finding(&self, word: Word) -> bool {
        self.new_finding.contains(&word)
    }

    /// Id of a lower-case token.
    pub(super) fn word(&self, token: &str) -> Word {
        if token.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_year = token.len() == 4 && (token.starts_with("19") || token.starts_with("20"));
            return if is_year { self.words["YEAR"] } else { self.words["NUM"] };
        }
        self.words.get(token).copied().unwrap_or(0)
    }

    /// Rule and length in words of the longest phrase at the start of `words`.
    pub(super) fn longest(&self, words: impl Iterator<Item = Word>) -> Option<(&Rule, usize)> {
        let mut node = 0;
        let mut best = None;
        for (index, word) in words.enumerate() {
            match self.next.get(&(node, word)) {
                Some(next) => node = *next,
                None => break,
            }
            if let Some(rule) = &self.rules[node as usize] {
                best = Some((rule, index + 1));
            }
        }
        best
    }
}

/// All phrases with their rules; pseudo-triggers first, so that they win over equal phrases.
fn phrases() -> Vec<(String, Rule)> {
    let mut phrases = Vec::new();
    let mut add = |patterns: &[&str], rule: Rule| {
        for phrase in patterns.iter().flat_map(|pattern| expand(pattern)) {
            phrases.push((phrase, rule.clone()));
        }
    };
    add(PSEUDO, Rule::Pseudo);
    for (effects, direction, window, patterns) in TRIGGERS {
        add(patterns, Rule::Trigger { effects, direction: *direction, window: *window });
    }
    let bits_of = |kinds: &[usize]| kinds.iter().fold(0, |bits, kind| bits | 1 << kind);
    for (kinds, patterns) in TERMINATIONS {
        add(patterns, Rule::Termination(bits_of(kinds)));
    }
    for (kinds, patterns) in ASIDES {
        add(patterns, Rule::Aside(bits_of(kinds)));
    }
    phrases
}

/// All phrases that a pattern matches.
fn expand(pattern: &str) -> Vec<String> {
    let mut phrases = vec![String::new()];
    let mut append = |alternatives: &[&str]| {
        let joined = |phrase: &String, word: &str| match (phrase.is_empty(), word.is_empty()) {
            (_, true) => phrase.clone(),
            (true, false) => word.to_owned(),
            (false, false) => format!("{phrase} {word}"),
        };
        phrases = phrases.iter().flat_map(|phrase| alternatives.iter().map(move |word| joined(phrase, word))).collect();
    };
    let mut rest = pattern;
    while let Some(open) = rest.find('(') {
        rest[..open].split_whitespace().for_each(|word| append(&alternatives_of(word)));
        let close = rest.find(')').expect("a test expands every pattern");
        let inside: Vec<&str> = rest[open + 1..close].split('|').flat_map(alternatives_of).collect();
        append(&inside);
        rest = &rest[close + 1..];
    }
    rest.split_whitespace().for_each(|word| append(&alternatives_of(word)));
    phrases.retain(|phrase| !phrase.is_empty());
    phrases
}

fn alternatives_of(word: &str) -> Vec<&str> {
    match word {
        "KIN" => KIN.to_vec(),
        "NUM" => [&["NUM"], NUMBERS].concat(),
        word => vec![word],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::text::tokens::tokenize;

    #[test]
    fn patterns_are_made_of_tokens() {
        for (phrase, _) in phrases() {
            for word in phrase.split(' ').filter(|word| !SPECIAL.contains(word)) {
                let tokens = tokenize(word);
                assert!(tokens.len() == 1 && tokens[0].span.of(word) == word, "`{word}` of `{phrase}` is no token");
                assert_eq!(word, word.to_lowercase());
            }
        }
    }

    #[test]
    fn no_phrase_has_two_triggers_that_differ() {
        let mut seen: HashMap<String, Rule> = HashMap::new();
        let mut twice = Vec::new();
        for (phrase, rule) in phrases() {
            match seen.get(&phrase) {
                Some(Rule::Termination(_)) if matches!(rule, Rule::Termination(_)) => {}
                Some(known) if *known != rule => twice.push(format!("{phrase}: {known:?}, {rule:?}")),
                _ => drop(seen.insert(phrase, rule)),
            }
        }
        assert!(twice.is_empty(), "{}", twice.join("\n"));
        assert!(seen.len() > 2_000);
    }
}
