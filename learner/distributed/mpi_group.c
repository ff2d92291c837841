/* The calls of a process group, made with MPI. Element-wise sums are our own: MPI_Allreduce may add
 * in another order for another number of ranks, and a model must not depend on that. */
#include <limits.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "learner/distributed/distributed.h"

struct cd_mpi_group {
    MPI_Comm comm, end; /* `end` is for the last barrier alone */
    float *buf;         /* of allreduce, owned */
    size_t cap;
};

static cdmpp_status check(int rc, cdmpp_err *err) {
    char text[MPI_MAX_ERROR_STRING];
    int n;
    if (rc == MPI_SUCCESS) return CDMPP_OK;
    MPI_Error_string(rc, text, &n);
    return CD_FAIL(err, EBACKEND, "MPI: %.200s", text);
}

/* MPI_Barrier spins on a processor; this one polls. */
static bool meet(MPI_Comm comm, double limit_s) {
    const struct timespec nap = {0, 2000000};
    const double begin = MPI_Wtime();
    MPI_Request r;
    int done = 0;
    if (MPI_Ibarrier(comm, &r) != MPI_SUCCESS) return false;
    while (MPI_Test(&r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        if (limit_s > 0 && MPI_Wtime() - begin > limit_s) return false;
        nanosleep(&nap, NULL);
    }
    return done != 0;
}

/* ---- sums ----
 * Rank q owns elements [at(q), at(q+1)): it is sent that segment of every row of every
 * rank, adds the rows up in the order of ranks, and all get the sums of all owners. */
typedef struct {
    int n_rank, own; /* own: length of this rank's segment */
    int *rows;       /* (n_rank) each of the following, one block */
    int *send, *send_at, *recv, *recv_at, *sum, *sum_at;
} plan;

/* Ranks may have different numbers of rows, so counts and places are computed for each pair. */
static bool plan_make(plan *p, const cd_process_group *c, MPI_Comm comm, size_t n_row, size_t n,
                      int *rc) {
    const int r = (int)c->n_rank, mine = (int)n_row;
    *p = (plan){.n_rank = r, .rows = cd_mem_zalloc((size_t)r, 7 * sizeof(int))};
    if (!p->rows) return false;
    int **part[] = {&p->send, &p->send_at, &p->recv, &p->recv_at, &p->sum, &p->sum_at};
    for (int k = 0; k < 6; k++) *part[k] = p->rows + (k + 1) * r;
    *rc = MPI_Allgather(&mine, 1, MPI_INT, p->rows, 1, MPI_INT, comm);
    if (*rc != MPI_SUCCESS) return true;
    p->own =
        (int)(cd_ops_tile_at(n, c->n_rank, c->rank + 1) - cd_ops_tile_at(n, c->n_rank, c->rank));
    for (int q = 0; q < r; q++) {
        const size_t beg = cd_ops_tile_at(n, c->n_rank, (size_t)q),
                     end = cd_ops_tile_at(n, c->n_rank, (size_t)q + 1);
        p->sum[q] = (int)(end - beg);
        p->sum_at[q] = (int)beg;
        p->send[q] = mine * p->sum[q];
        p->send_at[q] = mine * p->sum_at[q];
        p->recv[q] = p->rows[q] * p->own;
        p->recv_at[q] = q ? p->recv_at[q - 1] + p->recv[q - 1] : 0;
    }
    return true;
}

/* Two blocks: what is sent, segment by segment, and what comes. */
static cdmpp_status room(cd_mpi_group *m, size_t n, cdmpp_err *err) {
    if (n <= m->cap) return CDMPP_OK;
    cd_mem_free(m->buf);
    m->cap = 0;
    m->buf = cd_mem_zalloc(n, sizeof *m->buf);
    if (!m->buf) return CD_FAIL(err, ENOMEM, "%zu values to exchange", n);
    m->cap = n;
    return CDMPP_OK;
}

static int exchange(const cd_mpi_group *m, const plan *p, size_t n_row, size_t n, float *v) {
    float *out = m->buf, *in = m->buf + n_row * n;
    for (int q = 0; q < p->n_rank; q++)
        for (size_t k = 0; k < n_row; k++)
            memcpy(out + p->send_at[q] + k * (size_t)p->sum[q], v + k * n + p->sum_at[q],
                   (size_t)p->sum[q] * sizeof *v);
    int rc = MPI_Alltoallv(out, p->send, p->send_at, MPI_FLOAT, in, p->recv, p->recv_at, MPI_FLOAT,
                           m->comm);
    const size_t own = (size_t)p->own;
    size_t rows = 0;
    for (int q = 0; q < p->n_rank; q++) rows += (size_t)p->rows[q];
    for (size_t k = 1; k < rows; k++)
        for (size_t i = 0; i < own; i++) in[i] += in[k * own + i];
    if (rc == MPI_SUCCESS)
        rc = MPI_Allgatherv(in, p->own, MPI_FLOAT, v, p->sum, p->sum_at, MPI_FLOAT, m->comm);
    return rc;
}

/* Each rank owns a segment: rows travel to the owner, which adds them in order, and the sums travel
 * back to all. */
static cdmpp_status sum_up(void *ctx, float *v, size_t n_row, size_t n, cdmpp_err *err) {
    cd_mpi_group *m = ctx;
    int rank, n_rank, rc = MPI_SUCCESS;
    plan p;
    MPI_Comm_rank(m->comm, &rank);
    MPI_Comm_size(m->comm, &n_rank);
    const cd_process_group c = {.rank = (size_t)rank, .n_rank = (size_t)n_rank};
    if (n_row > 1024 || n > (size_t)INT_MAX / 1024)
        return CD_FAIL(err, EUNSUPPORTED, "%zu x %zu values to add up", n_row, n);
    if (!plan_make(&p, &c, m->comm, n_row, n, &rc)) return CD_FAIL(err, ENOMEM, "%d ranks", n_rank);
    const size_t in = rc == MPI_SUCCESS ? (size_t)(p.recv_at[n_rank - 1] + p.recv[n_rank - 1]) : 0;
    cdmpp_status st = check(rc, err);
    if (!st) st = room(m, n_row * n + in, err);
    if (!st) st = check(exchange(m, &p, n_row, n, v), err);
    cd_mem_free(p.rows);
    return st;
}

/* ---- bytes ---- */
enum { CHUNK = 1 << 28 };

static int send_bytes(const cd_mpi_group *m, const cd_buf *own) {
    const uint64_t n = own->n;
    int rc = MPI_Send(&n, 1, MPI_UINT64_T, 0, 1, m->comm);
    for (size_t at = 0; rc == MPI_SUCCESS && at < own->n; at += CHUNK)
        rc = MPI_Send(own->p + at, (int)(own->n - at < CHUNK ? own->n - at : CHUNK), MPI_BYTE, 0, 1,
                      m->comm);
    return rc;
}

static cdmpp_status receive_bytes(const cd_mpi_group *m, int from, cd_buf *to, cdmpp_err *err) {
    uint64_t n = 0;
    CD_TRY(check(MPI_Recv(&n, 1, MPI_UINT64_T, from, 1, m->comm, MPI_STATUS_IGNORE), err));
    *to = (cd_buf){.p = cd_mem_zalloc((size_t)n + 1, 1), .n = (size_t)n, .cap = (size_t)n + 1};
    if (!to->p) return CD_FAIL(err, ENOMEM, "%llu bytes of rank %d", (unsigned long long)n, from);
    for (size_t at = 0; at < n; at += CHUNK)
        CD_TRY(check(MPI_Recv(to->p + at, (int)(n - at < CHUNK ? n - at : CHUNK), MPI_BYTE, from, 1,
                              m->comm, MPI_STATUS_IGNORE),
                     err));
    return CDMPP_OK;
}

static cdmpp_status gather(void *ctx, const cd_buf *own, cd_buf *all, cdmpp_err *err) {
    const cd_mpi_group *m = ctx;
    int n_rank;
    if (!all) return check(send_bytes(m, own), err);
    MPI_Comm_size(m->comm, &n_rank);
    cd_buf_put(&all[0], own->p ? own->p : "", own->n);
    if (all[0].oom) return CD_FAIL(err, ENOMEM, "%zu bytes", own->n);
    for (int r = 1; r < n_rank; r++) CD_TRY(receive_bytes(m, r, &all[r], err));
    return CDMPP_OK;
}

/* The rank with the smallest number that failed decides; its error is what all return. */
static cdmpp_status agree(void *ctx, cdmpp_status st, cdmpp_err *err) {
    const cd_mpi_group *m = ctx;
    int rank, n_rank, first, all = st;
    cdmpp_err told = {0};
    MPI_Comm_rank(m->comm, &rank);
    MPI_Comm_size(m->comm, &n_rank);
    const int mine = st ? rank : n_rank;
    (void)meet(m->comm, 0);
    CD_TRY(check(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, m->comm), err));
    if (first == n_rank) return CDMPP_OK;
    if (err && first == rank) told = *err;
    CD_TRY(check(MPI_Bcast(&all, 1, MPI_INT, first, m->comm), err));
    CD_TRY(check(MPI_Bcast(&told, (int)sizeof told, MPI_BYTE, first, m->comm), err));
    if (err) *err = told;
    return (cdmpp_status)all;
}

static cd_process_group group_of(cd_mpi_group *m) {
    int rank, n_rank, here = 0, first;
    MPI_Comm host;
    MPI_Comm_rank(m->comm, &rank);
    MPI_Comm_size(m->comm, &n_rank);
    first = rank;
    if (MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) ==
        MPI_SUCCESS) {
        MPI_Comm_size(host, &here);
        MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host);
        MPI_Comm_free(&host);
    }
    return (cd_process_group){(size_t)rank, (size_t)n_rank, here == n_rank, (size_t)first, m,
                              sum_up,       gather,         agree};
}

cd_mpi_group *cd_mpi_group_start(int *argc, char ***argv, cd_process_group *group) {
    int got;
    cd_mpi_group *m = cd_mem_zalloc(1, sizeof *m);
    if (!m || MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &got) != MPI_SUCCESS) {
        cd_mem_free(m);
        return NULL;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &m->end);
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    *group = group_of(m);
    return m;
}

bool cd_mpi_group_meet(cd_mpi_group *m, double limit_s) { return meet(m->end, limit_s); }

void cd_mpi_group_abort(cd_mpi_group *m, int code) {
    (void)m;
    MPI_Abort(MPI_COMM_WORLD, code);
}

void cd_mpi_group_end(cd_mpi_group *m) {
    cd_mem_free(m->buf);
    MPI_Comm_free(&m->comm);
    MPI_Comm_free(&m->end);
    cd_mem_free(m);
    MPI_Finalize();
}
