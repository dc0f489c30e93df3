//! Timestamps: milliseconds since 1970 internally, RFC 3339 in the API.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Milliseconds since 1970.
pub type Millis = i64;

/// Milliseconds per day.
pub const DAY: Millis = 86_400_000;

/// A clock; tests use their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Millis + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Clock {
        Clock::from_fn(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis))
    }

    /// A clock from a function.
    pub fn from_fn(now: impl Fn() -> Millis + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// The current time.
    pub fn now(&self) -> Millis {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Clock")
    }
}

/// The date of a timestamp, such as `2024-02-29`.
pub fn day(at: Millis) -> String {
    timestamp(at).to_zoned(TimeZone::UTC).date().to_string()
}

/// A timestamp as RFC 3339 in UTC, such as `2024-02-29T12:00:00.000Z`.
pub fn rfc3339(at: Millis) -> String {
    format!("{:.3}", timestamp(at))
}

/// The milliseconds of a timestamp as RFC 3339; `None` if it is none.
pub fn parse_rfc3339(text: &str) -> Option<Millis> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A timestamp; those outside the years -9999 to 9999 are moved to the nearest one inside.
fn timestamp(at: Millis) -> Timestamp {
    let limit = if at < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_formatted_as_rfc_3339() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(parse_rfc3339("2024-02-29T23:59:59.999Z"), Some(1_709_251_199_999));
        assert_eq!(parse_rfc3339("2024-03-01T00:59:59.999+01:00"), Some(1_709_251_199_999));
        assert_eq!(parse_rfc3339("29 Feb"), None);
        assert_eq!(day(4_107_542_400_000), "2100-03-01");
        assert_eq!(day(i64::MAX), "9999-12-30");
    }
}
