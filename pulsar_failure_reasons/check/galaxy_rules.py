"""Checks of resubmit rules: can each of them fire, and does it do what it says?"""

from __future__ import annotations

import difflib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .conditions import (
    cancelled_situations,
    is_true_in,
    names_in,
    situations,
    unknown_names,
    why_no_condition,
)
from .findings import Finding
from .galaxy_site import Environment, GalaxySite

#: What Galaxy tells of a job with too much output, for which it evaluates no condition at all.
_NO_CONDITION = "output_size_limit"
_LIMITS = ("walltime_reached", "memory_limit_reached")


class Rule(NamedTuple):
    """One rule: its number from 1 (or its name in TPV) and what it says; None: not said."""

    label: str
    condition: Optional[str]
    delay: Optional[str]
    target: Optional[str]
    by_destination: bool


def check_rules(site: GalaxySite, environments: List[Environment]) -> Iterator[Finding]:
    """Check all rules of these environments."""
    for environment in environments:
        if environment.resubmit:
            yield from _of_environment(site, environment)


def read_rules(environment: Environment) -> Optional[List[Rule]]:
    """Return the rules of an environment, None where they have no form that is read."""
    given = environment.resubmit
    if environment.in_tpv:
        named = list(given.items()) if isinstance(given, dict) else None
    else:
        named = [(str(n), rule) for n, rule in enumerate(given, 1)] if isinstance(
            given, list) else None
    if named is None or not all(isinstance(rule, dict) for _, rule in named):
        return None
    return [_rule(str(label), rule) for label, rule in named]


def _rule(label: str, given: Dict[str, Any]) -> Rule:
    by_destination = "destination" in given and "environment" not in given
    return Rule(
        label, _text(given.get("condition")), _text(given.get("delay")),
        _text(given.get("destination" if by_destination else "environment")), by_destination,
    )


def _text(value: Any) -> Optional[str]:
    return None if value is None or value == "" else str(value)


def _of_environment(site: GalaxySite, environment: Environment) -> Iterator[Finding]:
    rules = read_rules(environment)
    if rules is None:
        form = "rules by name" if environment.in_tpv else "a list of rules"
        yield Finding(
            "PFR526", f"`resubmit` must be {form}, not {environment.resubmit!r:.80}",
            environment.id,
        )
        return
    findings: List[Finding] = []
    for rule in rules:
        findings.extend(_of_rule(site, environment, rule))
    findings.extend(_order(environment, rules))
    if not any(finding.level.value == "error" for finding in findings):
        findings.append(Finding(
            "PFR520", f"{len(rules)} rule{'s' if len(rules) > 1 else ''}", environment.id))
    yield from findings


def _of_rule(site: GalaxySite, environment: Environment, rule: Rule) -> Iterator[Finding]:
    yield from _target(site, environment, rule)
    if any(text and "{" in text for text in (rule.condition, rule.delay)):
        return  # TPV fills it in for each job
    for text in (rule.condition, rule.delay):
        if text is None:
            continue
        wrong = _expression(site, environment, rule, text)
        if wrong is not None:
            yield wrong
            return
    yield from _firing(site, environment, rule)


def _expression(
    site: GalaxySite, environment: Environment, rule: Rule, text: str
) -> Optional[Finding]:
    """Return what is wrong with an expression as such, None where nothing is."""
    why_not = why_no_condition(text)
    if why_not is not None:
        return Finding("PFR522", f"{_said(rule, text)}: {why_not}", environment.id)
    known = site.source.names | (site.source.our_names if site.any_is_ours() else frozenset())
    unknown = unknown_names(text, known)
    if not unknown:
        return None
    name = unknown[0]
    if name == _NO_CONDITION:
        do = "remove the rule: Galaxy evaluates no condition for output_size_limit"
    elif name in site.source.our_names:
        do = "load a Pulsar runner by our class: the name comes with it"
    else:
        near = difflib.get_close_matches(
            name, sorted(site.source.names | site.source.our_names), n=1
        )
        do = f"did you mean {near[0]}?" if near else f"one of: {', '.join(sorted(known))}"
    return Finding(
        "PFR521", f"{_said(rule, text)}: no condition is named {name}", environment.id, do=do
    )


def _said(rule: Rule, text: str) -> str:
    return f"rule {rule.label}, {text!r:.120}"


def _target(site: GalaxySite, environment: Environment, rule: Rule) -> Iterator[Finding]:
    if rule.target is None:
        return
    if rule.by_destination and _is_unread(site, environment):
        tpv = f"TPV {site.told.get('tpv')} hands it on as it is, and " if environment.in_tpv else ""
        galaxy = f"Galaxy {site.told['galaxy']}" if site.told.get("galaxy") else "Galaxy 26.1"
        yield Finding(
            "PFR524", f"rule {rule.label} names {rule.target!r:.80} as `destination`: "
            f"{tpv}{galaxy} reads `environment`", environment.id,
        )
    if "{" not in rule.target and rule.target not in site.targets():
        near = difflib.get_close_matches(rule.target, sorted(site.targets()), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        yield Finding(
            "PFR525", f"rule {rule.label}: there is no environment {rule.target!r:.80}{hint}",
            environment.id,
        )


def _is_unread(site: GalaxySite, environment: Environment) -> bool:
    """Tell whether nobody turns a rule's ``destination`` into what Galaxy reads."""
    if environment.in_tpv and _is_turned(site, environment):
        return False
    # Without a Galaxy to look at, the newest is meant.
    return not site.source.reads_destination


def _is_turned(site: GalaxySite, environment: Environment) -> bool:
    """Tell whether TPV, or our runner class, hands its ``destination`` on as ``environment``."""
    tpv = site.told.get("tpv")
    if tpv is None or _version(tpv) > (3, 2, 1):
        return True
    ours = site.is_ours(environment.runner) if environment.runner else site.any_is_ours()
    return ours


def _version(text: Optional[str]) -> Tuple[int, ...]:
    parts = (text or "").split(".")[:3]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _firing(site: GalaxySite, environment: Environment, rule: Rule) -> Iterator[Finding]:
    ours, condition = site.any_is_ours(), rule.condition
    if condition is not None and is_true_in(condition, situations(ours)) is False:
        yield Finding("PFR523", f"{_said(rule, condition)} is never true", environment.id)
        return
    yield from _needs_our_class(site, environment, rule)
    if site.is_ours(environment.runner) and (
        condition is None or is_true_in(condition, cancelled_situations())
    ):
        yield Finding(
            "PFR527", f"rule {rule.label}, {condition or 'without a condition'!r:.120}",
            environment.id,
        )
    stays = rule.target in (None, environment.id)
    if stays and (condition is None or "attempt" not in names_in(condition)):
        yield Finding(
            "PFR528", f"rule {rule.label} sends the job to where it failed, whatever the attempt",
            environment.id,
        )


def _needs_our_class(
    site: GalaxySite, environment: Environment, rule: Rule
) -> Iterator[Finding]:
    if environment.runner is None or rule.condition is None or site.is_ours(environment.runner):
        return
    names = names_in(rule.condition)
    wanted = [name for name in names if name in site.source.our_names]
    if site.is_pulsar(environment.runner):
        wanted += [name for name in names if name in _LIMITS]
    if wanted:
        yield Finding(
            "PFR529", f"rule {rule.label}: {', '.join(wanted)} stays false for jobs of the runner "
            f"{environment.runner}", environment.id,
        )


def _order(environment: Environment, rules: List[Rule]) -> Iterator[Finding]:
    for position, rule in enumerate(rules[:-1]):
        if rule.condition is None:
            yield Finding(
                "PFR530", f"rule {rules[position + 1].label} comes after rule {rule.label}, which "
                "has no condition", environment.id,
            )
            return
