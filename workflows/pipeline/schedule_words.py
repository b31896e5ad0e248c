"""A schedule in words. A cron expression without a short form is shown as written."""

import re

from workflows.pipeline.definition import Schedule

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {day[:3].lower(): number for number, day in enumerate(DAYS[:7])}
_NAMED = {"@hourly": "every hour", "@weekly": "every Sunday at 00:00", "@monthly": "on the 1st of the month at 00:00"}
_NAMED |= {
    "@daily": "every day at 00:00",
    "@midnight": "every day at 00:00",
    "@yearly": "on January 1st at 00:00",
    "@annually": "on January 1st at 00:00",
}


def in_words(schedule: Schedule) -> str:
    """Describe a schedule: `every Monday to Friday at 03:00 (Europe/Rome), up to 5m later`."""
    if schedule.interval:
        words = f"every {schedule.interval}"
    else:
        cron = schedule.cron or ""
        words = f"{_cron(cron) or f'by cron {cron}'} ({schedule.timezone or 'UTC'})"
    return f"{words}, up to {schedule.jitter} later" if schedule.jitter else words


_EVERY = re.compile(r"@every\s+(\S+)")
_STEP = re.compile(r"\*/([0-9]+)")


def _cron(cron: str) -> str | None:
    """Describe common cron expressions: at minutes of an hour, at a time of the day, on days of the week. Return None
    for others.
    """
    fields = cron.split()
    if len(fields) != 5:
        every = _EVERY.fullmatch(cron)
        return f"every {every[1]}" if every else _NAMED.get(cron)
    minute, hour, day, month, weekday = fields
    if (day, month) != ("*", "*"):
        return None
    when, days = _time(minute, hour), _days(weekday)
    if when is None or days is None:
        return None
    if not when.startswith("at "):
        return when if weekday == "*" else f"{when} on {days}"
    return f"every {days} {when}"


def _time(minute: str, hour: str) -> str | None:
    if _is_number(minute) and _is_number(hour):
        return f"at {int(hour):02}:{int(minute):02}"
    if hour == "*" and minute == "*":
        return "every minute"
    if hour == "*" and (step := _STEP.fullmatch(minute)):
        return f"every {step[1]} minutes"
    if hour == "*" and _is_number(minute):
        return f"every hour at :{int(minute):02}"
    if _is_number(minute) and (step := _STEP.fullmatch(hour)):
        return f"every {step[1]} hours at :{int(minute):02}"
    return None


def _is_number(field: str) -> bool:
    return re.fullmatch("[0-9]{1,2}", field) is not None


def _days(field: str) -> str | None:
    if field == "*":
        return "day"
    parts = [part.split("-") for part in field.split(",")]
    if any(len(part) > 2 or any(_day(name) is None for name in part) for part in parts):
        return None
    names = [" to ".join(_day(name) or "" for name in part) for part in parts]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _day(name: str) -> str | None:
    number = int(name) if _is_number(name) else _SHORT.get(name.lower(), -1)
    return DAYS[number] if 0 <= number < len(DAYS) else None
