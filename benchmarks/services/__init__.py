"""Calls of replicated services, beside what a user would pick instead, measured alike and in turns.

Contenders: every protocol of ordercast that replicates services, with the built-in service `kv` on three
replicas, and HydraPaxos in four ways; etcd with three members, its data on disk and in
memory (/dev/shm); Redis with two replicas and `WAIT 1` after each write; PySyncObj (Raft in pure Python) with
three members; and the C++ code of NOPaxos by its authors, if a group of it runs here (`nopaxos_cpp.py`). The
way of a call through five Python processes that do nothing else (`bare_chain.py`) is a ceiling, no rival.

In one program so many asyncio tasks write values of 64 bytes, each as soon as its last write was answered:
64 tasks, and one. An operation counts when its caller goes on. What an answer promises differs: with
ordercast and etcd that a majority of the replicas has the operation (unreplicated: one server), with
PySyncObj that it is applied, with Redis that one replica has it in memory, which a failover may still lose.

Violations: all answers of ordercast are compared with those of a single service, in the order of the places
that replies name. From the others each task reads its key at the end, which must have its last value.

Clients: etcd is called through its JSON gateway and Redis in its own protocol, by small clients on asyncio
streams, a connection for each task; that is less work in Python than their packages do. PySyncObj runs inside
the program, as its first member and leader: its writes come to the leader without a message, and the answers
go back without one. It has three processes. HydraPaxos is deployed in the same way: of its three replicas one
runs inside the program, and sequencers and configuration service are with them. As `hydra_paxos_apart` it has
nine processes, as the other protocols of ordercast have theirs: the program, three replicas, two sequencers,
and three of their configuration service, which have nothing to do while nothing fails. As
`hydra_paxos_compact` it has four, for the others are with the replicas.

Contenders take turns within each round. Figures are medians of the rounds; ratios are those of the medians.
Who is not installed here is named as absent.

    python -m benchmarks.services [--seconds S] [--rounds N] [--only etcd,redis] [--json]
"""
