------------------------------- MODULE Hydra -------------------------------
(***************************************************************************)
(* Hydra groupcast with several active sequencers, and the addition and    *)
(* removal of sequencers (sections 4.3 and 4.4 of the paper, Appendix B).  *)
(*                                                                         *)
(* A group is one receiver here: it stands for the quorum that speaks for  *)
(* it.  The network is not a variable.  What a sequencer has stamped can   *)
(* be handled by a receiver at any later time, in any order, or never;     *)
(* this is loss, delay, reordering and duplication in one.  The answers of *)
(* the configuration service are a sequence that each receiver reads at    *)
(* its own pace.                                                           *)
(*                                                                         *)
(* Not in the paper: a sender may keep a message and send it again through *)
(* another sequencer, when it knows from a receiver that the first copy    *)
(* will never count (the option `resend`).                                 *)
(*                                                                         *)
(* HydraProperties.tla has the promises, the .cfg files what is checked.   *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS
  Groups,        \* the receiver groups
  Sequencers,    \* every issuer that can ever exist: positive numbers, never used again
  Initial,       \* those that configuration 0 has
  Addable,       \* those that may be added
  Removable,     \* those that may be removed
  MaxClock,      \* no message has a higher clock; a flush may have one more
  FlushClocks,   \* the clocks at which sequencers flush
  MaxMessages,   \* groupcasts, of all sequencers together
  MaxSteps       \* configurations after the first, given up ones included

ASSUME /\ Sequencers \subseteq Nat \ {0}
       /\ Initial \cup Addable \cup Removable \subseteq Sequencers
       /\ Initial \cap Addable = {}
       /\ FlushClocks \subseteq 1..(MaxClock + 1)

(***************************************************************************)
(* The rules of which a configuration may switch one off, with X <- Off,   *)
(* to see which promise falls with it.                                     *)
(***************************************************************************)
SettleOnce       == TRUE   \* a number that was delivered or notified is not accepted again
TieBreak         == TRUE   \* equal clocks are ordered by issuer
StopAtReport     == TRUE   \* having reported, accept no more from the sequencer being removed
WholeStamp       == TRUE   \* after the decision, all numbers of a stamp must be within the agreed ones
NotifyAtRemoval  == TRUE   \* tell the missing numbers of a removed sequencer
HoldWhileAdding  == TRUE   \* deliver nothing above the flush that was reported of a new sequencer
StartAtBoundary  == TRUE   \* a new sequencer starts above the boundary of the change before
NewcomersLast    == TRUE   \* tell no drop of a new sequencer before the view that brings it
AwaitRemoval     == TRUE   \* a message is sent again only when its sequencer is removed
RecogniseCopies  == TRUE   \* a receiver that has delivered a message says so to its sender
AdmitMissing     == TRUE   \* a receiver that missed a number does not say that the message never came

(* Switched on, a receiver may also tell drops that nothing needs to be told, as it does after a while. *)
GiveUpEarly      == FALSE

(* Switched on, one message has two copies of different sequencers.  The second is stamped after its    *)
(* sender has sent it again.                                                                            *)
Resend           == FALSE

(* Switched on, Appendix C's guard: a receiver takes the decision of a      *)
(* removal only if it has not begun the removal, which it always has.       *)
PaperGuard       == FALSE

(* All stamps are chosen in the first state.  Nothing that a sequencer does *)
(* depends on a receiver, so a packet that has not been handled might as    *)
(* well not exist yet: no behaviour of the receivers is lost, and far fewer *)
(* states are left.  Off, sequencers take steps like everybody.             *)
(* Of a sequencer that stamps a second copy, that stamp and all later ones  *)
(* are hidden until the copy is sent.                                       *)
Ahead            == TRUE

Off == FALSE
On  == TRUE

VARIABLES
  stamped,    \* stamped[s][c]: the groups of the message that s stamped at clock c, {} for none
  again,      \* the first and second copy of a message, and whether the second has been sent
  receiver,   \* the state of each group
  step,       \* the change of configuration that is under way
  reports,    \* what each group has told the configuration service about that change
  decisions   \* how the changes before ended: configuration i+1 is decisions[i]

vars == <<stamped, again, receiver, step, reports, decisions>>

-----------------------------------------------------------------------------
(* Stamps.  A message is named by its rank <<clock, issuer>>: clocks are     *)
(* strictly increasing, so no sequencer stamps two messages with one clock.  *)

Forever == MaxClock + 2   \* the clock of the last flush of a removed sequencer
NoLimit == <<Forever + 1, 0>>
None    == [change |-> "none"]
NoCopies == [first |-> <<0, 0>>, second |-> <<0, 0>>, sent |-> TRUE]
Clock(s) == IF s = again.second[2] /\ ~again.sent THEN again.second[1] - 1 ELSE Len(stamped[s])

(* The number of the last message for g that s has stamped up to clock c. *)
Number(s, c, g) == Cardinality({t \in 1..c : g \in stamped[s][t]})
Numbers(s, c)   == [g \in Groups |-> Number(s, c, g)]

Messages        == UNION {{<<c, s>> : c \in {t \in 1..Clock(s) : stamped[s][t] # {}}} : s \in Sequencers}
Destinations(m) == stamped[m[2]][m[1]]
NumberOf(m, g)  == Number(m[2], m[1], g)

Before(a, b)   == a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2])
AtMost(a, b)   == a = b \/ Before(a, b)
Greatest(S)    == CHOOSE x \in S : \A y \in S : y <= x
Least(S)       == CHOOSE x \in S : \A y \in S : x <= y
LastRank(S)    == CHOOSE x \in S : \A y \in S : AtMost(y, x)
Rows(sequence) == {sequence[i] : i \in DOMAIN sequence}

-----------------------------------------------------------------------------
(* What a receiver is.                                                       *)

NewReceiver == [
  held    |-> {},                                            \* accepted, not delivered
  log     |-> <<>>,                                          \* delivered: messages, drops and views
  known   |-> Initial,                                       \* sequencers whose messages count
  clock   |-> [s \in Sequencers |-> 0],                      \* c[s] of Algorithm 2
  highest |-> [s \in Sequencers |-> [g \in Groups |-> 0]],   \* s[s] of Algorithm 2, for all groups
  settled |-> [s \in Sequencers |-> 0],                      \* up to here delivered or notified
  safe    |-> [s \in Sequencers |-> 0],                      \* up to this clock settled or held
  applied |-> 0,                                             \* decisions that it has been told
  viewed  |-> 0,                                             \* decisions that it has passed
  limit   |-> NoLimit ]                                      \* an addition keeps it from delivering more

MessageRow(m)       == [kind |-> "message", clock |-> m[1], issuer |-> m[2]]
DropRow(s, n)       == [kind |-> "drop", issuer |-> s, number |-> n]
ViewRow(d, i, g)    == [kind |-> "view", config |-> i, change |-> d.change, issuer |-> d.issuer,
                        number |-> d.numbers[g], boundary |-> d.boundary]
RankOf(row)         == IF row.kind = "view" THEN row.boundary ELSE <<row.clock, row.issuer>>

LastClock(r) == Greatest({0} \cup {row.clock : row \in {x \in Rows(r.log) : x.kind = "message"}})
Changes(change) == {i \in DOMAIN decisions : decisions[i].change = change}
LastBoundary ==
  LastRank({<<0, 0>>} \cup {decisions[i].boundary : i \in Changes("added") \cup Changes("removed")})

-----------------------------------------------------------------------------
(* Delivery.  A drop is told as late as possible: when something is to be    *)
(* delivered that may come after it.  Until then its packet still counts.    *)

(* Every message ranked up to here has been accepted, or is known to be missing (rule iii). *)
Reached(r, rank) ==
  /\ AtMost(rank, r.limit)
  /\ \A s \in r.known : IF TieBreak THEN AtMost(rank, <<r.clock[s], s>>) ELSE rank[1] <= r.clock[s]

(* The numbers from the first that is not settled on, as far as they are held. *)
RECURSIVE HeldFrom(_, _, _, _)
HeldFrom(g, r, s, n) ==
  LET found == {m \in r.held : m[2] = s /\ NumberOf(m, g) = n}
  IN IF found = {} THEN <<>> ELSE <<CHOOSE m \in found : TRUE>> \o HeldFrom(g, r, s, n + 1)

(* Without a gap all is safe up to the clock; with one, up to the last message before the gap, or the *)
(* last flush before it was known.                                                                    *)
SafeClock(g, r, s) ==
  LET run == HeldFrom(g, r, s, r.settled[s] + 1)
  IN IF r.settled[s] + Len(run) >= r.highest[s][g] THEN r.clock[s]
     ELSE IF run = <<>> THEN r.safe[s]
     ELSE Greatest({r.safe[s], run[Len(run)][1]})
WithSafe(g, r) == [r EXCEPT !.safe = [s \in Sequencers |-> IF s \in r.known THEN SafeClock(g, r, s) ELSE 0]]

(* The numbers of s up to this one may rank before `rank`. *)
MayPrecede(g, r, s, rank) ==
  LET later == {NumberOf(m, g) : m \in {x \in r.held : x[2] = s /\ Before(rank, x)}}
  IN IF AtMost(rank, <<r.safe[s], s>>) THEN r.settled[s]
     ELSE IF later = {} THEN r.highest[s][g]
     ELSE Least(later) - 1

(* Drop rows for the numbers of s between two that r does not hold. *)
RECURSIVE Missing(_, _, _, _, _)
Missing(g, r, s, from, to) ==
  IF from > to THEN <<>>
  ELSE (IF \E m \in r.held : m[2] = s /\ NumberOf(m, g) = from THEN <<>> ELSE <<DropRow(s, from)>>)
       \o Missing(g, r, s, from + 1, to)

RECURSIVE AllMissing(_, _, _, _)
AllMissing(g, r, upTo, S) ==
  IF S = {} THEN <<>>
  ELSE LET s == Least(S) IN
       (IF r.clock[s] = Forever /\ ~NotifyAtRemoval THEN <<>>
        ELSE Missing(g, r, s, r.settled[s] + 1, upTo[s])) \o AllMissing(g, r, upTo, S \ {s})

(* r after `row`, which ranks at `rank`, and the drops that must come before it. *)
Emit(g, r, rank, row) ==
  LET own  == IF row.kind = "message" THEN rank[2] ELSE 0
      upTo == [s \in Sequencers |->
                 IF s = own THEN NumberOf(rank, g)
                 ELSE IF s \in r.known THEN Greatest({r.settled[s], MayPrecede(g, r, s, rank)})
                 ELSE r.settled[s]]
  IN WithSafe(g, [r EXCEPT !.log = @ \o AllMissing(g, r, upTo, r.known) \o <<row>>,
                           !.settled = upTo,
                           !.held = @ \ {rank}])

(* The held message to deliver first.  Without a tie-break, any with the lowest clock: `up` chooses. *)
First(r, up) ==
  LET lowest == {m \in r.held : \A x \in r.held : m[1] <= x[1]}
      issuers == {m[2] : m \in lowest}
  IN CHOOSE m \in lowest : m[2] = (IF up THEN Least(issuers) ELSE Greatest(issuers))

(* Deliver whatever can be: messages by rank, and views where their boundaries lie. *)
RECURSIVE Settle(_, _, _)
Settle(g, r, up) ==
  LET i == r.viewed + 1
      d == decisions[i]
      atView == r.viewed < r.applied /\ \A m \in r.held : Before(d.boundary, m)
  IN IF r.viewed < r.applied /\ d.change = "abandoned"
     THEN Settle(g, [r EXCEPT !.viewed = i], up)
     ELSE IF atView
     THEN IF Reached(r, d.boundary)
          THEN Settle(g, [Emit(g, r, d.boundary, ViewRow(d, i, g)) EXCEPT !.viewed = i], up)
          ELSE r
     ELSE IF r.held # {} /\ Reached(r, First(r, up))
     THEN LET m == First(r, up) IN Settle(g, Emit(g, r, m, MessageRow(m)), up)
     ELSE r

(* The only way in which a receiver changes. *)
Become(g, r) == \E up \in (IF TieBreak THEN {TRUE} ELSE BOOLEAN) :
                  receiver' = [receiver EXCEPT ![g] = Settle(g, WithSafe(g, r), up)]

-----------------------------------------------------------------------------
(* Sequencers (Algorithm 1).                                                 *)

Groupcasts(S) == Cardinality({p \in Sequencers \X (1..MaxClock) :
                                p[2] <= Len(S[p[1]]) /\ S[p[1]][p[2]] # {}})

Stamp(s) ==
  /\ ~Ahead
  /\ Clock(s) <= MaxClock
  /\ \E D \in SUBSET Groups :
       /\ Clock(s) = MaxClock => D = {}
       /\ stamped' = [stamped EXCEPT ![s] = Append(@, D)]
       /\ Groupcasts(stamped') <= MaxMessages
  /\ UNCHANGED <<again, receiver, step, reports, decisions>>

-----------------------------------------------------------------------------
(* Receivers (Algorithm 2).                                                  *)

Reported(g) == reports[g] # None

(* g has reported on the removal of s, and has not been told the end of it. *)
Waiting(g, s) ==
  \/ step = [change |-> "removed", issuer |-> s] /\ Reported(g)
  \/ \E i \in receiver[g].applied + 1 .. Len(decisions) :
       decisions[i].change = "removed" /\ decisions[i].issuer = s

(* The agreed last numbers of s, once g has been told. *)
Agreed(g, s) == LET told == {i \in 1..receiver[g].applied :
                               decisions[i].change = "removed" /\ decisions[i].issuer = s}
                IN IF told = {} THEN None ELSE decisions[CHOOSE i \in told : TRUE].numbers

(* Both are needed.  Late packets of a removed sequencer are welcome as far as all groups have agreed  *)
(* to settle them.  It is not enough that the own number is within: the message may have a number in   *)
(* another group that nobody there will ever ask for (broken-whole-stamp.cfg shows it).          *)
Refused(g, m) ==
  LET s == m[2]
      agreed == Agreed(g, s)
      asked == IF WholeStamp THEN Destinations(m) ELSE {g}
  IN \/ StopAtReport /\ Waiting(g, s)
     \/ agreed # None /\ \E h \in asked : NumberOf(m, h) > agreed[h]

Learn(r, s, clock, numbers) ==
  [r EXCEPT !.clock[s] = Greatest({@, clock}),
            !.highest[s] = [g \in Groups |-> Greatest({@[g], numbers[g]})]]

HandleMessage(g, m) ==
  LET r == receiver[g]
      s == m[2]
      stamp == [h \in Groups |-> IF h \in Destinations(m) THEN NumberOf(m, h) ELSE 0]
  IN /\ s \in r.known
     /\ m[1] <= Clock(s) /\ g \in Destinations(m)
     /\ m \notin r.held
     /\ SettleOnce => NumberOf(m, g) > r.settled[s]
     /\ ~Refused(g, m)
     /\ Become(g, [Learn(r, s, m[1], stamp) EXCEPT !.held = @ \cup {m}])
     /\ UNCHANGED <<stamped, again, step, reports, decisions>>

(* A flush tells a clock and the numbers of all groups (section 4.3.3).  An older one tells nothing new. *)
HandleFlush(g, s, c) ==
  LET r == receiver[g] IN
  /\ s \in r.known
  /\ c <= Clock(s) /\ c > r.clock[s]
  /\ ~(StopAtReport /\ Waiting(g, s))
  /\ Become(g, Learn(r, s, c, Numbers(s, c)))
  /\ UNCHANGED <<stamped, again, step, reports, decisions>>

(* Sequencers whose addition r has been told and not passed. *)
Newcomers(r) == {decisions[i].issuer : i \in Changes("added") \cap (r.viewed + 1 .. r.applied)}

(* Tell the first missing numbers of s although nothing needs it. *)
GiveUp(g, s) ==
  LET r == receiver[g]
      first == r.settled[s] + 1
      later == {NumberOf(m, g) : m \in {x \in r.held : x[2] = s}}
      last == IF later = {} THEN r.highest[s][g] ELSE Least(later) - 1
  IN /\ GiveUpEarly
     /\ s \in r.known \ (IF NewcomersLast THEN Newcomers(r) ELSE {})
     /\ first <= last
     /\ Become(g, [r EXCEPT !.log = @ \o Missing(g, r, s, first, last), !.settled[s] = last])
     /\ UNCHANGED <<stamped, again, step, reports, decisions>>

-----------------------------------------------------------------------------
(* The configuration service: one change after the other (section 4.4).      *)

Members == (Initial \cup {decisions[i].issuer : i \in Changes("added")})
           \ {decisions[i].issuer : i \in Changes("removed")}
Tried   == {decisions[i].issuer : i \in DOMAIN decisions}

Begin(change, s) ==
  /\ step = None
  /\ Len(decisions) < MaxSteps
  /\ step' = [change |-> change, issuer |-> s]
  /\ UNCHANGED <<stamped, again, receiver, reports, decisions>>

BeginRemoval(s)  == s \in Removable \cap Members /\ Begin("removed", s)
BeginAddition(s) == s \in Addable \ Tried /\ Begin("added", s)

Decide(decision) ==
  /\ decisions' = Append(decisions, decision)
  /\ step' = None
  /\ reports' = [g \in Groups |-> None]
  /\ UNCHANGED <<stamped, again, receiver>>

(* Views have their places in the order, and these must be in the order of the configurations: *)
(* a boundary that would lie before the last one is moved there.                               *)
BoundaryAt(rank) == LastRank({rank, LastBoundary})

FinishRemoval ==
  /\ step.change = "removed"
  /\ \A g \in Groups : Reported(g)
  /\ Decide([change |-> "removed", issuer |-> step.issuer,
             numbers |-> [h \in Groups |-> Greatest({reports[g].numbers[h] : g \in Groups})],
             boundary |-> BoundaryAt(<<Greatest({reports[g].clock : g \in Groups}), step.issuer>>)])

(* The reported flush with the highest clock, t_k of the paper, is where the new sequencer begins. *)
FinishAddition ==
  /\ step.change = "added"
  /\ \A g \in Groups : Reported(g)
  /\ LET s == step.issuer
         start == Greatest({reports[g].clock : g \in Groups})
     IN Decide([change |-> "added", issuer |-> s, start |-> start, numbers |-> Numbers(s, start),
                boundary |-> BoundaryAt(<<start, s>>)])

Abandon ==
  /\ step.change = "added"
  /\ Decide([change |-> "abandoned", issuer |-> step.issuer])

-----------------------------------------------------------------------------
(* Receivers in a change of configuration.                                   *)

UpToDate(g) == receiver[g].applied = Len(decisions)

ReportRemoval(g) ==
  /\ step.change = "removed" /\ UpToDate(g) /\ ~Reported(g)
  /\ reports' = [reports EXCEPT ![g] = [change  |-> "removed",
                                        numbers |-> receiver[g].highest[step.issuer],
                                        clock   |-> receiver[g].clock[step.issuer]]]
  /\ UNCHANGED <<stamped, again, receiver, step, decisions>>

(* A flush of the new sequencer that is too low only stops delivery, so that a high enough one must come. *)
Hold(g) ==
  LET r == receiver[g] IN
  /\ HoldWhileAdding
  /\ step.change = "added" /\ UpToDate(g) /\ ~Reported(g) /\ r.limit = NoLimit
  /\ receiver' = [receiver EXCEPT ![g].limit = <<LastClock(r), step.issuer>>]
  /\ UNCHANGED <<stamped, again, step, reports, decisions>>

(* One above all that was delivered is reported, and what ranks up to it can be delivered still: the *)
(* start that will be agreed is not lower.                                                           *)
ReportFlush(g, c) ==
  LET r == receiver[g] IN
  /\ step.change = "added" /\ UpToDate(g) /\ ~Reported(g)
  /\ c <= Clock(step.issuer)
  /\ c > LastClock(r)
  /\ StartAtBoundary => c > LastBoundary[1]
  /\ reports' = [reports EXCEPT ![g] = [change |-> "added", clock |-> c]]
  /\ IF HoldWhileAdding THEN Become(g, [r EXCEPT !.limit = <<c, step.issuer>>]) ELSE UNCHANGED receiver
  /\ UNCHANGED <<stamped, again, step, decisions>>

Apply(g) ==
  LET r == receiver[g]
      d == decisions[r.applied + 1]
      told == [r EXCEPT !.applied = @ + 1]
      s == d.issuer
  IN /\ ~UpToDate(g)
     /\ CASE d.change = "removed" ->
               /\ PaperGuard => ~Waiting(g, s)
               /\ Become(g, Learn(told, s, Forever, d.numbers))
          [] d.change = "added" ->
               Become(g, [told EXCEPT !.known = @ \cup {s}, !.clock[s] = d.start, !.highest[s] = d.numbers,
                                      !.settled[s] = d.numbers[g], !.limit = NoLimit])
          [] OTHER -> Become(g, [told EXCEPT !.limit = NoLimit])
     /\ UNCHANGED <<stamped, again, step, reports, decisions>>

-----------------------------------------------------------------------------
(* A sender that keeps.  It asks receivers what a removed sequencer had stamped.  One that has passed   *)
(* into the configuration without the sequencer, and has missed no number of it, knows.  All receivers  *)
(* have reported for the removal here, so what this one has not got, no other delivers.                 *)

PassedRemoval(g, s) == \E i \in Changes("removed") : i <= receiver[g].viewed /\ decisions[i].issuer = s
Missed(g, s) == \E row \in Rows(receiver[g].log) : row.kind = "drop" /\ row.issuer = s

(* g answers that the first copy never came, and the second is sent. *)
SendAgain(g) ==
  LET m == again.first IN
  /\ ~again.sent
  /\ g \in Destinations(m)
  /\ AwaitRemoval => PassedRemoval(g, m[2])
  /\ RecogniseCopies => MessageRow(m) \notin Rows(receiver[g].log)
  /\ AdmitMissing => ~Missed(g, m[2])
  /\ again' = [again EXCEPT !.sent = TRUE]
  /\ UNCHANGED <<stamped, receiver, step, reports, decisions>>

(* Any two messages to the same groups, of different sequencers. *)
Copies ==
  LET ranks == {m \in (1..MaxClock) \X Sequencers : stamped[m[2]][m[1]] # {}}
      pairs == {p \in ranks \X ranks : p[1][2] # p[2][2] /\ Destinations(p[1]) = Destinations(p[2])}
  IN {[first |-> p[1], second |-> p[2], sent |-> FALSE] : p \in pairs}

-----------------------------------------------------------------------------
Histories == {S \in [Sequencers -> [1..MaxClock -> SUBSET Groups]] : Groupcasts(S) <= MaxMessages}

Init ==
  /\ stamped \in IF Ahead THEN {[s \in Sequencers |-> Append(S[s], {})] : S \in Histories}
                 ELSE {[s \in Sequencers |-> <<>>]}
  /\ again \in IF Resend THEN Copies ELSE {NoCopies}
  /\ receiver = [g \in Groups |-> NewReceiver]
  /\ step = None
  /\ reports = [g \in Groups |-> None]
  /\ decisions = <<>>

Next ==
  \/ \E s \in Sequencers : Stamp(s) \/ BeginRemoval(s) \/ BeginAddition(s)
  \/ FinishRemoval \/ FinishAddition \/ Abandon
  \/ \E g \in Groups :
       \/ ReportRemoval(g) \/ Hold(g) \/ Apply(g) \/ SendAgain(g)
       \/ \E c \in 1..MaxClock, s \in Sequencers : HandleMessage(g, <<c, s>>)
       \/ \E c \in FlushClocks, s \in Sequencers : HandleFlush(g, s, c)
       \/ \E c \in FlushClocks : ReportFlush(g, c)
       \/ \E s \in Sequencers : GiveUp(g, s)

Spec == Init /\ [][Next]_vars
Symmetry == Permutations(Groups)
=============================================================================
