"""A cluster file that is read again when it has changed, for the processes that outlive a change."""

from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import file_mark
from ordercast.net.cluster.roster_file import saved_path


class WatchedCluster:
    """A cluster, and whether its file or the roster beside its state has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._marks = self._look()

    def refresh(self) -> Cluster | None:
        """The cluster if its files have changed since the last call; unusable files raise, once."""
        marks = self._look()
        if marks == self._marks:
            return None
        self._marks = marks
        self.cluster = load_cluster(self.cluster.file, check_keys=False)
        return self.cluster

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        return file_mark(self.cluster.file), file_mark(saved_path(self.cluster.folder))
