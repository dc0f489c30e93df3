//! Timestamps: milliseconds since 1970 internally, RFC 3339 in the API.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

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
        Clock::of(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis))
    }

    /// A clock from a function.
    pub fn of(now: impl Fn() -> Millis + Send + Sync + 'static) -> Clock {
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
    let (year, month, day) = civil(at.div_euclid(DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// A timestamp as RFC 3339 in UTC, such as `2024-02-29T12:00:00.000Z`.
pub fn rfc3339(at: Millis) -> String {
    let rest = at.rem_euclid(DAY);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", day(at))
}

/// The Gregorian year, month and day of a number of days since 1970. Years are counted from March, so that the leap day is
/// the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let since = days + 719_468;
    let era = since.div_euclid(146_097);
    let of_era = since.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(day(4_107_542_400_000), "2100-03-01");
    }
}
