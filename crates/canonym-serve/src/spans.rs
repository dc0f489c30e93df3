//! Conversion between spans of the API, in code points, and spans in bytes.

use canonym_core::text::Span;
use canonym_core::text::offsets::OffsetMap;

use crate::error::{ApiError, ApiResult};

/// Spans of the API: pairs of code points, ends exclusive.
pub type Pairs = Vec<(usize, usize)>;

/// Converts spans in bytes to code points.
pub fn to_pairs(map: &OffsetMap<'_>, spans: &[Span]) -> Pairs {
    let code_point = |byte: u32| map.byte_to_char(byte as usize).unwrap_or_default();
    spans.iter().map(|span| (code_point(span.start), code_point(span.end))).collect()
}

/// Converts spans in code points to bytes; checks that they are ordered, not empty, disjoint, and within the text.
pub fn from_pairs(map: &OffsetMap<'_>, pairs: &[(usize, usize)]) -> ApiResult<Vec<Span>> {
    if pairs.is_empty() {
        return Err(ApiError::bad("`spans` is empty").hint("give `spans` as [[start, end], …]"));
    }
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable();
    let mut spans: Vec<Span> = Vec::with_capacity(sorted.len());
    let mut last = 0;
    for (start, end) in sorted {
        if start >= end {
            return Err(ApiError::bad(format!("the span {start}..{end} is empty"))
                .hint("`end` is exclusive: the offset after the last character"));
        }
        let (Some(first), Some(after)) = (map.char_to_byte(start), map.char_to_byte(end)) else {
            let message =
                format!("the span {start}..{end} is outside the text, which has {} characters", map.n_chars());
            return Err(ApiError::bad(message).hint("offsets count Unicode code points from 0"));
        };
        if start < last {
            return Err(ApiError::bad(format!("the span {start}..{end} overlaps another span of the same mention")));
        }
        last = end;
        spans.push(Span::new(first, after));
    }
    Ok(spans)
}

/// The text of spans, joined by a space.
pub fn surface(text: &str, spans: &[Span]) -> String {
    let parts: Vec<&str> = spans.iter().map(|span| span.of(text)).collect();
    parts.join(" ")
}

/// Whether two marks overlap.
pub fn overlap(one: &[Span], other: &[Span]) -> bool {
    one.iter().any(|span| other.iter().any(|other| span.overlaps(*other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_and_combining_marks_are_counted_as_code_points() {
        let text = "🧪 cafe\u{301} fever";
        let map = OffsetMap::new(text);
        let spans = from_pairs(&map, &[(8, 13), (2, 7)]).unwrap();
        assert_eq!(surface(text, &spans), "cafe\u{301} fever");
        assert_eq!(to_pairs(&map, &spans), [(2, 7), (8, 13)]);
    }

    #[test]
    fn invalid_spans_are_rejected() {
        let map = OffsetMap::new("🧪a");
        for pairs in [vec![], vec![(1, 1)], vec![(2, 1)], vec![(0, 3)], vec![(0, 2), (1, 2)], vec![(0, usize::MAX)]] {
            assert!(from_pairs(&map, &pairs).is_err(), "{pairs:?}");
        }
    }
}
