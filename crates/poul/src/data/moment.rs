//! Dates and times as people write them: `2024-03-01`, `2024-03-01 18:30`.

use arrow_schema::{DataType, TimeUnit};

/// How many seconds one unit of a date or timestamp column is; `None` for all other columns.
pub(super) fn seconds_in_unit(data_type: &DataType) -> Option<f64> {
    match data_type {
        DataType::Date32 => Some(86_400.0),
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => Some(1e-3),
        DataType::Timestamp(TimeUnit::Second, _) => Some(1.0),
        DataType::Timestamp(TimeUnit::Microsecond, _) => Some(1e-6),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(1e-9),
        DataType::Dictionary(_, values) => seconds_in_unit(values),
        _ => None,
    }
}

/// A moment by its seconds since 1970: the day, with the time of day where it is not midnight.
pub(super) fn moment_name(seconds: f64) -> String {
    // Units of a thousandth and less are not exact in seconds.
    let minutes = ((seconds + 1e-3) / 60.0).floor() as i64;
    let (days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    let (year, month, day) = date(days);
    match minute {
        0 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60),
    }
}

/// Whether a text is a day, month, week or quarter written from the year down, so that texts of one length sort by time:
/// `2024-03-01`, `2024-03-01 18:30`, `2024-03`, `2024-W09`, `2024-Q1`.
pub(crate) fn is_moment(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let has_shape = |time: &str| time.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | 'Z'));
    match time {
        None => matches!(shape.as_str(), "0000-00-00" | "0000-00" | "0000-W00" | "0000-Q0"),
        Some(time) => shape == "0000-00-00" && time.contains(':') && has_shape(time),
    }
}

/// Year, month and day from days since 1970, in the Gregorian calendar with years from March, so that leap days come last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_named_by_day_and_minute() {
        assert_eq!(moment_name(0.0), "1970-01-01");
        assert_eq!(moment_name(11_017.0 * 86_400.0), "2000-03-01");
        assert_eq!(moment_name(19_782.0 * 86_400.0), "2024-02-29");
        assert_eq!(moment_name(-86_400.0), "1969-12-31");
        assert_eq!(moment_name(90_059.9), "1970-01-02 01:00");
    }

    #[test]
    fn texts_that_sort_by_time_are_known() {
        for moment in
            ["2024-03-01", "2024-03", "2024-W09", "2024-Q1", "2024-03-01 18:30", "2024-03-01T18:30:00Z"]
        {
            assert!(is_moment(moment), "{moment}");
        }
        for other in ["", "2024", "03-01-2024", "2024-03-01 noon", "a2024-03-01", "20240301", "W09"] {
            assert!(!is_moment(other), "{other}");
        }
    }
}
