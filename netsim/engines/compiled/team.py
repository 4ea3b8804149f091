"""Several lanes side by side: windows of time, within which no lane can reach another.

Every delay is at least L > 0. Time is cut into windows a little shorter than L; what is sent in one window arrives in
a later one. So in each window the lanes advance on their own, and at its end they hand over the messages for each
other. Which window a time belongs to is decided by `floor(time * windows_per_second)` alone.
"""

from functools import partial

import numpy as np

from algorithms.compilation import kernel
from netsim.engines.compiled.barrier import wait_for_all
from netsim.engines.compiled.calendar import part_of
from netsim.engines.compiled.loop import BUDGET, DONE, Boxes, advance, receive_box

__all__ = ["run_lane"]

# One row for each lane and parity of the round, on cache lines of their own.
REPORT = np.dtype([("status", "i8"), ("next_window", "i8"), ("unused", "i8", 6)])


@partial(kernel, inline=False, nogil=True)
def run_lane(state, queue, memory, boxes, arrived, reports, stop, windows_per_second, budget):
    """Advance one lane of a team up to the time `stop`, in step with the others.

    The boxes have shape (2, lanes, lanes, ...): parity of the round, sender, receiver. All lanes return together:
    DONE where everything before `stop` is done, else for the reason in `reports`, to be called again.
    """
    me = memory.lane[0]
    number, n_lanes = me.number, memory.batch_of.shape[0]
    begun = me.done
    last_window = part_of(stop, windows_per_second)
    while True:
        parity = me.round & 1
        status = DONE
        if me.received < me.round:
            for sender in range(n_lanes):
                if sender != number and status == DONE:
                    status = receive_box(
                        queue,
                        memory,
                        state.edges,
                        boxes.counts[1 - parity, sender, number],
                        boxes.messages[1 - parity, sender, number],
                        boxes.batches[1 - parity, sender, number],
                        boxes.payloads[1 - parity, sender, number],
                        boxes.answers[1 - parity, sender, number],
                    )
            if status == DONE:
                me.received = me.round
        if status == DONE:
            own = Boxes(
                boxes.counts[parity, number],
                boxes.messages[parity, number],
                boxes.batches[parity, number],
                boxes.payloads[parity, number],
                boxes.answers[parity, number],
            )
            status = advance(state, queue, memory, own, stop, me.window, windows_per_second, budget)
        following = me.next_window
        for to in range(n_lanes):
            for n in range(boxes.counts[parity, number, to, 0]):
                time = boxes.messages[parity, number, to, n].time
                following = min(following, part_of(time, windows_per_second))
        if status == DONE and me.done - begun > budget:
            status = BUDGET
        reports[parity, number].status = status
        reports[parity, number].next_window = following
        me.meeting += 1
        if not wait_for_all(arrived, n_lanes, me.meeting):
            return BUDGET

        for other in range(n_lanes):
            status = max(status, reports[parity, other].status)
            following = min(following, reports[parity, other].next_window)
        if status != DONE:
            return status
        me.round += 1
        if following > last_window or (following == last_window and me.window == last_window):
            return DONE
        me.window = max(following, me.window)
