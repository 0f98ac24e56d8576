"""Numbers as Slurm reads and prints them: durations, memory, times, task lists, file name
patterns."""

from fake_drm.clock import iso


def parse_time_limit(text):
    """Seconds of a ``--time`` value, None for unlimited; rounded up to whole minutes. Raises
    ValueError."""
    if text.upper() in ("UNLIMITED", "INFINITE", "-1"):
        return None
    days, dash, rest = text.rpartition("-")
    numbers = [int(word) for word in rest.split(":")]
    if len(numbers) > 3 or min(numbers) < 0:
        raise ValueError(text)
    if dash:
        numbers += [0] * (3 - len(numbers))
        seconds = int(days) * 86400 + numbers[0] * 3600 + numbers[1] * 60 + numbers[2]
    elif len(numbers) == 1:
        seconds = numbers[0] * 60
    else:
        numbers = [0] * (3 - len(numbers)) + numbers
        seconds = numbers[0] * 3600 + numbers[1] * 60 + numbers[2]
    return None if seconds == 0 else -(-seconds // 60) * 60


def parse_memory(text):
    """MiB of ``--mem``: megabytes, or with a suffix K M G T. Raises ValueError."""
    units = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
    text = text.upper()
    if text.endswith("B") and len(text) > 1:
        text = text[:-1]
    factor = units.get(text[-1:], None)
    value = int(text if factor is None else text[:-1])
    if value < 0:
        raise ValueError(text)
    return int(-(-value * (factor or 1) // 1))


def memory(megabytes):
    """``100M``, ``2G``: the largest unit that needs no fraction. 0 is ``0``."""
    if not megabytes:
        return "0"
    unit = 0
    while megabytes % 1024 == 0 and unit < 3:
        megabytes //= 1024
        unit += 1
    return "%d%s" % (megabytes, "MGTP"[unit])


def long_duration(seconds):
    """``00:01:00``, ``1-00:00:00``, ``UNLIMITED``: as scontrol and sacct print a limit."""
    if seconds is None:
        return "UNLIMITED"
    seconds = max(0, int(seconds))
    days, rest = divmod(seconds, 86400)
    text = "%02d:%02d:%02d" % (rest // 3600, rest // 60 % 60, rest % 60)
    return "%d-%s" % (days, text) if days else text


def short_duration(seconds):
    """``0:05``, ``1:00:00``, ``1-00:00:00``: as squeue prints it."""
    if seconds is None:
        return "UNLIMITED"
    seconds = max(0, int(seconds))
    if seconds >= 86400:
        return long_duration(seconds)
    if seconds >= 3600:
        return "%d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return "%d:%02d" % (seconds // 60, seconds % 60)


def when(seconds, missing):
    """A time, or ``missing`` where it is None."""
    return missing if seconds is None else iso(seconds)


def elapsed(record, now):
    """Whole seconds a job has run, up to its end."""
    if record["start"] is None:
        return 0
    end = record["end"] if record["end"] is not None else now
    return max(0, int(end) - int(record["start"]))


def task_list(numbers):
    """``1-4,7,9``."""
    parts = []
    numbers = sorted(numbers)
    index = 0
    while index < len(numbers):
        last = index
        while last + 1 < len(numbers) and numbers[last + 1] == numbers[last] + 1:
            last += 1
        parts.append(
            str(numbers[index]) if last == index else "%d-%d" % (numbers[index], numbers[last])
        )
        index = last + 1
    return ",".join(parts)


def parse_task_list(text):
    """``0-8:2,11%3`` -> ([0, 2, 4, 6, 8, 11], 3); no ``%``: None. Raises ValueError."""
    text, percent, limit = text.partition("%")
    numbers = []
    for part in text.split(","):
        span, _, step = part.partition(":")
        first, dash, last = span.partition("-")
        numbers.extend(range(int(first), int(last if dash else first) + 1, int(step or 1)))
    if not numbers:
        raise ValueError(text)
    return sorted(set(numbers)), int(limit) if percent else None


def expand_pattern(pattern, record, node):
    """A ``--output`` value with its ``%j`` and the like filled in, relative to the job's folder."""
    array = record["array_id"] is not None
    values = {
        "%": "%",
        "j": str(record["id"]),
        "J": str(record["id"]),
        "x": record["name"],
        "u": record["user"],
        "N": node,
        "n": "0",
        "t": "0",
        "s": "batch",
        "b": str((record["task_id"] or 0) % 10),
        "A": str(record["array_id"] if array else record["id"]),
        "a": str(record["task_id"]) if array else "4294967294",
    }
    parts = pattern.split("%")
    text = parts[0]
    index = 1
    while index < len(parts):
        part = parts[index]
        if part == "" and index + 1 < len(parts):
            text += "%" + parts[index + 1]
            index += 2
            continue
        digits = len(part) - len(part.lstrip("0123456789"))
        letter = part[digits:digits + 1]
        if letter in values and letter:
            value = values[letter]
            text += (value.rjust(int(part[:digits]), "0") if digits else value) + part[digits + 1:]
        else:
            text += "%" + part
        index += 1
    return text if text.startswith("/") else record["workdir"].rstrip("/") + "/" + text
