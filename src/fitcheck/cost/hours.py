"""Weekly hours: which instants lie in a set of windows, and how the hours of a week divide.

Windows are wall-clock times in a zone, start inclusive, end exclusive; one whose end is not after its start wraps past midnight and
belongs to the day it starts on. An instant is in a window when the zone's own clock says so, which settles daylight saving: an hour that
the clock skips is in no window, one that it repeats is in it twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fitcheck.catalogue.ratecards import Weekday, Window
from fitcheck.errors import UsageError
from fitcheck.frozen import frozen

WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOURS_PER_WEEK = Decimal(168)
_DAY = timedelta(days=1)
_MIDNIGHT = time(0)
_PART = re.compile(r"^\s*(?P<days>[A-Za-z][A-Za-z,\- ]*?)\s+(?P<start>\d{1,2}:\d{2})\s*-\s*(?P<end>\d{1,2}:\d{2})(?:\s+(?P<zone>\S+))?\s*$")
_EXAMPLE = "write it as 'Mon-Fri 09:00-17:00 Europe/Berlin'"


@frozen
class Hours:
    """Windows of a week in one zone. No windows at all means never."""

    zone: ZoneInfo
    windows: tuple[Window, ...]
    holidays: frozenset[date] = frozenset()

    def contains(self, moment: datetime) -> bool:
        """Whether the zone's clock stands in a window at that instant; a holiday has no windows."""
        local = moment.astimezone(self.zone)
        return any(_inside(window, local, self.holidays) for window in self.windows)

    def edges(self, first: date, last: date) -> Iterator[datetime]:
        """Every instant (UTC) from `first` to `last` at which being inside may change; others may be among them.

        A clock time that a day has twice gives two instants.
        """
        for day in _days_between(first - _DAY, last + _DAY):
            for clock in {_MIDNIGHT, *(window.start for window in self.windows), *(window.end for window in self.windows)}:
                for fold in (0, 1):
                    yield datetime.combine(day, clock, self.zone).replace(fold=fold).astimezone(UTC)
        yield from self._clock_changes(first - _DAY, last + _DAY)

    def _clock_changes(self, first: date, last: date) -> Iterator[datetime]:
        """Instants at which the zone's offset from UTC changes, to the second; at most one is looked for in a day of UTC."""
        for day in _days_between(first, last + _DAY):
            low = datetime.combine(day, _MIDNIGHT, UTC)
            high = low + _DAY
            before = low.astimezone(self.zone).utcoffset()
            if before == high.astimezone(self.zone).utcoffset():
                continue
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
                if middle.astimezone(self.zone).utcoffset() == before:
                    low = middle
                else:
                    high = middle
            yield high


def _days_between(first: date, last: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def _inside(window: Window, local: datetime, holidays: Collection[date]) -> bool:
    today, yesterday, clock = local.date(), local.date() - _DAY, local.time()
    if window.start < window.end:
        return _counts(window, today, holidays) and window.start <= clock < window.end
    return (_counts(window, today, holidays) and clock >= window.start) or (_counts(window, yesterday, holidays) and clock < window.end)


def _counts(window: Window, day: date, holidays: Collection[date]) -> bool:
    return WEEKDAYS[day.weekday()] in window.days and day not in holidays


def week_of(day: date) -> tuple[date, date]:
    """Monday and Sunday of the week a day lies in."""
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6)


def divide(load: Hours | None, windows: Hours | None, day: date) -> tuple[timedelta, timedelta]:
    """How much of the load's time in the week of `day` lies inside and outside the windows.

    The week runs from Monday to Sunday on the load's clock (UTC for a load round the clock, None). The two add up to the load's time.
    """
    first, last = week_of(day)
    zone = load.zone if load else UTC
    start = datetime.combine(first, _MIDNIGHT, zone).astimezone(UTC)
    end = datetime.combine(last + _DAY, _MIDNIGHT, zone).astimezone(UTC)
    edges = {start, end}
    for hours in (load, windows):
        if hours is not None:
            edges.update(edge for edge in hours.edges(first, last) if start < edge < end)
    inside = outside = timedelta()
    ordered = sorted(edges)
    for begin, until in pairwise(ordered):
        if load is None or load.contains(begin):
            if windows is not None and windows.contains(begin):
                inside += until - begin
            else:
                outside += until - begin
    return inside, outside


def parse_schedule(text: str) -> Hours:
    """Working hours such as `Mon-Fri 09:00-17:00 Europe/Berlin` (UTC where no zone is named); `;` joins several, in one zone.

    A window ends on the day it starts, at 24:00 at the latest. Raises `UsageError` that names the part which cannot be read.
    """
    zones: list[str] = []
    windows: list[Window] = []
    for part in text.split(";"):
        match = _PART.match(part)
        if match is None:
            raise UsageError(f"--schedule: cannot read {part.strip()!r}", hint=_EXAMPLE)
        start, end = _clock(match["start"], "start"), _clock(match["end"], "end")
        if end != _MIDNIGHT and start >= end:
            hint = "write a night as two windows: 'Mon-Fri 22:00-24:00; Tue-Sat 00:00-06:00 Europe/Berlin'"
            raise UsageError(f"--schedule: the window ends at {match['end']}, before it starts at {match['start']}", hint=hint)
        windows.append(Window(days=_days(match["days"]), start=start, end=end))
        zones += [match["zone"]] if match["zone"] else []
    if len(set(zones)) > 1:
        raise UsageError(f"--schedule: two time zones, {zones[0]} and {zones[1]}", hint="name one, at the end")
    return Hours(find_zone(zones[0] if zones else "UTC"), tuple(windows))


def _clock(text: str, part: str) -> time:
    hour, minute = (int(number) for number in text.split(":"))
    if part == "end" and (hour, minute) == (24, 0):
        return _MIDNIGHT
    try:
        clock = time(hour, minute)
    except ValueError as error:
        raise UsageError(f"--schedule: the {part} {text!r} is not a time of day", hint="write it as 09:00, at most 24:00") from error
    if part == "end" and clock == _MIDNIGHT:
        raise UsageError("--schedule: the window ends at 00:00, before it starts", hint="write the end of the day as 24:00")
    return clock


def _days(text: str) -> tuple[Weekday, ...]:
    chosen: set[int] = set()
    for part in text.replace(" ", "").lower().split(","):
        first, dash, last = part.partition("-")
        begin, end = _weekday(first), _weekday(last) if dash else _weekday(first)
        chosen.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return tuple(WEEKDAYS[number] for number in sorted(chosen))


def _weekday(text: str) -> int:
    for number, name in enumerate(_WEEKDAY_NAMES):
        if len(text) >= 3 and name.startswith(text):
            return number
    raise UsageError(f"--schedule: {text!r} is not a day of the week", hint=f"one of {', '.join(WEEKDAYS)}, or a range such as mon-fri")


def find_zone(name: str) -> ZoneInfo:
    """The time zone of this IANA name. Raises `UsageError` with the nearest names for one that does not exist."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        from difflib import get_close_matches
        from zoneinfo import available_timezones

        nearest = tuple(get_close_matches(name, sorted(available_timezones()), n=3))
        hint = "write an IANA name such as Europe/Berlin, Asia/Shanghai or UTC"
        raise UsageError(f"--schedule: unknown time zone {name!r}", hint=hint, nearest=nearest) from error
