"""ClassAd expressions over ads that are dicts of attribute name to expression text.

Covers what job policies and query constraints use: literals, attributes (also ``MY.`` and
``TARGET.``), the operators, ``?:``, lists, and the functions in FUNCTIONS. A nested ad is kept as
its text. Anything else is ERROR, as an unknown function is in HTCondor.
"""

import functools
import re
import time


class Special:
    """UNDEFINED or ERROR."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


UNDEFINED, ERROR = Special("UNDEFINED"), Special("ERROR")
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+(?:[eE][+-]?\d+)?)|"
    r'(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|"
    r"(?P<op>=\?=|=!=|\?:|\|\||&&|==|!=|<=|>=|[-+*/%<>!?:(){},\[\]=;]))"
)
LEVELS = (
    ("||",),
    ("&&",),
    ("==", "!=", "=?=", "=!=", "is", "isnt"),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)


class ParseError(ValueError):
    """The text is no ClassAd expression."""


def quote(text):
    """Return the ClassAd literal of a string."""
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"')


def literal(value):
    """Return the expression text of a Python value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if value is UNDEFINED or value is None:
        return "undefined"
    return quote(value)


def evaluate(text, ad, target=None):
    """Evaluate expression text in the scope of an ad; UNDEFINED and ERROR are values."""
    return parse(text)(Scope(ad, target))


def value_of(ad, name, default=None):
    """Evaluate one attribute; ``default`` where it is absent or UNDEFINED."""
    text = Scope(ad).find(name)
    if text is None:
        return default
    value = evaluate(text, ad)
    return default if value is UNDEFINED else value


class Scope:
    """The ads an expression is evaluated in."""

    def __init__(self, ad, target=None, depth=0):
        self.ad, self.target, self.depth = ad, target or {}, depth

    def find(self, name):
        """Return the text of an attribute of the ad, or None. Names are case-insensitive."""
        return _find(self.ad, name)

    def lookup(self, name):
        """Evaluate a reference."""
        head, _, rest = name.partition(".")
        if self.depth > 30:
            return ERROR
        if head.lower() == "target" and rest:
            text, scope = _find(self.target, rest), Scope(self.target, self.ad, self.depth + 1)
        else:
            text = _find(self.ad, rest if head.lower() == "my" and rest else name)
            scope = Scope(self.ad, self.target, self.depth + 1)
        return UNDEFINED if text is None else parse(text)(scope)


def _find(ad, name):
    text = ad.get(name)
    if text is None:
        lowered = name.lower()
        for key in ad:
            if key.lower() == lowered:
                return ad[key]
    return text


@functools.lru_cache(maxsize=4096)
def parse(text):
    """Return a function of a Scope that evaluates the text; raise ParseError if it is no
    expression."""
    if text.lstrip().startswith("["):
        return lambda scope: text  # a nested ad: kept as it is
    parser = _Parser(text)
    result = parser.ternary()
    if parser.kind is not None:
        raise ParseError("unexpected %r in %r" % (parser.word, text))
    return result


class _Parser:
    def __init__(self, text):
        self.text, self.at = text, 0
        self.kind = self.word = None
        self.advance()

    def advance(self):
        match = TOKEN.match(self.text, self.at)
        if match is None:
            if self.text[self.at:].strip():
                raise ParseError("cannot read %r in %r" % (self.text[self.at:], self.text))
            self.kind = self.word = None
            return
        self.at, self.kind, self.word = match.end(), match.lastgroup, match.group(match.lastgroup)

    def take(self, *words):
        if self.kind in ("op", "name") and self.word.lower() in words:
            word = self.word.lower()
            self.advance()
            return word
        return None

    def expect(self, word):
        if not self.take(word):
            raise ParseError("expected %r before %r in %r" % (word, self.word, self.text))

    def ternary(self):
        condition = self.binary(0)
        if self.take("?:"):
            other = self.ternary()
            return lambda scope: _elvis(condition(scope), other, scope)
        if not self.take("?"):
            return condition
        yes = self.ternary()
        self.expect(":")
        no = self.ternary()
        return lambda scope: _choose(condition(scope), yes, no, scope)

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while True:
            operator = self.take(*LEVELS[level])
            if operator is None:
                return left
            left = _apply(operator, left, self.binary(level + 1))

    def unary(self):
        operator = self.take("!", "-", "+")
        if operator:
            operand = self.unary()
            return lambda scope: _unary(operator, operand(scope))
        return self.primary()

    def primary(self):
        kind, word = self.kind, self.word
        if kind is None:
            raise ParseError("%r ends too early" % self.text)
        if self.take("("):
            inner = self.ternary()
            self.expect(")")
            return inner
        if self.take("{"):
            items = self.arguments("}")
            return lambda scope: [item(scope) for item in items]
        self.advance()
        if kind == "number":
            number = float(word) if re.search(r"[.eE]", word) else int(word)
            return lambda scope: number
        if kind == "string":
            string = re.sub(r"\\(.)", r"\1", word[1:-1])
            return lambda scope: string
        if kind != "name":
            raise ParseError("unexpected %r in %r" % (word, self.text))
        if self.take("("):
            return _call(word.lower(), self.arguments(")"))
        constant = {"true": True, "false": False, "undefined": UNDEFINED, "error": ERROR}.get(
            word.lower(), word
        )
        if constant is not word:
            return lambda scope: constant
        return lambda scope: scope.lookup(word)

    def arguments(self, end):
        found = []
        while not self.take(end):
            found.append(self.ternary())
            if not self.take(","):
                self.expect(end)
                break
        return found


def truth(value):
    """Return True or False for a Boolean or number, else UNDEFINED or ERROR."""
    if isinstance(value, (bool, int, float)):
        return bool(value)
    return value if value is UNDEFINED else ERROR


def _elvis(value, other, scope):
    return other(scope) if value is UNDEFINED else value


def _choose(condition, yes, no, scope):
    condition = truth(condition)
    return condition if isinstance(condition, Special) else (yes if condition else no)(scope)


def _unary(operator, value):
    if isinstance(value, Special):
        return value
    if operator == "!":
        known = truth(value)
        return known if isinstance(known, Special) else not known
    if isinstance(value, (str, list)):
        return ERROR
    return -value if operator == "-" else value


def _apply(operator, left, right):
    if operator in ("&&", "||"):
        decisive = operator == "||"

        def logic(scope):
            first = truth(left(scope))
            if first is decisive or first is ERROR:
                return first
            second = truth(right(scope))
            if second is decisive or second is ERROR or first is not UNDEFINED:
                return second
            return UNDEFINED

        return logic
    if operator in ("=?=", "is"):
        return lambda scope: _identical(left(scope), right(scope))
    if operator in ("=!=", "isnt"):
        return lambda scope: not _identical(left(scope), right(scope))
    return lambda scope: _compute(operator, left(scope), right(scope))


def _identical(left, right):
    if isinstance(left, Special) or isinstance(right, Special):
        return left is right
    return type(left) is type(right) and left == right


def _compute(operator, left, right):
    for value in (left, right):
        if value is ERROR:
            return ERROR
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    if (
        isinstance(left, str) != isinstance(right, str)
        or isinstance(left, list)
        or isinstance(right, list)
    ):
        return ERROR
    if isinstance(left, str):
        left, right = left.lower(), right.lower()  # == and < ignore case
        if operator in "+-*/%":
            return ERROR
    try:
        return COMPUTE[operator](left, right)
    except ZeroDivisionError:
        return ERROR


def _divide(left, right):
    if isinstance(left, int) and isinstance(right, int):
        return int(left / right)
    return left / right


COMPUTE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a % b,
}


def _text(value):
    return value if isinstance(value, str) else literal(value).strip('"')


def _members(text, separators=", "):
    return [part for part in re.split("[%s]+" % re.escape(separators), text) if part]


FUNCTIONS = {
    "time": lambda: int(time.time()),
    "int": lambda a: int(float(a)),
    "real": float,
    "floor": lambda a: int(a // 1),
    "ceiling": lambda a: -int(-a // 1),
    "round": lambda a: int(a + 0.5),
    "min": lambda a: min(a) if a else UNDEFINED,
    "max": lambda a: max(a) if a else UNDEFINED,
    "string": _text,
    "strcat": lambda *parts: "".join(_text(part) for part in parts),
    "tolower": lambda a: a.lower(),
    "toupper": lambda a: a.upper(),
    "size": len,
    "member": lambda a, b: a in b,
    "stringlistmember": lambda a, b, *rest: a in _members(b, *rest),
    "stringlistimember": lambda a, b, *rest: a.lower() in _members(b.lower(), *rest),
    "split": lambda a, *rest: _members(a, *rest),
    "regexp": lambda pattern, a, *options: bool(
        re.search(pattern, a, re.I if "i" in "".join(options) else 0)
    ),
    "debug": lambda a: a,
}


def _call(name, arguments):
    if name == "ifthenelse" and len(arguments) == 3:
        return lambda scope: _choose(arguments[0](scope), arguments[1], arguments[2], scope)
    if name in ("isundefined", "iserror") and len(arguments) == 1:
        wanted = UNDEFINED if name == "isundefined" else ERROR
        return lambda scope: arguments[0](scope) is wanted

    def call(scope):
        values = [argument(scope) for argument in arguments]
        for special in (ERROR, UNDEFINED):
            if any(value is special for value in values):
                return special
        try:
            return FUNCTIONS[name](*values)
        except (KeyError, TypeError, ValueError, AttributeError, re.error):
            return ERROR

    return call
