//! English triggers, pseudo-triggers and terminations.
//!
//! Written for this project from the published descriptions of NegEx and ConText. A pattern consists of lower-case
//! words: `(a|b c|)` means any of the alternatives, `KIN` a word for a relative, `PARTNER` one for a husband or wife, `PERSON` either,
//! `METHOD` a method of examination, `NUM` a number of up to three digits
//! or a number word, `YEAR` a year, and the words of [`SPECIAL`] stand for non-words. Words are tokens of
//! [`crate::text::tokens`]: `doesn't` is `doesn t`, `r/o` is `r o`, `mother's` is `mother`.

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
    /// Backward at the end of an item that it does not start (`migraine hx`), otherwise forward.
    Either,
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
/// Bit that ends only [`ADJECTIVE`] triggers.
pub(super) const ADJECTIVAL: usize = 5;

/// The role of a phrase.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rule {
    /// No effect, and its words do not match other rules.
    Pseudo,
    /// Ends the scopes of the kinds whose bits are set.
    Termination(u8),
    /// Suspends the kinds whose bits are set up to the next comma: `history of diabetes on metformin, and gout`.
    Aside(u8),
    /// Suspends negation from its first word to its end: `no effusion on chest CT`.
    Method,
    /// Applies to the text in its scope.
    Trigger { effects: &'static [Effect], direction: Direction, window: u8 },
}

use Direction::{Backward, Both, Either, Forward};
use Effect::{Family, Historical, Hypothetical, Negated, Possible};

/// Maximum scope of backward triggers in words; in longer clauses the subject is usually another.
pub(super) const BACK: u8 = 8;
/// Scope of `not` in words; it often negates a verb.
const NOT: u8 = 6;

/// Window of a trigger whose scope ends before `with`: `s/p fall with hip pain`.
pub(super) const BRIEF: u8 = u8::MAX;
/// Window of an adjective whose scope ends before a statement or a current medication: `previous colic, asthma on salbutamol`.
pub(super) const ADJECTIVE: u8 = u8::MAX - 1;
/// Window of a trigger whose scope ends at a comma: `fry until soft, add salt`.
pub(super) const CLAUSE: u8 = u8::MAX - 2;
/// Window of an order of two words and of what `and` adds; without effect if a condition follows: `hold metoprolol if HR < 60`.
pub(super) const ORDER: u8 = u8::MAX - 3;
/// Words that an order at the end of an item reaches back: `lisinopril stopped, amlodipine started`.
pub(super) const ORDER_BACK: u8 = 3;
/// Window of a trigger that applies to the next word alone: `non-smoker`.
pub(super) const WORD: u8 = 1;
/// Window of `versus`.
pub(super) const VERSUS: u8 = 3;

/// Effects, direction, window in words (0 means unlimited) and patterns.
pub(super) type Row = (&'static [Effect], Direction, u8, &'static [&'static str]);

#[rustfmt::skip]
pub(super) const TRIGGERS: &[Row] = &[
    (&[Negated], Forward, 0, &[
        "no", "denies", "denied", "denying", "deny", "without", "w o", "neither", "nor", "never",
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
        "(hardly|scarcely) any", "ruling out", "excludes", "excluding",
        "PERSON (denies|denied|deny)",
        "MINUS", "MINUS (for|ve for)", "neg", "neg for", "(|pertinent) negatives (|include|including|are|for)", "(negative|neg) COLON",
        "(denies|denied|never|without) (takes|taking|use of)", "no longer (takes|taking|on)",
    ]),
    (&[Negated], Either, 0, &["excluded"]),
    (&[Negated], Forward, NOT, &["not", "cannot have", "(|currently|now) not on"]),
    (&[Negated], Forward, 2, &["(lacks|lacked|lacking)"]),
    (&[Negated], Forward, WORD, &["non"]),
    (&[Negated], Either, ORDER, &[
        "(withhold|withholds|withheld|withholding|hold|holding|held|refuses|refused|refusing|declined|discontinue|discontinued|discontinues|stop|stopped|stopping|omit|omits|omitted|omitting|ceased) (|taking)",
        "PERSON (declined|declines|refused|refuses)",
    ]),
    (&[Negated], Both, BACK, &["(|very|highly) unlikely", "absent", "nil", "ruled out"]),
    (&[Negated], Backward, BACK, &[
        "(is|was|are|were|has been|have been|been) ruled out",
        "(is|was|are|were|has been|have been) excluded",
        "(is|was|are|were|has been|have been|) (not|never) (present|seen|found|detected|identified|noted|observed|demonstrated|reported|evident|appreciated|visualized|visualised|visible|confirmed|heard|felt|palpable|palpated|elicited|isolated|grown|cultured)",
        "(could not|cannot|can not|couldn t) be (seen|found|detected|identified|demonstrated|appreciated|visualized|visualised|confirmed|elicited)",
        "(is|was|are|were) (absent|negative|lacking|denied|nonexistent|unremarkable)", "(has|have) been (absent|denied|negative)",
        "(is|was|are|were|be|been) (not|never) (given|administered|started|prescribed|used)", "(not|never) (given|administered|taken|started) END",
        "(is|was|are|were|be|been|being) (withheld|held|discontinued|stopped|refused|omitted)",
        "(|is|was|are|were) (not|never) (indicated|required|needed|warranted) (|for|in)", "(|is|was|are|were) (non reactive|nonreactive)",
        "(ruled out|excluded) (by|on|via|with)", "none", "negative", "NO", "MINUS ve",
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
        "rule out", "r o", "to exclude", "(|not) exclude", "consider", "(appearance|appearances|features|findings|histology|imaging|morphology|picture|START) (favour|favours|favor|favors)",
        "(could|can|might|may) i be", "could i have", "(could|can|might|may) (it|this|that|he|she|they|these|those) (|just|really) (be|have)", "(do|did) i have", "have i got", "am i", "is (it|this) (|just)",
        "(karyotype|karyotyping|genetics|sample|samples|swab|swabs|serology|bloods|blood|csf|stool|urine|titres|titers|antibodies|pcr|culture|cultures) sent for", "(must|should|would|will|need to|needs to|please) rule out",
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
        "not yet confirmed", "(is|was|are|were) (favoured|favored)",
    ]),
    (&[Negated], Backward, 3, &["(withheld|held|discontinued|stopped|refused|declined|omitted) END"]),
    (&[Possible], Both, BACK, &["suspected"]),
    (&[Possible], Backward, BACK, &["(favoured|favored) END"]),
    (&[Possible], Backward, 3, &["(possible|possibly|probable|probably|perhaps|presumably|likely|maybe) END"]),
    (&[Possible], Both, VERSUS, &["versus", "vs"]),
    (&[Historical], Forward, 0, &[
        "(history|hx|histories) (of|for|significant for|notable for|remarkable for|positive for|includes|included|including)", "h o", "history",
        "(previously|formerly) (diagnosed with|treated for|had|known|suffered from)",
        "past (medical|surgical|) history (|of|significant for|notable for|remarkable for|positive for|includes|is significant for|is notable for)",
        "(pmh|pmhx|psh|pshx|past medical hx) (|of|significant for|sig for|notable for|positive for|includes|include)", "medical history (|of|significant for|notable for|includes)",
        "years ago (he|she|patient)", "START NUM (years|year|months|decades) ago", "START in YEAR", "START in (childhood|adolescence)", "START (last|the last) year",
        "START as a (child|teenager|boy|girl|youth|baby|young man|young woman|young adult)", "survivor of", "recovered from", "used to have",
    ]),
    (&[Historical], Forward, ADJECTIVE, &["(previous|prior|earlier|past|old|remote|former)"]),
    (&[Historical], Either, 0, &["hx"]),
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
        "(|a|an|the|this) (prophylaxis|prophylactic|vaccination|vaccinated|immunization|immunisation|vaccine) (against|for|of)",
        "(protect|protects) (|adults|babies|children|individuals|infants|men|others|patients|people|them|women|you) (against|from)", "START suggest", "(screen|screened|screening|screens) for",
        "(warned|cautioned|counselled|counseled|advised|educated|instructed|concerned|worried|worry|worries|worrying|warning|fear|fears|fearful|afraid|precautions) (about|against|of|for|on)",
        "(warned|warning|cautioned|counselled|counseled|advised|advice|educated|safety netted|safety net|safety netting|safetynetted|precautions) (re|regarding)", "(safety netted|safetynetted|safety net|safety netting) (for|about)",
        "return precautions", "signs and symptoms of", "(potential|potentially) (for|)", "(will|would|to) (return|call) (if|for|with)", "in order to prevent", "so as not to get",
    ]),
    (&[Hypothetical], Forward, CLAUSE, &["until"]),
    (&[Hypothetical], Backward, 4, &["(prophylaxis|precautions|prevention|screening|vaccination|vaccine|risk)"]),
    (&[Family], Forward, 0, &[
        "family medical history", "(familial|family) (background|predisposition) of", "KIN", "(fh|fhx|fam hx|family hx) (of|for|PLUS for|positive for|pos for|significant for|sig for|notable for|remarkable for)", "KIN (had|has|have|with|died of|died from|suffers from|suffered from|diagnosed with|is|was|presented with|presents with|takes|taking|is on)", "patient KIN",
        "my (|late|poor|own|older|younger|elder|little|big|dear) PERSON", "my (gf|bf)", "(late|ex) PARTNER (|had|has|died of|died from)",
        "PARTNER (had|has|also has|also had|have|with|died of|died from|suffers from|suffered from|diagnosed with|was diagnosed with|tested positive for|is diabetic|semen|sperm)",
    ]),
    (&[Negated, Family], Forward, 0, &["(fh|fhx|fam hx|family hx|fam history) (neg|negative|MINUS) for"]),
    (&[Family], Both, 12, &["(family|fam) (history|hx)", "famhx", "fhx"]),
    (&[Family], Backward, BACK, &[
        "(in|of|by|from) (|his|her|the|a|an|both|NUM|several|many|one|two|three|another|other|all|the patient) (|paternal|maternal|older|younger|elder|half) KIN",
        "(in|affecting|on) (|paternal|maternal|both) KIN", "(runs|run|running) in (the|his|her) family", "in (the|his|her) family", "on (the|his|her) (mother|father|maternal|paternal) side",
    ]),
];

#[rustfmt::skip]
pub(super) const PSEUDO: &[&str] = &[
    // Negations of a change, a cause or an action.
    "(stop|stops|stopped|stopping|ceased|held|refused|declined) (after|and|at|because|before|by|due|during|for|in|on|responding|since|spontaneously|to|when|while|with|working)", "(can|couldn|won|don|didn|doesn|wouldn) t stop", "(cannot|can not|could not|not|never) stop", "stop (codon|codons|gain|gained|loss|signal|signals|smoking)",
    "(authors|can|clinicians|could|doctors|experts|guidelines|i|many|may|methods|might|models|most|must|not|patients|people|physicians|researchers|should|some|that|therefore|they|to|we|which|who|will) consider",
    "exclude (patients|participants|subjects|people|studies|those|individuals|cases)",
    "sent for (analysis|biopsy|ct|culture|cultures|cytology|histology|imaging|mc|microscopy|mri|pathology|pcr|review|sensitivities|sensitivity|testing|x ray|xray)",
    "(karyotype|karyotyping|genetics|sample|samples|swab|swabs|serology|bloods|blood|csf|stool|urine) sent for (analysis|biopsy|culture|cultures|cytology|histology|mc|microscopy|pathology|pcr|sensitivities|sensitivity|testing)",
    "(is|are|was|were|) not (suitable|intended|licensed|licenced|approved) (for|in)", "not recommended (for|in|during)",
    "(versus|vs) (active|baseline|conventional|control|controls|current|healthy|historical|no|none|NUM|placebo|sham|standard|usual)", "(placebo|control|controls|sham) (versus|vs)",
    "(no|without|not any) (|significant|further|interval|appreciable|real|much|marked|apparent|major|obvious) (change|changes|increase|decrease|improvement|worsening|progression|relief|reduction|response|benefit|alteration|difference|deterioration) (|in|of|from|for|to|with|on)",
    "no (|further|additional|other|specific) (treatment|therapy|surgery|operation|medication|medications|intervention|need|follow up|workup|work up|investigation|tests|testing)",
    "no (doubt|question|wonder) (|about|of|that|but)", "(not|no) only", "not (merely|just|simply|solely|necessarily)", "no sooner", "no one", "no matter", "so (called|far|forth|long|many|much|on)",
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
    "(past|last|previous|prior) (|NUM|few|several|couple of) (day|days|night|nights|week|weeks|month|months|hour|hours|evening|morning)", "prior to", "previous to", "(|NUM) NUM (y|yr|yrs|year|years|mo|mth|mths|month|months|wk|wks|week|weeks|day|days|hour|hours) old", "NUM (|NUM) old", "(yr|month|week|day|hour) old",
    "old (adult|adults|age|boy|boys|child|dog|female|females|girl|girls|infant|lady|ladies|male|males|man|men|patient|patients|people|person|woman|women|gentleman|gentlemen)", "(previously|prior) (healthy|well|fit)", "(in|over|for|during) the (past|last) (|NUM|few|several) (day|days|week|weeks|month|months|hour|hours|year|years)",
    "(previous|prior|earlier|old) (study|studies|exam|examination|film|films|scan|visit|admission|report|imaging|ct|mri)", "year old",
    "post (op|operative|operatively|prandial|menopausal|mortem|auricular|bronchodilator|coital|concussion|concussive|cricoid|dose|dural|exertion|exertional|extubation|herpetic|hoc|ictal|infectious|infective|inflammatory|micturition|nasal|natal|obstructive|partum|polio|renal|streptococcal|surgical|synaptic|term|thrombotic|transcriptional|translational|traumatic|tussive|vaccination|viral|void)",
    "(alcohol|birth|developmental|drug|gyn|gynae|medication|obstetric|occupational|sexual|smoking|social|travel) hx (|of)",
    // No hypothetical meaning.
    "(asked|asks|asking|wonders|wondered|wondering|inquired) (if|whether)", "as if", "even if", "what if", "(a|an|this|that) vaccine", "(at|by|during|from|in|on|via) (|prior|previous|routine|initial|cervical|newborn|neonatal|antenatal|annual) screening",
    "risk (factor|factors) (|for|of|include|includes|including)", "(low|high) risk pregnancy", "until (today|now|yesterday|recently)", "asked about",
    // Places and times, not drugs.
    "on (the|his|her|their|a|an|exam|exertion|left|right|both|room|day|days|monday|tuesday|wednesday|thursday|friday|saturday|sunday|NUM|discharge|hold|side|top|account|average|and off|review|repeat|follow|standing|walking|movement|swallowing|urination|inspiration)",
    // Relatives who live with the patient, and words that mean no relatives.
    "(lives|living|lived|stays|staying|resides|accompanied|presents|came|brought|brought in|found|witnessed|observed|seen|reported|according|discussed|spoke|spoken|speaking) (with|by|to) (|his|her|the|both|a|my) PERSON", "per (|his|her|the|patient|patient s|my) PERSON", "PARTNER with (him|her|them|me)",
    "nan (bread|breads)", "(binding|fusion|interacting|interaction|dimerisation|dimerization|signaling|signalling) partner", "(foster|adoptive|step|host) KIN", "KIN in law", "(nursing|religious) sister", "family (physician|doctor|practice|practitioner|planning|medicine|meeting|member present|room)", "(sister|mother|daughter) (cell|cells|ship|lesion|nodule|chromatid|chromatids|liquor)",
];

/// Kinds that end, and patterns.
#[rustfmt::skip]
pub(super) const TERMINATIONS: &[(&[usize], &[&str])] = &[
    (&[NEGATION, TEMPORALITY], &["so", "but", "however", "nevertheless", "nonetheless", "yet", "though", "although", "whereas", "while", "despite", "in spite of"]),
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
        "(|my) PERSON (reports|reported|report|states|stated|state|says|said|notes|noted|notices|noticed|describes|described|brought|brings|called|calls|believes|thinks|feels|observed|witnessed|found|worries|worried|gives|gave|confirms|confirmed|accompanied|accompanies|cares|asks|asked|wants|wonders|knows|understands|agrees|aware|happy|informed|reassured|updated|advised|counselled|counseled|educated|instructed|warned|encouraged|keen|consents|consented|requests|requesting)",
        "(|my) PERSON (|is|was|are) (worried|concerned|anxious|afraid|scared) (|about|for|that)", "PERSON (presents|presented) with (her|his|their|the)",
        "(|my) PERSON (tells|told) (him|her|me|them|us)", "PERSON (is|are|was|were) (advised|asked|aware|encouraged|happy|informed|invited|keen|reassured|reminded|urged|warned)", "PERSON to (bring|call|contact|give|monitor|return|seek|watch)",
        "(parents|mothers|fathers|relatives) (can|may|must|need|often|should|who)", "(|my) PARTNER (has|had|have) (also|just|called|heard|noted|noticed|observed|reported|said|seen|told|witnessed)", "(|my) PERSON and (i|me)",
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
#[rustfmt::skip]
pub(super) const ASIDES: &[(&[usize], &[&str])] = &[
    (&[NEGATION, TEMPORALITY], &["(|is|currently|now|still|already|and|maintained) on", "(controlled|managed) (with|on|by)"]),
    // What the absent finding would be related to.
    (&[NEGATION], &["(association|associations|correlation|correlations|interaction|interactions|interference|reaction|reactions) (to|with)"]),
];

/// How a finding is looked for.
pub(super) const METHODS: &[&str] = &[
    "(at|by|on|per|using|via|with) (|a|an|the|his|her|this|today|repeat|chest|abdominal|head|brain|bedside|portable|plain|initial) METHOD",
];

/// Methods of examination.
#[rustfmt::skip]
pub(super) const METHOD_WORDS: &[&str] = &[
    "angiogram", "angiography", "auscultation", "biopsy", "bronchoscopy", "colonoscopy", "ct", "ct angiography", "ct scan", "cta", "ctpa", "culture",
    "cxr", "cystoscopy", "cytology", "doppler", "duplex", "ecg", "echo", "echocardiogram", "echocardiography", "eeg", "egd", "ekg", "elisa", "emg",
    "endoscopy", "film", "films", "fish", "flow cytometry", "histology", "ihc", "imaging", "immunofluorescence",
    "immunohistochemistry", "immunostaining", "inspection", "laparoscopy", "laryngoscopy", "mammogram", "mammography", "microscopy", "mri",
    "mri scan", "ogd", "palpation", "pcr", "pet", "pet ct", "radiograph", "radiographs", "radiography", "scan", "scans", "serology", "spirometry", "tte", "toe",
    "tee", "ultrasonography", "ultrasound", "ultrasound scan", "urinalysis", "us", "uss", "western blot", "x ray", "x rays", "xray",
];

/// Blood relatives, singular and collective.
#[rustfmt::skip]
pub(super) const KIN: &[&str] = &[
    "mother", "mothers", "father", "fathers", "mom", "mum", "dad", "parent", "parents", "sister", "sisters", "brother", "brothers",
    "sibling", "siblings", "twin brother", "twin sister", "son", "sons", "daughter", "daughters", "aunt", "aunts", "uncle", "uncles",
    "cousin", "cousins", "nan", "nana", "nanna", "gran", "granny", "grandma", "grandmom", "grandad", "granddad", "grandpa", "mam", "mama", "mummy", "mommy",
    "daddy", "auntie", "niece", "nieces", "nephew", "nephews", "grandmother", "grandmothers", "grandfather", "grandfathers",
    "grandparent", "grandparents", "grandson", "granddaughter", "relative", "relatives", "family member", "family members", "half brother", "half sister",
    "maternal side", "paternal side", "maternal grandmother", "maternal grandfather", "paternal grandmother", "paternal grandfather",
];

/// Partners, who more often report than have a finding: only those who are said to have one count as relatives.
pub(super) const PARTNERS: &[&str] =
    &["husband", "hubby", "wife", "spouse", "partner", "girlfriend", "boyfriend", "fiance", "fiancee"];

/// Whether a lower-case word means a relative.
pub(super) fn is_kin(word: &str) -> bool {
    KIN.contains(&word)
}

pub(super) const NUMBERS: &[&str] =
    &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "twenty"];
