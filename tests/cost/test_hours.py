"""Windows of a week: what is inside, how hours divide, and what the clocks do to them twice a year."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitcheck.catalogue.ratecards import Window
from fitcheck.cost.hours import WEEKDAYS, Hours, divide, parse_schedule, week_of
from fitcheck.errors import UsageError

STEP = timedelta(minutes=15)
USUAL, BERLIN_SPRING, BERLIN_AUTUMN = date(2026, 11, 25), date(2026, 3, 29), date(2026, 10, 25)
NEW_YORK_SPRING, NEW_YORK_AUTUMN = date(2026, 3, 8), date(2026, 11, 1)
LORD_HOWE_SPRING, LORD_HOWE_AUTUMN = date(2026, 10, 4), date(2026, 4, 5)


def hours_of(text: str, day: date) -> float:
    inside, outside = divide(parse_schedule(text), None, day)
    assert inside == timedelta()
    return outside / timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "day", "hours"),
    [
        ("Mon-Fri 09:00-17:00 Europe/Berlin", USUAL, 40),
        ("Mon-Sun 00:00-24:00", USUAL, 168),
        ("Fri-Mon 08:00-09:00", USUAL, 4),
        ("Mon,Wed,Fri 08:00-09:00", USUAL, 3),
        ("monday-tue 08:00-08:30 Asia/Shanghai", USUAL, 1),
        ("Mon-Fri 22:00-24:00; Tue-Sat 00:00-06:00 Europe/Berlin", USUAL, 40),
        ("Mon 08:00-10:00; Mon 09:00-11:00", USUAL, 3),
        # Berlin: 02:00 to 03:00 does not come on 2026-03-29 and comes twice on 2026-10-25.
        ("Sun 02:00-03:00 Europe/Berlin", BERLIN_SPRING, 0),
        ("Sun 01:00-04:00 Europe/Berlin", BERLIN_SPRING, 2),
        ("Sun 02:30-04:00 Europe/Berlin", BERLIN_SPRING, 1),
        ("Mon-Sun 00:00-24:00 Europe/Berlin", BERLIN_SPRING, 167),
        ("Sun 02:00-03:00 Europe/Berlin", BERLIN_AUTUMN, 2),
        ("Sun 01:00-04:00 Europe/Berlin", BERLIN_AUTUMN, 4),
        ("Sun 01:00-02:30 Europe/Berlin", BERLIN_AUTUMN, 2),
        ("Sun 02:30-02:45 Europe/Berlin", BERLIN_AUTUMN, 0.5),
        ("Mon-Sun 00:00-24:00 Europe/Berlin", BERLIN_AUTUMN, 169),
        # New York: 02:00 to 03:00 does not come on 2026-03-08; 01:00 to 02:00 comes twice on 2026-11-01.
        ("Sun 02:00-03:00 America/New_York", NEW_YORK_SPRING, 0),
        ("Sun 01:00-02:00 America/New_York", NEW_YORK_AUTUMN, 2),
        ("Mon-Fri 09:00-17:00 America/New_York", NEW_YORK_AUTUMN, 40),
        # Lord Howe moves its clocks by half an hour: 02:00 to 02:30 does not come, 01:30 to 02:00 comes twice.
        ("Sun 02:00-03:00 Australia/Lord_Howe", LORD_HOWE_SPRING, 0.5),
        ("Sun 01:00-02:00 Australia/Lord_Howe", LORD_HOWE_AUTUMN, 1.5),
        ("Mon-Sun 00:00-24:00 Australia/Lord_Howe", LORD_HOWE_SPRING, 167.5),
        ("Mon-Sun 00:00-24:00 Australia/Lord_Howe", LORD_HOWE_AUTUMN, 168.5),
    ],
)
def test_a_schedule_has_these_hours_in_that_week(text, day, hours):
    assert hours_of(text, day) == hours


def test_a_window_past_midnight_belongs_to_the_day_it_starts_on():
    night = Hours(ZoneInfo("Asia/Shanghai"), (Window(days=("fri",), start=time(22), end=time(8)),), frozenset({date(2026, 11, 20)}))
    at = [night.contains(datetime.fromisoformat(text)) for text in ("2026-11-27T22:00+08:00", "2026-11-28T07:59+08:00")]
    assert at == [True, True]
    for text in ("2026-11-27T21:59+08:00", "2026-11-28T08:00+08:00", "2026-11-27T07:00+08:00", "2026-11-28T22:00+08:00"):
        assert not night.contains(datetime.fromisoformat(text)), text
    for text in ("2026-11-20T23:00+08:00", "2026-11-21T07:00+08:00"):  # the Friday is a holiday, and so is the night that begins on it
        assert not night.contains(datetime.fromisoformat(text)), text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Mon-Fri 17:00-09:00", "ends at 09:00, before it starts at 17:00"),
        ("Mon-Fri 09:00-09:00", "before it starts"),
        ("Mon-Fri 09:00-00:00", "before it starts"),
        ("Mon-Fri 24:00-24:00", "start '24:00'"),
        ("Mon-Fri 09:00-25:00", "end '25:00'"),
        ("Mon-Fri 09:60-17:00", "start '09:60'"),
        ("Mon-Fry 09:00-17:00", "'fry'"),
        ("Mo-Fr 09:00-17:00", "'mo'"),
        ("Mon,,Tue 09:00-17:00", "''"),
        ("Mon-Fri 09:00-17:00 Mars/Base", "unknown time zone 'Mars/Base'"),
        ("Mon-Fri 09:00-17:00 ../../etc/passwd", "unknown time zone"),
        ("Mon 09:00-10:00 UTC; Tue 09:00-10:00 Europe/Berlin", "two time zones"),
        ("every day", "cannot read"),
        ("", "cannot read"),
        ("Mon-Fri 09:00-17:00;", "cannot read"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_part_named(text, named):
    with pytest.raises(UsageError) as caught:
        parse_schedule(text)
    assert named in caught.value.message


def test_a_misspelt_zone_gets_the_nearest():
    with pytest.raises(UsageError) as caught:
        parse_schedule("Mon-Fri 09:00-17:00 Europe/Berln")
    assert caught.value.nearest[0] == "Europe/Berlin"


quarters = st.integers(0, 95).map(lambda number: time(number // 4, number % 4 * 15))
windows = st.builds(
    lambda days, start, end: Window(days=tuple(day for day in WEEKDAYS if day in days), start=start, end=end),
    st.sets(st.sampled_from(WEEKDAYS), min_size=1),
    quarters,
    quarters,
).filter(lambda window: window.start != window.end)
zones = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai", "UTC"]).map(ZoneInfo)
hours = st.builds(Hours, zones, st.lists(windows, max_size=3).map(tuple))
days = st.sampled_from([USUAL, BERLIN_SPRING, BERLIN_AUTUMN, NEW_YORK_SPRING, NEW_YORK_AUTUMN, LORD_HOWE_SPRING, LORD_HOWE_AUTUMN])


def clock_says_so(schedule: Hours, moment: datetime) -> bool:
    """Inside, by minutes counted from midnight on that day's clock and the day's before."""
    local = moment.astimezone(schedule.zone)
    minute = local.hour * 60 + local.minute
    for window in schedule.windows:
        start, end = (clock.hour * 60 + clock.minute for clock in (window.start, window.end))
        for days_ago in (0, 1):
            day, since_start = local.date() - timedelta(days=days_ago), minute + 1440 * days_ago - start
            if WEEKDAYS[day.weekday()] in window.days and 0 <= since_start < (end - start) % 1440:
                return True
    return False


@given(load=st.none() | hours, peak=hours, day=days)
@settings(max_examples=60, deadline=None)
def test_a_week_is_the_sum_of_its_quarters_of_an_hour(load, peak, day):
    monday, sunday = week_of(day)
    zone = load.zone if load else UTC
    moment, end = (datetime.combine(first, time(), zone).astimezone(UTC) for first in (monday, sunday + timedelta(days=1)))
    counted = {True: timedelta(), False: timedelta()}
    while moment < end:
        if load is None or clock_says_so(load, moment):
            counted[clock_says_so(peak, moment)] += STEP
        moment += STEP
    assert divide(load, peak, day) == (counted[True], counted[False])


@given(schedule=hours, moment=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
@settings(max_examples=100, deadline=None)
def test_inside_is_what_the_clock_says(schedule, moment):
    assert schedule.contains(moment) == clock_says_so(schedule, moment)
