"""Options with one dash and one or more letters, as LSF, PBS and Grid Engine have them."""

from fake_drm.cli import CommandError


def parse(argv, with_value, flags, usage, joined=True):
    """Return ([(name, value)], [other arguments]); a flag's value is True.

    Args:
        with_value, flags: the options' names, without the dash.
        usage: function of the option that is not known; returns a CommandError.
        joined: one-letter options may hold their value (``-lwalltime=5``) or more flags.
    """
    options, others = [], []
    todo = list(argv)
    while todo:
        word = todo.pop(0)
        if word == "--" or not word.startswith("-") or word == "-":
            others.extend(([] if word == "--" else [word]) + todo)
            break
        name = word[1:]
        if name in with_value:
            if not todo:
                raise usage(word)
            options.append((name, todo.pop(0)))
        elif name in flags:
            options.append((name, True))
        elif joined and name[0] in with_value:
            options.append((name[0], name[1:]))
        elif joined and len(name) > 1 and name[0] in flags:
            options.append((name[0], True))
            todo.insert(0, "-" + name[1:])
        else:
            raise usage(word)
    return options, others


def parse_anywhere(argv, with_value, flags, usage, joined=True):
    """The same where options may follow other arguments."""
    options, others = [], []
    todo = list(argv)
    while todo:
        found, rest = parse(todo, with_value, flags, usage, joined)
        options += found
        others += rest[:1]
        todo = rest[1:]
    return options, others


def seconds(text, bare=1, two_parts=60):
    """``90``, ``1:30``, ``01:00:00`` or ``1:00:00:00`` in seconds. Raises ValueError.

    Args:
        bare: seconds of a number alone; ``two_parts``: of the first of two numbers.
    """
    parts = [float(part) for part in text.split(":")]
    if any(part < 0 for part in parts) or len(parts) > 4:
        raise ValueError(text)
    if len(parts) == 1:
        return parts[0] * bare
    if len(parts) == 2:
        return parts[0] * two_parts + parts[1] * two_parts / 60
    days = parts.pop(0) if len(parts) == 4 else 0
    return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2]


def size_kb(text, bare="b", step=1024):
    """``512mb``, ``2G``, ``100`` in KB. Raises ValueError, and KeyError for an unknown unit."""
    word = text.strip().lower()
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = word[len(number):] or bare.lower()
    power = {"": 0, "b": 0, "w": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}[unit[0]]
    return float(number) * step**power / 1024


def refuse(text, code):
    """Return a function for ``usage`` above."""
    return lambda word: CommandError(text.replace("%s", word), code)


def task_list(text):
    """``1-6:2,9`` or ``0-5%2`` as ([1, 3, 5, 9], None) and ([0, ...], 2). Raises ValueError."""
    text, _, throttle = text.partition("%")
    tasks = []
    for part in text.split(","):
        bounds, _, step = part.partition(":")
        first, _, last = bounds.partition("-")
        tasks.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    if not tasks:
        raise ValueError(text)
    return tasks, int(throttle) if throttle else None
