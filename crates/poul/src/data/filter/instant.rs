//! Dates in filters: `2024-03-01` and `2024-03-01 18:30:00`, taken as UTC.

use arrow_schema::{DataType, TimeUnit};

/// The moment `text` means, in the unit of a date or timestamp column; `None` if it is not a date.
pub(super) fn instant(text: &str, data_type: &DataType) -> Option<f64> {
    let seconds = seconds(text)?;
    Some(match data_type {
        DataType::Date32 => seconds / 86_400.0,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => seconds * 1e3,
        DataType::Timestamp(TimeUnit::Second, _) => seconds,
        DataType::Timestamp(TimeUnit::Microsecond, _) => seconds * 1e6,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => seconds * 1e9,
        _ => return None,
    })
}

/// Seconds since 1970.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('Z');
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let mut part =
        || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i64>().ok();
    let (year, month, day) = (part()?, part()?, part()?);
    if parts.next().is_some() || !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let mut seconds = days(year, month, day) as f64 * 86_400.0;
    if let Some(time) = time {
        let parts: Vec<f64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let limits = [24.0, 60.0, 60.0];
        if !(2..=3).contains(&parts.len())
            || parts.iter().zip(limits).any(|(part, limit)| !(0.0..limit).contains(part))
        {
            return None;
        }
        seconds += parts.iter().zip([3600.0, 60.0, 1.0]).map(|(part, unit)| part * unit).sum::<f64>();
    }
    Some(seconds)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, counting years from March so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(instant("1970-01-01", &DataType::Date32), Some(0.0));
        assert_eq!(instant("2000-03-01", &DataType::Date32), Some(11_017.0));
        assert_eq!(instant("2024-02-29", &DataType::Date32), Some(19_782.0));
        assert_eq!(instant("1969-12-31", &DataType::Date32), Some(-1.0));
        let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
        assert_eq!(instant("1970-01-02 01:00", &millis), Some(90_000_000.0));
        assert_eq!(instant("1970-01-01T00:00:01.5Z", &millis), Some(1500.0));
        for wrong in ["2023-02-29", "2024-13-01", "2024-1", "x", "2024-01-01 25:00", "2024-01-01-01"] {
            assert_eq!(instant(wrong, &DataType::Date32), None, "{wrong}");
        }
    }
}
