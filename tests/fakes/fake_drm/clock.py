"""The simulated clock: real time, run faster by ``time_scale`` from an anchor on.

With ``time_scale: 60`` a one-minute limit ends after one real second, and every time that is shown
(submit, start, end, elapsed) is read from this clock, so that the times of a job agree with each
other. They run ahead of the wall clock.
"""

import time


class Clock:
    """Converts between real and simulated seconds since 1970; ``epoch`` is when the state folder
    was made."""

    def __init__(self, settings, epoch):
        self.scale = float(settings["time_scale"]) or 1.0
        self._real, self._simulated = settings["clock_anchor"] or (epoch, epoch)

    def now(self):
        """Simulated seconds since the epoch."""
        return self._simulated + (time.time() - self._real) * self.scale

    def real_seconds(self, simulated):
        """How many real seconds ``simulated`` seconds last."""
        return simulated / self.scale


def iso(seconds):
    """``2026-11-29T11:14:21``, local time as the commands print it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
