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
from netsim.engines.compiled.loop import BUDGET, DONE, advance, receive_box

__all__ = ["run_lane"]

# One row for each lane and parity of the round, on cache lines of their own.
REPORT = np.dtype([("status", "i8"), ("next_window", "i8"), ("unused", "i8", 6)])


@partial(kernel, inline=False, nogil=True)
def run_lane(
    settings,
    laws,
    pool,
    values,
    profiles,
    nodes,
    owned,
    contacts,
    edges,
    slots,
    own_start,
    own_item,
    own_value,
    accounts,
    updates,
    lane,
    calendar,
    heads,
    chunks,
    stored,
    current,
    order,
    spare,
    batches,
    payloads,
    answers,
    blocks,
    named,
    words,
    sent,
    fates,
    sizes,
    arrivals,
    lane_of,
    batch_of,
    box_counts,
    box_messages,
    box_batches,
    box_payloads,
    box_answers,
    arrived,
    reports,
    stop,
    windows_per_second,
    budget,
):
    """Advance one lane of a team up to the time `stop`, in step with the others.

    The boxes have shape (2, lanes, lanes, ...): parity of the round, sender, receiver. All lanes return together:
    DONE where everything before `stop` is done, else for the reason in `reports`, to be called again.
    """
    me = lane[0]
    number, n_lanes = me.number, batch_of.shape[0]
    begun = me.done
    last_window = part_of(stop, windows_per_second)
    while True:
        parity = me.round & 1
        status = DONE
        if me.received < me.round:
            for sender in range(n_lanes):
                if sender != number and status == DONE:
                    status = receive_box(
                        lane,
                        calendar,
                        heads,
                        chunks,
                        stored,
                        current,
                        order,
                        batches,
                        payloads,
                        answers,
                        blocks,
                        edges,
                        box_counts[1 - parity, sender, number],
                        box_messages[1 - parity, sender, number],
                        box_batches[1 - parity, sender, number],
                        box_payloads[1 - parity, sender, number],
                        box_answers[1 - parity, sender, number],
                    )
            if status == DONE:
                me.received = me.round
        if status == DONE:
            status = advance(
                settings,
                laws,
                pool,
                values,
                profiles,
                nodes,
                owned,
                contacts,
                edges,
                slots,
                own_start,
                own_item,
                own_value,
                accounts,
                updates,
                lane,
                calendar,
                heads,
                chunks,
                stored,
                current,
                order,
                spare,
                batches,
                payloads,
                answers,
                blocks,
                named,
                words,
                sent,
                fates,
                sizes,
                arrivals,
                lane_of,
                batch_of,
                box_counts[parity, number],
                box_messages[parity, number],
                box_batches[parity, number],
                box_payloads[parity, number],
                box_answers[parity, number],
                stop,
                me.window,
                windows_per_second,
                budget,
            )
        following = me.next_window
        for to in range(n_lanes):
            for n in range(box_counts[parity, number, to, 0]):
                time = box_messages[parity, number, to, n].time
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
