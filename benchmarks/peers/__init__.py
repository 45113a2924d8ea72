"""Ordercast beside what a user would pick instead, measured alike and in turns on one machine.

Contenders: ordercast (`ordercast bench`, Hydra with two sequencers, on three processes and on eight), Redis
Streams without persistence (driven as hard as its client package allows, and by everyday calls), NATS
JetStream with a stream in memory, PySyncObj (a Raft log in pure Python, every receiver a member), and ZeroMQ
PUB/SUB, which keeps an order only because there is one publisher: the ceiling, not a rival.

Four measurements, each with the same number of receiving processes:

- pipelined: one publisher keeps the pipe full. It may be ahead of the slowest receiver by a window of
  messages and no more, so no contender wins by filling its queues. The figure is what the slowest receiver
  got in the common window of time, a second.
- clients, batched by hand: so many closed-loop clients in one process, which is one of the receivers too. A
  client's round ends when this process sees its message delivered, and the next begins at once. All messages
  that become due together are handed to the contender together, which is what its own batching thrives on:
  the best that can be had, for those who write their programs around it.
- clients, a task each: what most programs do. So many asyncio tasks in one process, each of which awaits its
  own send call and then its own message, through the everyday calls of the contender. A round ends when the
  task goes on. A message that does not come within a second is given up by its task. All contenders
  run in the same kind of event loop. Calls promise different things: those of Redis and JetStream return when
  the server has the message, those of ordercast and ZeroMQ when it is on its way; a round has its delivery in
  any case.
- one client: the first of these two with one; its figure is the latency.

Every receiver keeps the number of each message in the order of delivery. What is missing is `lost`; where two
receivers have two messages in different orders, or one has a message twice, is a `violation`. Each contender
gets the best settings that we found, said in its module. Servers are started on free
loopback ports with a scratch folder and are stopped whatever happens. Who has no server or no client package
here is skipped with a word.

Contenders take turns within each round. Figures are medians of the rounds with the least and the greatest;
ratios are those of one round, then their median: machines are noisy.

    python -m benchmarks.peers [--seconds S] [--size 64,1024] [--receivers N] [--clients N]
                               [--only redis,zeromq] [--rounds N] [--json]
"""
