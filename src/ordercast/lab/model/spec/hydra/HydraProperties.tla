-------------------------- MODULE HydraProperties --------------------------
(***************************************************************************)
(* What Hydra promises (section 4.1, Appendix B), as invariants over what  *)
(* the groups have delivered; and claims that must turn out false, because *)
(* a specification in which nothing happens keeps every promise.           *)
(***************************************************************************)
EXTENDS Hydra

Log(g)    == receiver[g].log
Ranked(g) == {i \in DOMAIN Log(g) : Log(g)[i].kind # "drop"}
Of(g, kind) == {i \in DOMAIN Log(g) : Log(g)[i].kind = kind}
Views(g, change) == {i \in Of(g, "view") : Log(g)[i].change = change}

TypeOK ==
  /\ \A s \in Sequencers : \A c \in DOMAIN stamped[s] : stamped[s][c] \subseteq Groups
  /\ Groupcasts(stamped) <= MaxMessages
  /\ \A g \in Groups : LET r == receiver[g] IN
       /\ r.held \subseteq Messages
       /\ \A m \in r.held : g \in Destinations(m)
       /\ r.known \subseteq Sequencers
       /\ r.clock \in [Sequencers -> 0..Forever]
       /\ r.highest \in [Sequencers -> [Groups -> 0..MaxClock]]
       /\ r.settled \in [Sequencers -> 0..MaxClock]
       /\ r.viewed <= r.applied /\ r.applied <= Len(decisions)
       /\ \A s \in r.known : r.safe[s] <= r.clock[s]
       /\ \A i \in DOMAIN r.log : r.log[i].kind \in {"message", "drop", "view"}
  /\ step.change \in {"none", "added", "removed"}
  /\ Len(decisions) <= MaxSteps

(* Two groups deliver what both deliver in one order, views included. *)
SameRow(a, b) == /\ a.kind = b.kind
                 /\ RankOf(a) = RankOf(b)
                 /\ a.kind = "view" => a.config = b.config
GlobalOrder ==
  \A g, h \in Groups : g # h =>
    \A i, j \in Ranked(g) : i < j =>
      ~\E k, l \in Ranked(h) : k < l /\ SameRow(Log(g)[i], Log(h)[l]) /\ SameRow(Log(g)[j], Log(h)[k])

(* Each group delivers messages by rank, and a view after the ranks up to its boundary; the numbers of  *)
(* one issuer increase.                                                                                *)
LocalOrder ==
  \A g \in Groups : \A i, j \in Ranked(g) : i < j =>
    LET a == Log(g)[i]
        b == Log(g)[j]
    IN /\ IF b.kind = "view" THEN AtMost(RankOf(a), RankOf(b)) ELSE Before(RankOf(a), RankOf(b))
       /\ (a.kind = "message" /\ b.kind = "message" /\ a.issuer = b.issuer)
            => NumberOf(RankOf(a), g) < NumberOf(RankOf(b), g)

(* A number of an issuer is delivered or notified, not both, and not twice; and of a message that was   *)
(* sent again one copy is delivered.                                                                   *)
Has(g, m) == MessageRow(m) \in Rows(Log(g))
NumberIn(g, row) == IF row.kind = "message" THEN NumberOf(RankOf(row), g) ELSE row.number
AtMostOnce == \A g \in Groups :
  /\ ~(Has(g, again.first) /\ Has(g, again.second))
  /\ \A i, j \in DOMAIN Log(g) \ Of(g, "view") :
    (i # j /\ Log(g)[i].issuer = Log(g)[j].issuer) => NumberIn(g, Log(g)[i]) # NumberIn(g, Log(g)[j])

(* The copy that counts is the same in all groups. *)
SameCopy == \A g, h \in Groups : g # h => ~(Has(g, again.first) /\ Has(h, again.second))

(* A message that one group has delivered is delivered or notified in each of its groups before        *)
(* anything that is ordered after it.  (A message that nobody delivers may be notified in one group    *)
(* and unheard of in another: that removes nothing from anybody.)                                      *)
After(m, row) == \/ row.kind = "message" /\ Before(m, RankOf(row))
                 \/ row.kind = "view" /\ AtMost(m, RankOf(row))
                 \/ row.kind = "view" /\ row.change = "removed" /\ row.issuer = m[2]
Told(g, m, i) == \/ Log(g)[i] = MessageRow(m)
                 \/ Log(g)[i] = DropRow(m[2], NumberOf(m, g))
DeliveredSomewhere == UNION {{RankOf(Log(g)[i]) : i \in Of(g, "message")} : g \in Groups}
Delivery ==
  \A m \in DeliveredSomewhere : \A g \in Destinations(m) :
    \A j \in Ranked(g) : After(m, Log(g)[j]) => \E i \in 1..(j - 1) : Told(g, m, i)

(* The numbers of a view: all of a removed issuer up to it are settled before, none after; those of an  *)
(* added issuer begin after it.                                                                        *)
StartOf(g, s) ==
  Greatest({0} \cup {Log(g)[i].number : i \in {j \in Views(g, "added") : Log(g)[j].issuer = s}})
ViewNumbers ==
  \A g \in Groups : \A v \in Of(g, "view") :
    LET view == Log(g)[v]
        own == {i \in DOMAIN Log(g) \ Of(g, "view") : Log(g)[i].issuer = view.issuer}
        slots(I) == {NumberIn(g, Log(g)[i]) : i \in I \cap own}
        before == slots(1..(v - 1))
        after == slots((v + 1)..Len(Log(g)))
    IN IF view.change = "removed"
       THEN before = (StartOf(g, view.issuer) + 1)..view.number /\ after = {}
       ELSE before = {} /\ \A n \in after : n > view.number

-----------------------------------------------------------------------------
(* To be refuted: each counterexample is the way to the event.               *)

NoRemoval        == \A g \in Groups : Views(g, "removed") = {}
NoAddition       == \A g \in Groups : Views(g, "added") = {}
RemovedByAll     == \A g \in Groups : Views(g, "removed") # {}
NoLifeAfterRemoval ==
  ~(RemovedByAll /\ \A g \in Groups : \E i \in Views(g, "removed"), j \in Of(g, "message") : i < j)
NoNewcomer ==
  \A g \in Groups : \A i \in Of(g, "message") : Log(g)[i].issuer \in Initial
(* The agreed numbers make a group tell a drop of which it had heard from no packet of its own. *)
NoTailDrop ==
  ~\E g \in Groups : \E i \in Views(g, "removed"), j \in Of(g, "drop"), h \in Groups :
     j < i /\ Log(g)[j].issuer = Log(g)[i].issuer /\ \E k \in Of(h, "message") :
       Log(g)[i].issuer = Log(h)[k].issuer /\ g \in Destinations(RankOf(Log(h)[k]))
       /\ Log(g)[j].number = NumberOf(RankOf(Log(h)[k]), g)
NoLifeAfterAbandon ==
  ~(\E i \in DOMAIN decisions : decisions[i].change = "abandoned" /\
      \A g \in Groups : receiver[g].viewed >= i /\ Of(g, "message") # {})
(* A sequencer that was added is removed again, and every group has passed both. *)
NoComingAndGoing ==
  ~\A g \in Groups : \E i \in Views(g, "added"), j \in Views(g, "removed") :
     i < j /\ Log(g)[i].issuer = Log(g)[j].issuer /\ \E k \in Of(g, "message") : i < k /\ k < j
(* The second copy of a message to all groups is the one that all of them deliver. *)
NoSecondCopy == ~\A g \in Groups : Has(g, again.second)
(* The first copy counts in one group, and another knows that it missed something. *)
NoDoubt == ~\E g, h \in Groups : Has(g, again.first) /\ ~again.sent
             /\ PassedRemoval(h, again.first[2]) /\ Missed(h, again.first[2])
=============================================================================
