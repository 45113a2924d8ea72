"""The experiments of sequencing atoms (Decentralized Message Ordering, section 4)."""
