"""Transactions over shards, beside what a user would pick instead, measured alike and in turns.

Contenders: every protocol of ordercast that runs transactions over shards, with three shards of three
replicas; HydraTxn once more with one shard; HydraPaxos, whose one group of three runs all transactions; etcd
with three members, its data on disk and in memory (/dev/shm); and one Redis server with scripts, which is a
ceiling, no rival: nothing is replicated there.

In one program so many asyncio tasks run transactions, each as soon as its last one has ended. Workloads:

- `ycsb`: YCSB+T with single keys, read or written 1:1, values of 64 bytes. Each is in one shard.
- `two`: YCSB+T in a closed economy: two keys are read, and an amount is moved from one to the other. Half of
  these transactions are general: the program locks and reads, then writes. HydraPaxos has no general ones; it
  runs the others instead.
- `retwis`: 5% add a user, 15% follow one, 30% post, 50% read a timeline.

There are 1,000 keys, all alike. etcd runs what reads and writes as its documentation says: it reads the keys
in one transaction and writes them in another, if none has changed since. If one has, the transaction was
*aborted*, and is tried again. With ordercast a general transaction is aborted if its shards have ended it.
What protocols repeat by themselves is not counted; it takes time all the same.

Violations: when all tasks have ended, the amounts of all keys of `two` must have the sum of the beginning.

All clients are in Python, in the measuring program. etcd is called through its JSON gateway and Redis in its
own protocol, by small clients on asyncio streams, a connection for each task. Contenders take turns within
each round. Figures are medians of the rounds; ratios are those of the medians. Who is not here is named as
absent.

    python -m benchmarks.transactions [--seconds S] [--rounds N] [--only etcd_memory] [--json]
"""
