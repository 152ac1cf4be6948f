//! The Gregorian calendar: seconds since 1970 to dates and back, for whatever form a protocol writes them in.

/// The names of the months as the protocols have them.
pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// First second that the four-digit year of a date cannot tell: 10000-01-01.
pub(crate) const END: i64 = 253_402_300_800;
/// 0000-01-01.
pub(crate) const BEGIN: i64 = -62_167_219_200;

/// A point in time by the Gregorian calendar, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 (Sunday) to 6.
    pub weekday: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl Civil {
    /// The calendar's view of `secs` seconds since 1970; times beyond the years 0 to 9999 are cut to them.
    pub fn from_secs(secs: i64) -> Civil {
        let secs = secs.clamp(BEGIN, END - 1);
        let days = secs.div_euclid(86_400);
        let rest = secs.rem_euclid(86_400) as u32;
        // Days are counted from 0000-03-01, so that the leap day is the last of its year; a cycle of the calendar is
        // 400 years or 146,097 days.
        let shifted = days + 719_468;
        let cycle = shifted.div_euclid(146_097);
        let day_of_cycle = shifted.rem_euclid(146_097);
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
        Civil {
            year: year as u16,
            month: month as u8,
            day: day as u8,
            weekday: (days + 4).rem_euclid(7) as u8,
            hour: (rest / 3_600) as u8,
            minute: (rest / 60 % 60) as u8,
            second: (rest % 60) as u8,
        }
    }

    /// Seconds since 1970; `None` when no such day or time exists. The weekday is not looked at.
    pub fn to_secs(self) -> Option<i64> {
        let leap =
            self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let days_of_month = match self.month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if self.day == 0 || self.day > days_of_month || self.hour > 23 || self.minute > 59 || self.second > 59
        {
            return None;
        }
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let shifted_year = if month <= 2 { year - 1 } else { year };
        let cycle = shifted_year.div_euclid(400);
        let year_of_cycle = shifted_year.rem_euclid(400);
        let shifted_month = (month + 9) % 12;
        let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
        let days = cycle * 146_097 + day_of_cycle - 719_468;
        let rest = i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        Some(days * 86_400 + rest)
    }
}
