//! BILOU tags: decoding of token tags into mentions.
//!
//! Ranges are half-open token ranges. Types and ids are left to the caller.

use std::ops::Range;

/// The BILOU tag of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bilou {
    /// First token of a mention with several.
    Begin,
    /// Neither first nor last token.
    Inside,
    /// Last token of a mention with several.
    Last,
    /// Outside of mentions.
    Outside,
    /// The only token of a mention.
    Unit,
}

/// Handling of invalid tag sequences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repair {
    /// Only `U` and `B I* L` yield mentions.
    #[default]
    Strict,
    /// A mention without `L` ends where the sequence breaks off; one without `B` starts at its first tag.
    Lenient,
}

/// The mentions encoded by `tags`, in order.
pub fn decode_bilou(tags: &[Bilou], repair: Repair) -> Vec<Range<usize>> {
    let lenient = repair == Repair::Lenient;
    let mut mentions = Vec::new();
    let mut open: Option<usize> = None;
    for (row, tag) in tags.iter().enumerate() {
        if matches!(tag, Bilou::Begin | Bilou::Outside | Bilou::Unit)
            && let Some(start) = open.take()
            && lenient
        {
            mentions.push(start..row);
        }
        match tag {
            Bilou::Begin => open = Some(row),
            Bilou::Inside if lenient => open = open.or(Some(row)),
            Bilou::Inside | Bilou::Outside => {}
            Bilou::Last => mentions.extend(open.take().or(lenient.then_some(row)).map(|start| start..row + 1)),
            Bilou::Unit => mentions.push(row..row + 1),
        }
    }
    mentions.extend(open.filter(|_| lenient).map(|start| start..tags.len()));
    mentions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tags(text: &str) -> Vec<Bilou> {
        let tag = |letter: char| match letter {
            'B' => Bilou::Begin,
            'I' => Bilou::Inside,
            'L' => Bilou::Last,
            'U' => Bilou::Unit,
            _ => Bilou::Outside,
        };
        text.split(' ').flat_map(|word| word.chars().map(tag)).collect()
    }

    #[test]
    fn v6_bilou() {
        let tags = tags("B L U O B I O I L");
        assert_eq!(decode_bilou(&tags, Repair::Strict), [0..2, 2..3]);
        assert_eq!(decode_bilou(&tags, Repair::Lenient), [0..2, 2..3, 4..6, 7..9]);
    }

    #[test]
    fn broken_tags() {
        assert_eq!(decode_bilou(&tags("B B L"), Repair::Strict), [Range { start: 1, end: 3 }]);
        assert_eq!(decode_bilou(&tags("B B L"), Repair::Lenient), [0..1, 1..3]);
        assert_eq!(decode_bilou(&tags("I I"), Repair::Lenient), [Range { start: 0, end: 2 }]);
        assert_eq!(decode_bilou(&tags("L L"), Repair::Lenient), [0..1, 1..2]);
        assert_eq!(decode_bilou(&tags("B I U"), Repair::Strict), [Range { start: 2, end: 3 }]);
    }

    proptest! {
        #[test]
        fn lenient_mentions_cover_every_tagged_token(text in "[BILOU]{0,20}") {
            let tags = tags(&text);
            let covered: Vec<usize> = decode_bilou(&tags, Repair::Lenient).into_iter().flatten().collect();
            let tagged: Vec<usize> = (0..tags.len()).filter(|&row| tags[row] != Bilou::Outside).collect();
            prop_assert_eq!(covered, tagged);
        }

        #[test]
        fn strict_mentions_are_lenient_ones(text in "[BILOU]{0,20}") {
            let tags = tags(&text);
            let lenient = decode_bilou(&tags, Repair::Lenient);
            for mention in decode_bilou(&tags, Repair::Strict) {
                prop_assert!(lenient.contains(&mention));
            }
        }
    }
}
