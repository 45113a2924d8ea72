"""For all tests: Hypothesis without deadlines, since machines are busy and time is no property here."""

from hypothesis import settings

settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
