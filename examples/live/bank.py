"""A bank whose accounts are spread over shards."""

import ordercast


class Bank(ordercast.Shard):
    """Accounts and the money on them; each shard holds some."""

    @ordercast.transaction(keys="account")
    def deposit(self, account: str, amount: int) -> int:
        self[account] = self.get(account, 0) + amount
        return self[account]

    @ordercast.transaction(keys=("source", "target"))
    def transfer(self, source: str, target: str, amount: int) -> None:
        for account, change in ((source, -amount), (target, amount)):
            if self.holds(account):
                self[account] = self.get(account, 0) + change

    @ordercast.transaction(reads="accounts", combine=sum)
    def total(self, accounts: list[str]) -> int:
        return sum(self.get(account, 0) for account in self.held)
