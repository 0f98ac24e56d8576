"""One call of HTCondor's bindings, made in a process of its own (``HTCondorSource``).

The bindings keep Python's lock while they wait for a daemon (measured on 25.14.1: 20 s for a
schedd that accepts a connection and does not answer, and no end for ``history``), so in the
server itself a hanging schedd would stop every thread, requests included. Here a call can be
ended after a timeout, and a crash inside the bindings takes nothing with it.

A request is one JSON object on stdin, the answer the last line on stdout.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional

#: What a Schedd object is made of; kept by the caller, so that not every call has to locate it.
LOCATION = ("Name", "MyType", "MyAddress", "CondorVersion")

Request = Mapping[str, Any]
Answer = Dict[str, Any]


def main() -> int:
    """Read a request, make the call, write the answer."""
    request = json.load(sys.stdin)
    try:
        answer = call(request)
    except Exception as error:  # the bindings' own exception, and whatever else they raise
        answer = {"error": f"{error}" or type(error).__name__}
    print()  # whatever a library printed without a line's end
    print(json.dumps(answer))
    return 0


def call(request: Request) -> Answer:
    """Make the call at the schedd where it was; where that fails, where it is now.

    Raises:
        Exception: whatever the bindings raise.
    """
    known = request.get("location")
    if known:
        try:
            return {**_ask(_schedd_at(known), request), "location": known}
        except Exception as error:
            # A schedd that was restarted has another address. A submission is repeated only
            # where nothing can have reached it.
            if request["do"] == "submit" and "Failed to connect" not in str(error):
                raise
    located = _locate(request.get("schedd"), request.get("pool"))
    if located is None:
        name = request.get("schedd") or "on this host"
        return {"error": f"the collector knows no schedd {name}"}
    return {**_ask(_schedd_at(located), request), "location": located}


def _locate(name: Optional[str], pool: Optional[str]) -> Optional[Dict[str, Any]]:
    import htcondor2

    collector = htcondor2.Collector(pool) if pool else htcondor2.Collector()
    ad = collector.locate(htcondor2.DaemonType.Schedd, name)
    return None if ad is None else {key: str(ad[key]) for key in LOCATION if key in ad}


def _schedd_at(location: Mapping[str, Any]) -> Any:
    import htcondor2
    import classad2

    ad = classad2.ClassAd()
    for name, value in location.items():
        ad[name] = value
    return htcondor2.Schedd(ad)


def _ask(schedd: Any, request: Request) -> Answer:
    return _CALLS[request["do"]](schedd, request)


def _query(schedd: Any, request: Request) -> Answer:
    ads = schedd.query(constraint=request["constraint"], projection=request["projection"])
    return {"ads": _plain_ads(ads)}


def _history(schedd: Any, request: Request) -> Answer:
    ads = schedd.history(request["constraint"], request["projection"], match=request["match"])
    return {"ads": _plain_ads(ads)}


def _remove(schedd: Any, request: Request) -> Answer:
    import htcondor2

    # As a tuple: a plain text is lost in 25.14.1.
    reason = (request["reason"], request["code"])
    totals = schedd.act(htcondor2.JobAction.Remove, request["jobs"], reason=reason)
    return {"totals": {name: totals[name] for name in totals.keys()}}


def _submit(schedd: Any, request: Request) -> Answer:
    import htcondor2

    try:
        description = htcondor2.Submit(request["commands"])
    except (ValueError, TypeError) as error:
        return {"refused": str(error)}
    try:
        return {"cluster": int(schedd.submit(description).cluster())}
    except htcondor2.HTCondorException as error:
        if "Failed to connect" in str(error):
            raise
        return {"refused": str(error)}


_CALLS: Mapping[str, Callable[[Any, Request], Answer]] = {
    "query": _query,
    "history": _history,
    "remove": _remove,
    "submit": _submit,
}


def _plain_ads(ads: Any) -> List[Dict[str, Any]]:
    return [plain_ad(ad) for ad in ads]


def plain_ad(ad: Any) -> Dict[str, Any]:
    """Return a job ad as a dict of text, numbers and truth values.

    Expressions such as MemoryUsage are evaluated in the ad, but not PeriodicRelease: that there
    is one is what matters. What cannot be read (text in another encoding, an expression that
    fails) is left out, and costs no other attribute.
    """
    plain = {}
    for name in ad.keys():
        try:
            value = ad[name]
            if type(value).__name__ == "ExprTree":
                value = str(value) if name.lower() == "periodicrelease" else ad.eval(name)
        except Exception:
            continue
        # Exactly these types: Value.Undefined is an int too.
        if type(value) in (str, int, float, bool):
            plain[name] = value
    return plain
