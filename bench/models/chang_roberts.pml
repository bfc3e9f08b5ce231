/* Chang and Roberts' algorithm on a ring of ten with FIFO links, uids descending; any process may
   start until it is drawn in. */

#define N 10
#define UID (N - _pid)
#define NEXT link[(_pid + 1) % N]

#define ELECTION 0
#define ELECTED 1

chan link[N] = [N] of { bit, byte }; /* to each process */
byte leaders;

active [N] proctype Process() {
    bool may_start = true, participant;
    bit kind;
    byte leader, value;
end:
    do
    :: d_step { may_start -> may_start = false; participant = true; NEXT ! ELECTION, UID }
    :: d_step {
        link[_pid] ? kind, value ->
        if
        :: kind == ELECTION && value > UID ->
            participant = true;
            may_start = false;
            NEXT ! ELECTION, value
        :: kind == ELECTION && value == UID ->
            participant = false;
            leader = UID;
            leaders++;
            assert(leaders <= 1);
            NEXT ! ELECTED, UID
        :: kind == ELECTION && value < UID ->
            if
            :: participant
            :: else -> participant = true; may_start = false; NEXT ! ELECTION, UID
            fi
        :: kind == ELECTED && value == UID
        :: kind == ELECTED && value != UID ->
            participant = false;
            leader = value;
            NEXT ! ELECTED, value
        fi;
        kind = 0;
        value = 0
    }
    od
}
