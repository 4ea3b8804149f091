"""What a draw is for.

A number, once given, is never given to another purpose: old runs stay reproducible.
"""

import numpy as np

INITIAL_PROFILE = np.uint64(1)
LEARNING_RATE = np.uint64(2)
PLACEMENT = np.uint64(3)
HOSTING = np.uint64(4)
CONTACTS = np.uint64(5)
ACCESS_DELAY = np.uint64(6)
TIMER_PHASE = np.uint64(7)
TIMER_GAP = np.uint64(8)
FAN_OUT = np.uint64(9)
BROADCAST_DELAY = np.uint64(10)
BROADCAST_LOSS = np.uint64(11)
REQUEST_DELAY = np.uint64(12)
REQUEST_LOSS = np.uint64(13)
REPLY_DELAY = np.uint64(14)
REPLY_LOSS = np.uint64(15)
SESSION = np.uint64(16)
SEQUENTIAL = np.uint64(17)
TIMER_PERIOD = np.uint64(18)
TRACE = np.uint64(19)
RESIDUAL = np.uint64(20)
TRACE_SEGMENT = np.uint64(21)
CHECKPOINT_PHASE = np.uint64(22)
BURST = np.uint64(23)
PAIR_DELAY = np.uint64(24)
LIFETIME = np.uint64(25)
HANDOVER_DELAY = np.uint64(26)
HANDOVER_LOSS = np.uint64(27)
CHOICE = np.uint64(28)
UPLINK = np.uint64(29)
SERVICE = np.uint64(30)
