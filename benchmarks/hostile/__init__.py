"""A live cluster under load and under attack: is anything accepted, and how much slower are its users?

    python -m benchmarks.hostile [--datagrams 1000000] [--lies 100000] [--rate 10000] [--json hostile.json]

Hydra with three receivers, two sequencers and three replicas of the configuration service orders messages
that users send at a steady rate (`--offered`). Or each client sends its next message when the last one was
delivered (`--clients`); then the rate falls with every delay.

An attacker does two things at once, at a steady rate. Without the key, it sends *datagrams* to all hosts:
random bytes, headers that look right, and recordings that are changed, cut, spliced, played again, from an
earlier life or sealed with another key. With the key and a place in the cluster (that of the spare
sequencer), it sends *lies*: messages behind a valid seal that no correct member sends.

The same cluster goes through three phases in turns, in an order that changes:

- *quiet*: the attacker does nothing;
- *decoy*: it sends as much as in an attack, but to a socket that nobody reads;
- *attack*.

The rate in the attack, divided by that of the quiet phases, is what users notice. The rate of the decoy shows
how much of it is the CPU time of the attacker, which has a machine of its own in real life. The rest is what
it costs hosts to refuse. The attack is spread over the run: a host cannot defend itself against more
datagrams than its kernel can take, so a flood at full speed would measure the machine and not the hosts.
Datagrams come in bursts of 32 to one host. If each came alone, a host would mostly wake up and sleep again.
"""
