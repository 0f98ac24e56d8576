"""getopt_long as Slurm's commands use it, with its messages."""


class UsageError(Exception):
    """The command line is wrong; carries the text for stderr and the return code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.text = text
        self.code = code


def parse(command, argv, longs, shorts, permute=True, code=1, hint=True):
    """Return ([(name, value)], [other arguments]).

    Args:
        longs: names of long options; a trailing ``=`` says that a value follows, ``=?`` that one
        may. shorts: letter -> long name.
        permute: go on after the first argument that is no option.
        code: return code of a usage error.
    """
    kinds = {name.rstrip("=?"): name[len(name.rstrip("=?")):] for name in longs}
    options = []
    others = []
    todo = list(argv)
    while todo:
        word = todo.pop(0)
        if word == "--":
            others.extend(todo)
            break
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            full = _complete(command, name, kinds, word, code, hint)
            if kinds[full] == "=" and not has_value:
                if not todo:
                    raise UsageError(
                        "%s: option '--%s' requires an argument\n%s"
                        % (command, full, _try(command, hint)),
                        code,
                    )
                value = todo.pop(0)
            elif has_value and not kinds[full]:
                raise UsageError(
                    "%s: option '--%s' doesn't allow an argument\n%s"
                    % (command, full, _try(command, hint)),
                    code,
                )
            options.append((full, value))
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                letter, letters = letters[0], letters[1:]
                if letter not in shorts:
                    raise UsageError(
                        "%s: invalid option -- '%s'\n%s" % (command, letter, _try(command, hint)),
                        code,
                    )
                full = shorts[letter]
                value = ""
                if kinds[full] == "=":
                    if not letters and not todo:
                        raise UsageError(
                            "%s: option requires an argument -- '%s'\n%s"
                            % (command, letter, _try(command, hint)),
                            code,
                        )
                    value = letters or todo.pop(0)
                    letters = ""
                elif kinds[full] == "=?":
                    value, letters = letters, ""
                options.append((full, value))
        else:
            others.append(word)
            if not permute:
                others.extend(todo)
                break
    return options, others


def _complete(command, name, kinds, word, code, hint):
    if name in kinds:
        return name
    matches = [known for known in kinds if known.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            "%s: option '--%s' is ambiguous; possibilities: %s\n%s"
            % (command, name, " ".join("'--%s'" % known for known in matches), _try(command, hint)),
            code,
        )
    raise UsageError(
        "%s: unrecognized option '%s'\n%s" % (command, word, _try(command, hint)), code
    )


def _try(command, hint):
    return 'Try "%s --help" for more information\n' % command if hint else ""


def not_simulated(command, what):
    """A UsageError for something the real command can do and this one cannot."""
    return UsageError(
        "%s: error: %s is not simulated (see tests/fakes/README.md)\n" % (command, what), 64
    )
