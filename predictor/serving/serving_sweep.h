/* serving_sweep -- many configurations against targets: which of them are the best of their kind.
 * Included by serving.h.
 *
 *   lists of gpus, tp, pp, dp, ep, concurrency ─> all combinations ─> divides? fits? ─> simulated
 *     ─> targets met? ─> front, the best two; none: the nearest miss
 *
 * (1) a configuration is on the front where no other that meets the targets has both more
 *     tokens/s/GPU and more tokens/s/user; where there is no further token, so no speed for a user,
 *     the one with the most tokens/s/GPU;
 * (2) configurations that do not divide or fit are counted by what stands in the way, and left out;
 * (3) the number of threads changes no answer;
 * (4) a configuration of which nobody knows how far off it is (another vendor, a type that no
 *     training row has) is told, and is neither on the front nor named. */
#ifndef CD_SERVING_SWEEP_H
#define CD_SERVING_SWEEP_H

/* Numbers of each list as text, "1,2,4"; NULL: the value of the configuration alone. */
typedef struct cd_serving_lists {
    const char *gpu, *tp, *pp, *dp, *ep, *concurrency;
} cd_serving_lists;

/* All combinations. Texts and the list live in the arena. Errors: EUSAGE: not a list (key: the
 * option), more than 1e6 of them; ENOMEM. */
cdmpp_status cd_serving_combine(cd_arena *a, const cd_serving_config *usual,
                                const cd_serving_lists *l, CD_KEEP cd_serving_config **out,
                                size_t *n, cdmpp_err *err);

typedef struct cd_serving_point {
    const cd_serving_config *c;
    cd_serving_about about; /* of its GPU */
    /* price: of a million generated tokens; NaN: none was given */
    double ttft_s, tpot_s, tokens_s, per_gpu, per_user, gpus, price;
    /* crowded: cd_serving_crowded(); idle: some schedulers get no request */
    bool met, front, crowded, idle;
    /* false: nobody knows the interval of some of its operators, so it is not compared with
     * others */
    bool ranked;
    unsigned news; /* CD_LLM_OP_NEW_* of these operators */
} cd_serving_point;

typedef struct cd_serving_reason {
    char text[96]; /* key of the error: memory, tp ... */
    size_t n;
} cd_serving_reason;
enum { CD_SERVING_REASONS = 32 };

/* A point that is named, with the interval of its session's level; NaN: nobody knows it. */
typedef struct cd_serving_named {
    const cd_serving_point *p; /* NULL: there is none */
    double ttft_low_s, ttft_high_s, tpot_low_s, tpot_high_s, per_gpu_low, per_gpu_high;
} cd_serving_named;

typedef struct cd_serving_sweep {
    cd_serving_point *v; /* (n) that could be simulated, in order */
    /* done: of those tried that were answered or left out; fewer where it was stopped */
    size_t n, tried, done, n_met, n_front, n_crowded, n_idle, n_unranked;
    cd_serving_reason reason[CD_SERVING_REASONS];
    size_t n_reason;
    double ttft_s, tpot_s, level; /* targets; 0: none. Level of the intervals */
    /* of those that meet the targets: most tokens/s/GPU, the least price of tokens (without prices
     * there is none) */
    cd_serving_named most, cheapest;
    /* where none meets the targets: the one that is the least times over the target that it misses
     * most */
    cd_serving_named nearest;
} cd_serving_sweep;

typedef double cd_serving_price(void *ctx, const char *gpu);
typedef struct cd_serving_sweep_options {
    double ttft_s, tpot_s;   /* targets; 0: none */
    cd_serving_price *price; /* of an hour of a GPU by name, NULL: none */
    void *ctx;
    /* told of each configuration that is begun, by one thread at a time; NULL: nobody is */
    void (*step)(void *ctx, size_t taken);
    void *step_ctx;
    cd_threads *threads;               /* NULL: this one alone */
    const volatile sig_atomic_t *stop; /* above 0: the sweep ends; NULL: nothing stops it */
} cd_serving_sweep_options;

/* Errors: those that are not of one configuration: ENOMEM, an unknown GPU or stack; EINTERRUPTED
 * (*stop): *out has what was answered until then; ENODATA: none could be simulated (names the
 * reasons). Free after an error, too. */
cdmpp_status cd_serving_sweep_run(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                  const cd_serving_sweep_options *o, cd_serving_sweep *out,
                                  cdmpp_err *err);
void cd_serving_sweep_free(cd_serving_sweep *s);
/* Does the interval reach over a target that the point itself meets? */
bool cd_serving_reaches_over(double value, double high, double target);
/* The front, slowest for a user first, and what is named; all that could be simulated with `all`.
 * The picture. */
void cd_serving_sweep_text(const cd_serving_sweep *s, cd_buf *b);
void cd_serving_sweep_json(const cd_serving_sweep *s, bool all, cd_buf *b);
cdmpp_status cd_serving_sweep_picture(const cd_serving_sweep *s, const char *path, cdmpp_err *err);
#endif
