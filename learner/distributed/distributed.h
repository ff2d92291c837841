/* The door of learner/distributed: other rooms include this header and no other of the room.
 *
 * Extraction and training by several processes: the group as five calls (process_group.h), how MPI
 * makes them (mpi_group.h, only in cdmpp-mpi), one data set by all ranks, and trees that all ranks
 * grow together. Results do not depend on the number of ranks. */
#ifndef CD_LEARNER_DISTRIBUTED_DOOR_H
#define CD_LEARNER_DISTRIBUTED_DOOR_H
#include "dataset/extract/extract.h"
#include "learner/fit/fit.h"
#include "learner/model/model.h"

/* process_group -- several processes that train one model.
 *
 *   members      lstm 0  transformer 0  program 0  program 1  rows 0 ..
 *   dealt to     rank 0  rank 1         rank 2     rank 1     rank 2 ..   each trains its own
 *   gathered     ------------------> rank 0: weights, figures, model file
 *
 * (1) A member depends on the configuration and the data, never on who trains it, so the
 *     model has the same bytes for any number of ranks.
 * (2) Who trains what is a function of the members and the number of ranks.
 * (3) With fewer networks than ranks, and fit.slices of at least as many as ranks, all
 *     ranks train each network together (invariant 6 of learner/fit/fit.h); the bits are
 *     those of one rank with the same slices.
 * (4) train.together: all ranks grow the trees of each member together
 *     (learner/distributed/distributed.h).
 * (5) A rank that fails alone returns at once; whoever started the ranks ends the others.
 *
 * The library knows no MPI: a process group is four calls. Each is made by all ranks in the same
 * order, from the thread that called cd_learner_run. */

typedef struct cd_process_group {
    size_t rank, n_rank;
    bool one_host; /* all ranks are on this machine */
    size_t first;  /* the least rank of this machine */
    void *ctx;     /* of the calls */
    cd_fit_allreduce *allreduce;
    /* own of every rank to all (n_rank) of rank 0, appended; NULL on the others. */
    cdmpp_status (*gather)(void *ctx, const cd_buf *own, cd_buf *all, cdmpp_err *err);
    /* The status and error of the first rank whose st is not OK, on every rank. */
    cdmpp_status (*agree)(void *ctx, cdmpp_status st, cdmpp_err *err);
} cd_process_group;

#define CD_PROCESS_GROUP_ALL SIZE_MAX

/* owner (n): rank of each member, CD_PROCESS_GROUP_ALL: trained by all together, as trees are if so
 * asked. */
void cd_process_group_deal(const cd_member *member, size_t n, size_t n_rank, int64_t slices,
                           bool trees, size_t *owner);
/* bytes[k] of the members that a rank trained to rank 0, whose own bytes stay. */
cdmpp_status cd_process_group_gather(const cd_process_group *ranks, cd_buf *bytes, size_t n,
                                     cdmpp_err *err);
/* Did all ranks find it? EMODEL: some did. */
cdmpp_status cd_process_group_agree(const cd_process_group *ranks, bool found, cdmpp_err *err);

/* distributed_data -- the data set of a training, once on each machine.
 *
 *   first rank of a machine  reads the files into one of no name, in memory or on disk
 *                            (base/core/spool.h)
 *   the others               map that, to read; who may not opens the files too
 *
 * What a rank has of it in its own address space is let go now and then, so a rank has little of it
 * at a time, and no program twice. */

/* For cd_dataset_options.share; `ranks` must outlive it. */
cd_dataset_share cd_distributed_data_share(const cd_process_group *ranks);

/* distributed_extract -- one data set from measure logs by all ranks of a process group.
 *
 *   rank r: files of shard r+1 of N -> OUT.rank<r>of<N>     a rerun keeps finished ones
 *   rank 0: all of them, in order   -> OUT                  contents as of one process */

/* x: as for cd_extract_logs, without shards. *s: counts of this rank, on rank 0 of all. Called by
 * all ranks; the error of the first rank that has one is returned on all of them. The parts lie
 * beside x->out, in a folder that all ranks see. */
cdmpp_status cd_distributed_extract(const cd_extract *x, const cd_process_group *group,
                                    cd_extract_stats *s, cdmpp_err *err);

/* rabit_tracker -- tells the ranks of XGBoost's collective (rabit, as in 1.7) who their neighbours
 * are.
 *
 *   rank r   magic, rank, ranks, task "r", "start"                 ->   tracker, a thread of rank 0
 *            <-   r, parent, ranks, neighbours in the tree, in the ring before and behind
 *            how many links it has, which                          ->
 *            <-   whom to call (address, port, rank), how many calls to wait for
 *            calls that failed (then once more), own port          ->
 *   later    the same up to "shutdown", or "print" and what nobody reads   ->
 *
 * (1) Integers are of 4 bytes as the machine has them, texts have their length in front.
 * (2) A task is called by its rank, so ranks are those of the caller. Tree: the parent of r is
 *     (r+1)/2-1; ring: r-1 and r+1. A rank calls its neighbours below it, which listen already.
 * (3) Ranks are told when all have come. Nobody is waited for longer than limit_s: then all
 *     connections are closed, which the ranks see.
 * (4) Who does not speak like this is sent away; the others do not suffer.
 * The thread touches no heap and nothing of the caller's. */

typedef struct cd_rabit_tracker cd_rabit_tracker;

/* Listens at an IPv4 address of this machine, any free port. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_rabit_tracker_start(const char *address, size_t n_rank, int limit_s,
                                    CD_GIVE cd_rabit_tracker **out, cdmpp_err *err);
int cd_rabit_tracker_port(const cd_rabit_tracker *t);
/* Waits at most wait_s for those who have not shut down, then ends. NULL is fine. Errors:
 * EBACKEND (a rank did not come, or ended without a word). */
cdmpp_status cd_rabit_tracker_end(CD_TAKE cd_rabit_tracker *t, int wait_s, cdmpp_err *err);

/* distributed_trees -- all ranks of a process group grow the trees of one member.
 *
 *   programs  0 .. 5 | 6 .. 11 | 12 .. 17     ranks 0, 1, 2: equal runs in their order
 *   bins      rank q cuts the q-th run of columns, of the rows of all programs; rows kept: a rank's
 *             own
 *   a round   own gradients -> XGBoost, which adds up histograms over the ranks -> the same tree
 *             own scores    -> all ranks -> the loss and the gradients of all programs
 *
 * (1) Gradients are multiples of 2^-20 (learner/loss/loss.h), so sums in double are exact, in
 *     whatever order the ranks are added: the trees are those of one process with the same bins and
 *     rows.
 * (2) Rows are drawn (train.subsample) by our own numbers, by tree and row: not by rank.
 * (3) At the end the ranks compare the digests of their trees.
 * (4) A rank that fails keeps its connections and returns; the others wait for it until whoever
 *     started the ranks ends them, or for limits of some minutes.
 * (5) One member at a time, from begin to end in the same thread. */

typedef struct cd_distributed_trees {
    const cd_process_group *ranks; /* NULL: this process alone, and all calls do nothing */
    cd_rabit_tracker *tracker;     /* of rank 0 */
} cd_distributed_trees;

/* Items beg .. end of n are this rank's. */
void cd_distributed_trees_own(const cd_process_group *ranks, size_t n, size_t *beg, size_t *end);
/* XGBoost's collective around all that happens until the end. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_distributed_trees_begin(cd_distributed_trees *t, const cd_process_group *ranks,
                                        cdmpp_err *err);
/* st: how it went; returned if it is an error. */
cdmpp_status cd_distributed_trees_end(cd_distributed_trees *t, cdmpp_status st, cdmpp_err *err);
/* v (n), of which each rank knows beg .. end, to all. */
cdmpp_status cd_distributed_trees_share(const cd_distributed_trees *t, float *v, size_t n,
                                        size_t beg, size_t end, cdmpp_err *err);
/* The same of any bits, by ranks that grow no trees yet; nothing where `ranks` is NULL. */
cdmpp_status cd_distributed_trees_share_bits(const cd_process_group *ranks, float *v, size_t n,
                                             size_t beg, size_t end, cdmpp_err *err);
/* *stop of any rank. */
cdmpp_status cd_distributed_trees_stop(const cd_distributed_trees *t, bool *stop, cdmpp_err *err);
/* Do all ranks have these bytes? EBACKEND. */
cdmpp_status cd_distributed_trees_same(const cd_distributed_trees *t, const cd_buf *bytes,
                                       cdmpp_err *err);

/* mpi_group -- a process group over MPI. Compiled into cdmpp-mpi alone, for the library does
 * without MPI.
 *
 * (1) Sums are taken in the order of ranks by our own code, so that they have the same bits for any
 *     MPI; MPI only moves bytes.
 * (2) Where waiting for other ranks may last, it sleeps (2 ms); inside a step of training it does
 *     not. */

typedef struct cd_mpi_group cd_mpi_group;

/* Starts MPI. *group is how the library sees it, until cd_mpi_group_end. NULL: MPI cannot start. */
CD_GIVE cd_mpi_group *cd_mpi_group_start(int *argc, char ***argv, cd_process_group *group);
/* Waits, asleep, until all ranks have called this; at most limit_s (0: for ever). False: not all
 * came. */
bool cd_mpi_group_meet(cd_mpi_group *m, double limit_s);
/* Ends all ranks with that exit code. */
void cd_mpi_group_abort(cd_mpi_group *m, int code);
/* Ends MPI, after all ranks have met. */
void cd_mpi_group_end(CD_TAKE cd_mpi_group *m);
#endif
