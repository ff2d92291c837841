/* analytic_internal -- what the files of features/analytic share.
 *
 *   ast                           tree, nodes in pre-order      access
 *   parallel f in 0..56           0 root                        conv[f//28, f%28, j]
 *     for j in 0..14          ─>  1 loop f//28 (2)   digits of  stride 1568*4 of node 1, 56*4 of
 *                                                               node 2, 4 of node 3
 *       conv[f//28, f%28, j]      2 loop f%28 (28)   one loop
 *                                 3 loop j (14)
 *                                 4 store
 *
 *   (1) a loop variable that is divided becomes several loops, its digits, so that addresses are
 *       sums: stride times digit;
 *   (2) an access is such a sum in bytes, terms in order of their strides, all strides positive;
 *   (3) the terms of nodes >= k are those that move while node k runs (the path to a store has
 *       rising numbers);
 *   (4) accesses are in the order of the stores, a node's are acc0 .. acc1-1.
 * Private to the room. */
#ifndef CD_ANALYTIC_INTERNAL_H
#define CD_ANALYTIC_INTERNAL_H
#include "features/analytic/analytic.h"

#define CD_AN_TERMS 24 /* of an access */
/* extents and strides; more is EUNSUPPORTED or stays there */
#define CD_AN_MOST   ((int64_t)1 << 40)
#define CD_AN_DIGITS 8 /* of a loop variable */
#define CD_AN_LINE   64
#define CD_AN_PAGE   4096
/* node of a term that is not a loop's: neighbours that the same store reads */
#define CD_AN_HERE INT32_MAX

typedef struct cd_an cd_an;

/* k * (variable / lo % n): a digit of a loop variable, or several neighbours of them. */
typedef struct cd_an_slice {
    int64_t k, lo, n;
    int32_t var; /* number of the loop */
    int32_t dim; /* of the tensor, in an address */
} cd_an_slice;

/* c + sum of slices. */
typedef struct cd_an_form {
    int64_t c;
    uint32_t n;
    bool inexact; /* something in it is no digit */
    bool gather;  /* something in it is read from a tensor */
    cd_an_slice t[CD_AN_TERMS];
} cd_an_form;

typedef struct cd_an_var { /* a loop of the AST */
    int64_t extent;
    const cd_expr *e;
    /* places where it is divided, rising, 1 and extent not among them */
    uint32_t n_cut;
    int64_t cut[CD_AN_DIGITS];
    int32_t node; /* of its outermost digit in the tree; the others follow */
    uint32_t n_digit;
    bool vector;  /* becomes vectors */
    uint8_t axis; /* of a GPU program: cd_ast_tag + 1; 0: a loop */
} cd_an_var;

typedef struct cd_an_term {
    int64_t stride; /* bytes, above 0 */
    int64_t n;      /* values of the digit */
    int64_t reach;  /* stride * (n - 1) */
    int32_t node;
    uint8_t dim;
} cd_an_term;

typedef struct cd_an_access {
    uint32_t tensor;  /* number among those that the tree touches */
    bool write, copy; /* copy: another access of the statement has the same address */
    /* a neighbour that another access of the statement has as a term: its lines are counted
     * there */
    bool inside;
    float chance; /* that it is done: below 1 under if_then_else */
    bool gather;
    bool crowded; /* scratch: its conflicts are counted */
    uint8_t elem; /* bytes */
    uint32_t n;
    uint64_t nodes; /* bit node % 64 of each term: most nodes are seen not to move it */
    int64_t c;      /* bytes of the lowest address */
    cd_an_term *t;  /* (n) rising strides */
    uint8_t n_dim;  /* dimensions that may reach out of the tensor */
    struct {
        uint8_t dim;
        int64_t stride, extent;
    } out_dim[4]; /* stride in bytes */
    /* scratch of the walk: of the part that moves, and its extent in bytes */
    double lines, width;
} cd_an_access;

typedef enum cd_an_kind { CD_AN_LOOP, CD_AN_STORE } cd_an_kind;

typedef struct cd_an_node {
    uint8_t kind, loop; /* loop: cd_loop_kind */
    bool copied;        /* unrolled */
    bool guessed;       /* by a compiler, not by the schedule */
    /* innermost digit of its variable, the one that the loop's turns are counted at */
    bool last_digit;
    int32_t parent, end;
    int32_t var;
    double extent; /* LOOP: turns; a leading digit may be a fraction */
    double runs;   /* how often it is executed in the whole program */
    uint32_t acc0, acc1;
    int32_t ast;    /* node of the AST */
    int32_t only;   /* its only child, -1: none or several */
    int64_t unroll; /* STORE, LOOP: auto_unroll_max_step that holds here */
} cd_an_node;

/* What one element of a stored value takes; what is done under a condition counts by its chance. */
typedef struct cd_an_value {
    double adds, muls, fused; /* float; fused: pairs of the two */
    double others;            /* float minima, maxima */
    double selects, ints, casts, divides, exps, tanhs, calls;
    double conditions; /* of if_then_else */
    bool loads;        /* reads a tensor */
    bool plain;        /* one load, perhaps under conditions, with constants beside */
} cd_an_value;

/* A division of an address, at the innermost loop that it depends on. */
typedef struct cd_an_division {
    const cd_expr *e;
    int32_t store, var;
    const cd_an_form *value; /* only its first n slices are there */
} cd_an_division;

typedef struct cd_an_tensor {
    uint32_t nest; /* its number in the nest */
    uint32_t rank;
    uint8_t elem;                           /* bytes */
    bool arg, written, read, first_written; /* first_written: the first access is a store */
    bool pack;                              /* stored in the order of its only load's loops */
    int32_t home;                           /* AST: its REALIZE or ALLOC, -1 */
    const cd_expr *const *x;                /* (2 * rank) min and extent; NULL: all of it */
    const int64_t *extent;                  /* (rank) */
    const int64_t *stride;                  /* (rank) bytes */
    double bytes;
} cd_an_tensor;

/* An access before loops are cut into digits. */
typedef struct cd_an_raw {
    uint32_t tensor;
    bool write, copy;
    float chance;   /* that it is done: below 1 under if_then_else */
    int32_t store;  /* AST */
    uint32_t first; /* raw: the store's own, whose address a copy has */
    const cd_expr *const *x;
    const cd_expr *cond; /* the innermost if_then_else around a load; NULL: none */
    bool cond_else;      /* done where it does not hold */
    bool gather, inexact;
    uint32_t n;     /* of a copy 0 */
    int64_t c;      /* bytes */
    cd_an_slice *t; /* (n) */
} cd_an_raw;

struct cd_an {
    cd_arena arena;
    const cd_nest *nest;
    const cd_ast *ast;
    cd_an_var *var; /* (n_var) */
    uint32_t n_var, cap_var;
    int32_t *var_of;      /* by variable of the nest: loop, -1 */
    uint32_t *tensor_of;  /* by tensor of the nest, UINT32_MAX: not touched */
    cd_an_tensor *tensor; /* (n_tensor) */
    uint32_t n_tensor;
    cd_an_raw *raw; /* (n_raw) in the order of the stores */
    uint32_t n_raw, cap_raw;
    cd_an_node *node;
    int32_t n_node;
    uint32_t cap_node;
    cd_an_access *acc; /* (n_raw) */
    double inexact;
    cd_an_division *division;
    uint32_t n_division, cap_division;
    int32_t store; /* AST: whose addresses are being read */
    bool oom, gpu;
    float *out;
};

struct cd_facts {
    cd_an an;
};

/* fmin and fmax, which compilers call in the mathematical library: too slow for every capacity of
 * every tensor of every loop. */
static inline double cd_an_min(double a, double b) { return a < b || b != b ? a : b; }
static inline double cd_an_max(double a, double b) { return a > b || b != b ? a : b; }

static inline int64_t cd_an_mul(int64_t a, int64_t b) { /* stops at CD_AN_MOST */
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r) || r > CD_AN_MOST || r < -CD_AN_MOST)
        return (a < 0) == (b < 0) ? CD_AN_MOST : -CD_AN_MOST;
    return r;
}
/* Chance that a condition holds, loop variables taken as independent and evenly spread. */
double cd_facts_affine_chance(cd_an *w, const cd_expr *cond);

/* The loops, tensors and accesses of the AST. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_facts_read_nest(cd_an *w, cdmpp_err *err);
/* The tree, once all cuts are known. Errors: ENOMEM. */
cdmpp_status cd_facts_tree_make(cd_an *w, cdmpp_err *err);

/* Dimensions in which the sum may leave the tensor: an access under a condition. Terms have their
 * reach. */
void cd_facts_tree_find_out(const cd_an_tensor *t, cd_an_access *a);

/* Distinct granules (lines or pages) of the part of `a` that moves while `node` runs, in the mean
 * over all iterations around; *width: bytes from its lowest to its highest address. */
double cd_facts_lines_count(const cd_an_access *a, int32_t node, int64_t granule, double *width);

/* `inner`: variable of the innermost loop; divisions and functions without it are done outside.
 * NULL: no loop. */
void cd_facts_value_of(cd_an *w, const cd_expr *e, const cd_expr *inner, cd_an_value *out);
/* Is the tensor's storage new in every turn of the loop? Then it is registers where it is small. */
static inline bool cd_an_private(const cd_an *w, const cd_an_access *a, int32_t loop) {
    return w->tensor[a->tensor].home > w->node[loop].ast;
}
static inline int32_t cd_an_innermost(const cd_an *w, int32_t var) {
    return w->var[var].node + (int32_t)w->var[var].n_digit - 1;
}
static inline bool cd_an_is_vector(const cd_an *w, int32_t node) {
    return w->node[node].var >= 0 && w->var[w->node[node].var].vector;
}
/* Vectors, whole and in parts, for n neighbours. */
static inline int64_t cd_an_pieces(int64_t n, int64_t lanes) {
    return n / lanes + __builtin_popcountll((unsigned long long)(n % lanes));
}
/* The stride at a node in bytes, 0 if the access does not move there. */
static inline int64_t cd_an_stride(const cd_an_access *a, int32_t node) {
    if (!(a->nodes >> (node & 63) & 1)) return 0;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].node == node) return a->t[i].stride;
    return 0;
}

/* The facts, group by group. */
void cd_facts_reuse_count(cd_an *w);
/* Granules that caches of these capacities (bytes, at most 16) fetch and give back in the whole
 * program. */
void cd_facts_reuse_traffic(cd_an *w, int64_t granule, const double *cap, uint32_t n_cap,
                            double *fetch, double *back);
void cd_facts_core_count(cd_an *w);

/* ---- GPU programs: facts_gpu.c, facts_gpu_core.c, facts_gpu_core.c, facts_gpu.c,
 * facts_gpu.c ----
 *
 *   attr blockIdx.x 1792         a kernel: its axes, the sums of its facts
 *     attr threadIdx.x 112       path of the store: blockIdx.x, threadIdx.x, rc, threadIdx.x again,
 *                                vectorized
 *       for rc                   a thread axis that stands twice in a path is one axis
 *         attr threadIdx.x 112
 *           vectorized 4
 *             shared[...] = input[...]
 */
#define CD_GPU_DEEP  48 /* loops and conditions around a store; more is EUNSUPPORTED */
#define CD_GPU_LANES 64 /* of a group: a wavefront, or two warps */

typedef enum { CD_GPU_GLOBAL, CD_GPU_SHARED, CD_GPU_LOCAL } cd_an_gpu_place;

typedef struct cd_an_gpu_loop {
    int32_t ast, var;   /* var: of cd_an, -1: its extent is 1 */
    const cd_expr *e;   /* its variable */
    uint8_t loop, axis; /* cd_loop_kind; cd_ast_tag + 1, 0: no axis */
    bool copied;        /* written out */
    int64_t extent;
} cd_an_gpu_loop;

#define CD_GPU_POINTS 3    /* at which an access is looked at */
#define CD_GPU_COPIES 4096 /* of the statements of a loop that a compiler makes unasked */

typedef struct cd_an_gpu_lanes {
    _Alignas(16) int32_t v[CD_GPU_LANES];
    bool same; /* all lanes have v[0] */
} cd_an_gpu_lanes;

typedef struct cd_an_gpu cd_an_gpu;
struct cd_an_gpu {
    cd_an *w;
    /* of each store, AST node k: cd_facts_gpu_statement, or a test's */
    void (*statement)(cd_an_gpu *g, int32_t k, uint32_t raw0, uint32_t raw1);
    void *ctx;                        /* a test's */
    bool *copied;                     /* (AST nodes) */
    uint8_t *place;                   /* (n_tensor) cd_an_gpu_place */
    double *loaded, *stored;          /* (n_tensor) distinct sectors of the kernel */
    int32_t *value;                   /* (variables of the nest) scratch of the probes */
    cd_an_gpu_loop path[CD_GPU_DEEP]; /* around the node at hand, outermost first */
    uint32_t n_path;
    const cd_expr *cond[CD_GPU_DEEP];
    uint32_t n_cond, vector_cond; /* conditions outside of the vector loop */
    uint32_t raw;                 /* next access */
    /* the kernel at hand */
    int64_t extent[CD_AST_TAG_COUNT];       /* 1: it has no such axis */
    double blocks, threads, groups;         /* groups of CD_GPU_LANES lanes in a block */
    int32_t group[CD_GPU_POINTS];           /* of lane; -1: not made */
    cd_an_gpu_lanes lane[CD_GPU_POINTS][4]; /* threads along x, y, z; whether there is one */
    int32_t wait_at, sync_at;               /* AST: the loop whose turns were counted last */
    double fact[CD_N_GPU_FACTS];
    double main;  /* what the kernel that counts most executes */
    double lanes; /* of global accesses, of all kernels */
};

/* Means over groups of lanes of one access. */
typedef struct cd_an_gpu_touch {
    double sectors_32, sectors_64; /* of both warps of 32; of the group */
    double waves_32, waves_64;
    double words_32, words_64; /* distinct words of shared memory */
    /* lanes that exist and whose conditions hold, over those that exist */
    double active;
    bool neighbours; /* along the vector loop */
} cd_an_gpu_touch;

/* Facts of a GPU program into w->out. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_facts_gpu_count(cd_an *w, cdmpp_err *err);
/* Kernel by kernel, store by store; all (CD_N_GPU_FACTS), zeros before: the facts but their ratios.
 * g has w and statement. Errors: likewise. */
cdmpp_status cd_facts_gpu_walk(cd_an_gpu *g, double *all, cdmpp_err *err);
/* The store of AST node k, whose accesses are raw0 .. raw1-1, into g->fact. */
void cd_facts_gpu_statement(cd_an_gpu *g, int32_t k, uint32_t raw0, uint32_t raw1);
/* The access at a few points of its loops; bytes: of a vector that a lane reads as a whole, where
 * neighbours are. */
void cd_facts_gpu_probe(cd_an_gpu *g, const cd_an_raw *r, cd_an_gpu_touch *out);
/* Distinct sectors of an access by `n` blocks that follow each other, in the mean; loops outside of
 * AST node `home` stand still. */
double cd_facts_gpu_sectors(const cd_an_gpu *g, const cd_an_raw *r, double n, int32_t home);
static inline bool cd_an_gpu_is_block(uint8_t axis) {
    return axis && cd_ast_tag_rank((cd_ast_tag)(axis - 1)) == 0;
}
static inline bool cd_an_gpu_is_vthread(uint8_t axis) { return axis == CD_AST_TAG_VTHREAD + 1; }
static inline bool cd_an_gpu_is_thread(uint8_t axis) {
    return axis && !cd_an_gpu_is_block(axis) && !cd_an_gpu_is_vthread(axis);
}
#endif
