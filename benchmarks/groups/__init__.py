"""Overlapping groups: one Redis stream a group, against Hydra and sequencing atoms, in turns on one machine.

    python -m benchmarks.groups
    python -m benchmarks.groups --seconds 3 --rounds 1 --only redis,atoms --json

Six processes are in ten groups that overlap: of 45 pairs of groups, 29 share two processes or more.
Each process receives its groups, and sends to them in turn, messages of 64 bytes. Everybody takes the
messages in the order in which its library hands them over.

Two loads, one after the other. `most`: each process has 64 messages under way, and sends the next when one
of its own has come back; this gives the rate. `paced`: each sends at a fixed pace, whatever comes back;
this gives the latency, from before a message is sent until a subscriber has it, over all subscribers.

`disagreements` counts how often two subscribers saw two messages in different orders: for every two
processes, every two messages that both got, of two groups in which both are. `share` is the share of those
pairs that follow each other directly at the one, and that the other has the other way round. `within_group`
counts pairs of one group, `lost` deliveries that did not come, and `twice` those that came again: all three
must be 0.

- `redis`: one server without persistence; a group is a stream. A process adds with pipelines (XADD) and
  reads all its streams with one XREAD, as its users do. Redis promises an order in each stream, and none
  across streams.
- `hydra`: two sequencers and three replicas of its configuration service on the hosts of the processes
  (`compact`). Its groups do not overlap: each process is a group of its own, and a message to one of the
  ten groups goes to those of all its members at once. One order for everything, kept in memory.
- `atoms`: three sequencing nodes and three replicas of the store on the hosts of the processes (`compact`).
  One order for whatever two subscribers share. Logs and the place of each subscriber are saved before a
  message is delivered, so it writes to the disk what the other two do not.

All have the same six processes; Redis has its server besides. Contenders that are not installed are
skipped.
"""
