/* Ricart and Agrawala's algorithm, one entry each, channels without order: of what is in flight
   between two processes there is at most one request and one agreement. */

#define N 4

byte request[N * N]; /* [from * N + to]: its time; 0 if none is in flight */
bit agreed[N * N];
byte inside;

#define IDLE 0
#define WANTED 1
#define HELD 2
#define DONE 3

#define SENT(from, to) [(from) * N + (to)]

#define HEAR_REQUEST(from) \
    :: d_step { \
        from != _pid && request SENT(from, _pid) -> \
        them = request SENT(from, _pid); \
        request SENT(from, _pid) = 0; \
        if :: clock < them -> clock = them :: else fi; \
        if \
        :: state == HELD || (state == WANTED && (time < them || (time == them && _pid < from))) -> \
            deferred = deferred | (1 << from) \
        :: else -> agreed SENT(_pid, from) = 1 \
        fi; \
        them = 0 \
    }

#define HEAR_AGREE(from) \
    :: d_step { \
        from != _pid && agreed SENT(from, _pid) -> \
        agreed SENT(from, _pid) = 0; \
        awaiting = awaiting & (255 - (1 << from)); \
        if \
        :: awaiting == 0 -> state = HELD; inside++; assert(inside <= 1) \
        :: else \
        fi \
    }

active [N] proctype Process() {
    byte state, clock, time, awaiting, deferred, them, i;
end:
    do
    :: d_step {
        state == IDLE ->
        clock++;
        time = clock;
        state = WANTED;
        awaiting = ((1 << N) - 1) - (1 << _pid);
        do
        :: i < N ->
            if :: i != _pid -> request SENT(_pid, i) = time :: else fi;
            i++
        :: else -> break
        od;
        i = 0
    }
    :: d_step {
        state == HELD ->
        state = DONE;
        time = 0;
        inside--;
        do
        :: i < N ->
            if :: deferred & (1 << i) -> agreed SENT(_pid, i) = 1 :: else fi;
            i++
        :: else -> break
        od;
        i = 0;
        deferred = 0
    }
    HEAR_REQUEST(0)
    HEAR_REQUEST(1)
    HEAR_REQUEST(2)
    HEAR_REQUEST(3)
    HEAR_AGREE(0)
    HEAR_AGREE(1)
    HEAR_AGREE(2)
    HEAR_AGREE(3)
    od
}
