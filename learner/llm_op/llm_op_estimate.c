/* Analytic times of operators of language models: tiles and waves over multiprocessors, roofs of
 * matrix units, memory and link. */
#include "learner/llm_op/llm_op_estimate.h"

#include <math.h>
#include <string.h>

/* exponentials of a multiprocessor in a clock (CUDA C++ Programming Guide, arithmetic
 * instructions) */
#define EXP_CLOCK 16.0
/* Latencies are in clocks: small kernels of A100, H100 and L40S take as many clocks, not as much
 * time (rows to train on; a product 5,800 each). */
#define LAUNCH 4000.0 /* of a kernel, until its last block is done */
/* until the first operands of a tile are there: some latencies of memory */
#define FILL           1400.0
#define LAUNCH_PREFILL 15000.0
#define LAUNCH_DECODE  12000.0
#define LAUNCH_MOE     25000.0 /* of the kernels that sort tokens by experts, too */
/* of a block of prefill that overlaps with nothing: its start, the first load, the last store */
#define BLOCK       4000.0
#define BLOCK_GROUP 7000.0 /* of one of decode that serves several query heads, by matrix units */
/* query heads of a key head that kernels for groups serve (TensorRT-LLM's XQA); of more, some
 * libraries take each head alone */
#define TOGETHER    32.0
#define BLOCK_ALONE 3500.0 /* of one of decode for one head */
/* sets of weights that the tables' measurements go round (spec of the tables) */
#define COPIES 5.0
/* other operations of vector units for each exponential: maximum, scale, sum, conversion */
#define SOFTMAX 5.0
/* matrix units as wide as that run beside the vector units (Hopper and later); narrower ones take
 * turns with them */
#define ASYNC 3.0
/* share of the softmax that they hide: FlashAttention-3 (Shah et al., 2024) reaches 661 TFLOPS on
 * H100, 570 without overlap */
#define HIDDEN  0.5
#define QUERIES 128.0 /* of a block of prefill attention */
#define PCIE    64e9  /* bytes a second of a generation 5 slot */
/* tokens of the cache that one block of decode attention reads at least */
#define PIECE 256.0

typedef cd_llm_op_machine machine;

static const cd_llm_op_family families[CD_LLM_OP_N_KIND] = {
#define PRODUCT                           CD_LLM_OP_PRODUCT
#define PREFILL                           CD_LLM_OP_FAMILY_PREFILL
#define DECODE                            CD_LLM_OP_FAMILY_DECODE
#define LATENT_PREFILL                    CD_LLM_OP_FAMILY_LATENT_PREFILL
#define LATENT_DECODE                     CD_LLM_OP_FAMILY_LATENT_DECODE
#define MOE                               CD_LLM_OP_FAMILY_MOE
#define COLLECTIVE                        CD_LLM_OP_COLLECTIVE
#define STREAM                            CD_LLM_OP_STREAM
#define K(ID, name, family, meaning, ...) family,
#include "features/operators/llm_op_kinds.def"
#undef PRODUCT
#undef PREFILL
#undef DECODE
#undef LATENT_PREFILL
#undef LATENT_DECODE
#undef MOE
#undef COLLECTIVE
#undef STREAM
};

cd_llm_op_family cd_llm_op_family_of(cd_llm_op_kind k) { return families[k]; }

const char *cd_llm_op_family_name(cd_llm_op_family f) {
    static const char *const name[CD_LLM_OP_N_FAMILY] = {
        "product",       "prefill", "decode",     "latent_prefill",
        "latent_decode", "moe",     "collective", "stream"};
    return name[f];
}

/* Between the sum and the larger one: the two overlap but for their ends. */
static double overlap(double a, double b) { return sqrt(hypot(a, b) * fmax(a, b)); }

/* Bytes that are read over and over: from memory, or where they fit from the L2 cache. Going round
 * a little more than fits misses all. */
static double traffic(const machine *m, double again, double once, double copies,
                      cd_llm_op_estimate *e) {
    e->cached = copies * again / m->l2;
    const double from_memory = again * (1 - 1 / (1 + pow(e->cached, 4)));
    return fmax((from_memory + once) / m->bandwidth, (again + once) / m->l2_rate);
}

/* Bytes that miss the L2 cache when so many of others are touched before they are wanted again. */
static double missing(const machine *m, double bytes, double between) {
    return bytes * (1 - 1 / (1 + pow(between / m->l2, 4)));
}

/* The same of a product that is repeated: what goes in and out is wanted again by the next call,
 * its weights when their copies are through. There are as many copies as fill the cache, COPIES at
 * most. */
static double product_traffic(const machine *m, double weights, double rest,
                              cd_llm_op_estimate *e) {
    e->cached = COPIES * weights / m->l2;
    const double from_memory =
        missing(m, weights, COPIES * weights) + missing(m, rest, weights + rest);
    return fmax(from_memory / m->bandwidth, (weights + rest) / m->l2_rate);
}

/* ---- products ---- */
enum { N_SIDE = 5 };
static const double side[N_SIDE] = {16, 32, 64, 128, 256};

typedef struct {
    double m, n, k, groups, weight, input; /* bytes of an element */
    double strips[N_SIDE];                 /* strips of so many rows, of all groups together */
} product;

static double cap(double x) { return cd_llm_op_ceil(x < 1 ? 1 : x); }

/* The splits of k of a tile, of which there are `all` and which takes `least` with whole rounds.
 * Splits are powers of two, so what is multiplied and divided by them is exact. Below best:
 * returned, and written down. */
static double splits(const machine *v, const product *p, double a, double b, double all,
                     double least, double best, cd_llm_op_estimate *e) {
    const double rate = v->peak / v->sms, l2 = v->l2_rate / v->sms, fill = FILL / v->clock,
                 sum = 8 * p->groups * p->m * p->n / v->l2_rate, rounds = all / v->sms;
    const double compute = 2 * a * b * p->k / rate,
                 feed = (a * p->input + b * p->weight) * p->k / l2,
                 each = compute > feed ? compute : feed;
    for (double s = 1, part = 1; s <= 32 && (s <= 1 || (s * 128 <= p->k && least + sum * s < best));
         s *= 2, part /= 2) {
        const double time = cap(rounds * s) * each * part + fill + (s > 1 ? sum * s : 0);
        if (time >= best) continue;
        best = time;
        e->waves = rounds * s, e->tile_m = a, e->tile_n = b, e->split = s;
    }
    return best;
}

/* Kernels take the tile and the split of k that run fastest: libraries choose from about these.
 * `least` is told without a division, and is below the exact time by more than it is rounded: most
 * tiles cannot be as fast as the one where it is least, and are passed over. Of equal ones the
 * first counts. */
static double tiles(const machine *v, const product *p, cd_llm_op_estimate *e) {
    const double fill = FILL / v->clock, below = 1 - 1e-12, share = 1 / v->sms,
                 operations = 2 * p->k * v->sms / v->peak * below,
                 bytes = p->k * v->sms / v->l2_rate * below;
    double least[N_SIDE][N_SIDE], all[N_SIDE][N_SIDE], columns[N_SIDE];
    size_t ni = 1, nj = 2, first = 0, second = 1;
    while (ni < N_SIDE && side[ni - 1] < p->m) ni++;
    while (nj < N_SIDE && side[nj - 1] < p->n) nj++;
    for (size_t j = 1; j < nj; j++) columns[j] = cap(p->n / side[j]);
    for (size_t i = 0; i < ni; i++)
        for (size_t j = 1; j < nj && side[i] * side[j] <= 32768; j++) {
            const double compute = side[i] * side[j] * operations,
                         feed = (side[i] * p->input + side[j] * p->weight) * bytes;
            all[i][j] = p->strips[i] * columns[j];
            least[i][j] = all[i][j] * share * (compute > feed ? compute : feed) + fill;
            if (least[i][j] < least[first][second]) first = i, second = j;
        }
    double best = (1 + 1e-15) * splits(v, p, side[first], side[second], all[first][second],
                                       least[first][second], INFINITY, e);
    for (size_t i = 0; i < ni; i++)
        for (size_t j = 1; j < nj && side[i] * side[j] <= 32768; j++)
            if (least[i][j] < best)
                best = splits(v, p, side[i], side[j], all[i][j], least[i][j], best, e);
    return best;
}

static void product_estimate(const cd_llm_op_record *r, const machine *v, cd_llm_op_estimate *e) {
    const cd_llm_op_type t = (cd_llm_op_type)r->type;
    product p = {r->size[0],
                 r->size[1],
                 r->size[2],
                 r->size[3],
                 cd_llm_op_type_weight_bytes(t),
                 cd_llm_op_type_input_bytes(t),
                 {0}};
    for (size_t i = 0; i < N_SIDE; i++) p.strips[i] = p.groups * cap(p.m / side[i]);
    const double weights = p.groups * p.n * p.k * p.weight,
                 rest = p.groups * p.m * (p.k * p.input + 2 * p.n);
    e->flops = 2 * p.groups * p.m * p.n * p.k;
    e->bytes = weights + rest;
    e->each = p.m;
    e->groups = p.groups;
    e->tiles_s = tiles(v, &p, e);
    /* inputs are made narrow first */
    const double before =
        p.input < 2 ? LAUNCH / v->clock + p.groups * p.m * p.k * (2 + p.input) / v->bandwidth : 0;
    e->base_s =
        LAUNCH / v->clock + before + overlap(e->tiles_s, product_traffic(v, weights, rest, e));
}

/* Loads of the experts of a GPU: classes of `count` experts that `tokens` tokens take each. */
typedef struct {
    double tokens, count;
} load;

/* A density x^-skew from low to high. */
typedef struct {
    double p, low, high, at_low, at_high; /* at: to the power of p */
} density;

static density power_law(double skew, double low, double high) {
    const double p = 1 - skew;
    return fabs(p) < 1e-6 ? (density){0, low, high, 0, 0}
                          : (density){p, low, high, pow(low, p), pow(high, p)};
}

/* The k-th of n draws, largest first. */
static double draw(const density *d, double k, double n) {
    const double u = 1 - (k + 0.5) / n;
    return fabs(d->p) < 1e-6 ? d->low * pow(d->high / d->low, u)
                             : pow((d->at_high - d->at_low) * u + d->at_low, 1 / d->p);
}

/* Classes of 1, 1, 2, 4 ... experts: loads differ most at the top. */
static void draw_all(cd_llm_op_loads *to) {
    const density d = power_law(to->skew, to->few, to->many);
    double at = 0;
    for (double count = 1; at < to->all && to->n < CD_LLM_OP_LOADS;
         at += count, count = at, to->n++) {
        if (at + 2 * count > to->all || to->n + 1 == CD_LLM_OP_LOADS) count = to->all - at;
        to->tokens[to->n] = draw(&d, at + (count - 1) / 2, to->all);
        to->count[to->n] = count;
        to->sum += to->tokens[to->n] * count;
    }
}

static const cd_llm_op_loads *known_loads(const cd_llm_op_loads *want, cd_llm_op_known *known,
                                          cd_llm_op_loads *own) {
    uint64_t h = 0, word[4];
    memcpy(word, want, sizeof word);
    for (size_t i = 0; i < 4; i++) h = cd_rng_mix(h ^ word[i]);
    cd_llm_op_loads *k = known ? &known->loads[h % CD_LLM_OP_KNOWN_LOADS] : own;
    if (memcmp(k, want, sizeof word) == 0) return k;
    *k = *want;
    draw_all(k);
    return k;
}

/* The measured GPU has the most taken expert; the others of it are like those of all. The bounds
 * are those that the tables' loads are drawn between. */
static size_t loads(const cd_llm_op_record *r, cd_llm_op_known *known, load v[CD_LLM_OP_LOADS]) {
    const double tokens = r->size[0], taken = tokens * r->size[3], all = r->size[4],
                 here = fmax(1, all / r->size[6]);
    cd_llm_op_loads own = {0};
    if (!(r->skew > 0) || all < 2) {
        const double active = fmin(here, fmax(1, taken / r->size[6]));
        v[0] = (load){fmax(1, taken / r->size[6] / active), active};
        return 1;
    }
    const cd_llm_op_loads want = {.skew = r->skew,
                                  .few = taken > all ? 1 : 0.01,
                                  .many = taken > all ? 0.8 * tokens : 2,
                                  .all = all};
    const cd_llm_op_loads *k = known_loads(&want, known, &own);
    for (size_t i = 0; i < k->n; i++)
        v[i] =
            (load){k->tokens[i] * (taken / k->sum), i ? k->count[i] * (here - 1) / (all - 1) : 1};
    return k->n;
}

static void moe_estimate(const cd_llm_op_record *r, const machine *v, cd_llm_op_known *known,
                         cd_llm_op_estimate *e) {
    const cd_llm_op_type t = (cd_llm_op_type)r->type;
    const double h = r->size[1], f = cap(r->size[2] / r->size[5]);
    const double w = cd_llm_op_type_weight_bytes(t), x = cd_llm_op_type_input_bytes(t);
    product up = {0, 2 * f, h, 0, w, x, {0}}, down = {0, h, f, 0, w, x, {0}};
    load load_of[CD_LLM_OP_LOADS];
    double taken = 0;
    const size_t n = loads(r, known, load_of);
    for (size_t k = 0; k < n; k++) {
        const double active = load_of[k].count * fmin(1, load_of[k].tokens),
                     m = fmax(1, load_of[k].tokens);
        up.groups += active;
        taken += active * m;
        for (size_t i = 0; i < N_SIDE; i++) up.strips[i] += active * cap(m / side[i]);
    }
    up.groups = fmax(up.groups, 1);
    up.m = down.m = fmax(1, taken / up.groups);
    down.groups = up.groups;
    memcpy(down.strips, up.strips, sizeof up.strips);
    const double weights = 3 * h * f * w * up.groups;
    e->flops = 2 * taken * 3 * h * f;
    e->bytes = weights + taken * (2 * h * x + 3 * f * x);
    e->each = up.m;
    e->groups = up.groups;
    e->tiles_s = tiles(v, &down, e);
    e->tiles_s += tiles(v, &up, e);
    e->base_s =
        LAUNCH_MOE / v->clock + overlap(e->tiles_s, traffic(v, weights, e->bytes - weights, 1, e));
}

/* ---- attention ---- */
/* Pairs of a query and a key that it sees, of one head of one sequence. */
static double pairs(double s, double past, double window) {
    if (!(window > 0) || window >= s + past) return s * past + s * (s + 1) / 2;
    /* queries that see less than the window */
    const double short_ones = fmin(s, fmax(0, window - past));
    return short_ones * past + short_ones * (short_ones + 1) / 2 + (s - short_ones) * window;
}

/* heads: query heads; kv: key and value heads; qk, v: lengths of a head in both products. */
static void prefill(const machine *v, double s, double past, double b, double heads, double window,
                    double qk, double vd, double kv_width, double kv_bytes, double io_bytes,
                    cd_llm_op_estimate *e) {
    const double seen = window > 0 ? fmin(window + QUERIES, s + past) : s + past,
                 blocks = b * heads * cap(s / QUERIES);
    const double see = pairs(s, past, window), tiled = see + fmin(s, QUERIES) * s / 2,
                 rate = v->peak / v->sms;
    /* a round is not full at its end */
    const double longest = QUERIES * seen * 2 * (qk + vd) / rate, full = fmax(blocks / v->sms, 1),
                 tail = blocks > v->sms ? (full + 1) / full : 1;
    e->flops = 2 * b * heads * see * (qk + vd);
    e->bytes = io_bytes + kv_bytes;
    e->exp_s =
        tail * b * heads * tiled * (1 / EXP_CLOCK + SOFTMAX / v->lanes) / (v->sms * v->clock);
    e->each = fmin(s, QUERIES);
    e->groups = blocks;
    e->waves = blocks / v->sms;
    e->tiles_s = fmax(tail * 2 * b * heads * tiled * (qk + vd) * QUERIES /
                          fmin(fmax(s, 16), QUERIES) / v->peak,
                      longest);
    /* each block reads the keys and values that it sees */
    const double port = blocks * seen * (qk + vd) * kv_width / v->l2_rate;
    e->base_s = (LAUNCH_PREFILL + BLOCK * fmax(e->waves, 1)) / v->clock +
                overlap(e->tiles_s + (v->wide > ASYNC ? 1 - HIDDEN : 1) * e->exp_s, port) +
                traffic(v, e->bytes, 0, 1, e);
}

static void prefill_estimate(const cd_llm_op_record *r, const machine *v, cd_llm_op_estimate *e) {
    const double s = r->size[0], past = r->size[1], b = r->size[2], n = r->size[3], kv = r->size[4],
                 d = r->size[5];
    const double w = cd_llm_op_type_weight_bytes((cd_llm_op_type)r->kv);
    prefill(v, s, past, b, n, r->size[6], d, d, w, 2 * b * kv * (s + past) * d * w,
            4 * b * n * s * d, e);
}

static void latent_prefill_estimate(const cd_llm_op_record *r, const machine *v,
                                    cd_llm_op_estimate *e) {
    const double s = r->size[0], past = r->size[1], b = r->size[2], n = r->size[3];
    const double w = cd_llm_op_type_weight_bytes((cd_llm_op_type)r->kv);
    prefill(v, s, past, b, n, 0, 192, 128, 2, b * (s + past) * 576 * w,
            b * n * s * (192 * 2 + 128 * 2) + 2 * b * n * (s + past) * 320, e);
}

/* A block reads a piece of one sequence's cache for all query heads of a key head; products have 16
 * rows at least. */
static void decode(const machine *v, double b, double heads, double kv, double len, double qk,
                   double vd, double cache_bytes, double io_bytes, cd_llm_op_estimate *e) {
    /* a cache is split where there are too few sequences and heads */
    const double pieces = fmax(1, fmin(cap(len / PIECE), 2 * v->sms / (b * kv)));
    const double group = heads / kv, blocks = b * kv * pieces, rows = 16 * cap(group / 16);
    e->flops = 2 * b * heads * len * (qk + vd);
    e->bytes = cache_bytes + io_bytes;
    e->each = len;
    e->groups = b * kv;
    e->waves = blocks / v->sms;
    e->exp_s = b * kv * rows * len / (v->sms * v->clock * EXP_CLOCK);
    e->tiles_s =
        cap(e->waves) / fmax(e->waves, 1e-9) * 2 * b * kv * rows * len * (qk + vd) / v->peak;
    /* a multiprocessor reads no faster than its port */
    const double port = cache_bytes / blocks * cap(e->waves) / (v->l2_rate / v->sms);
    /* a block for each query head, which reads the cache again */
    if (group > TOGETHER)
        e->alone_s = (LAUNCH_DECODE + BLOCK_ALONE * fmax(b * heads / v->sms, 1)) / v->clock +
                     group * cache_bytes / (v->sms * v->clock * CD_LLM_OP_L2_BYTES_CLOCK);
    e->base_s = (LAUNCH_DECODE +
                 (group > 1 ? BLOCK_GROUP : BLOCK_ALONE) * fmax(e->waves, pieces > 1 ? 2 : 1)) /
                    v->clock +
                overlap(overlap(e->tiles_s, e->exp_s), fmax(traffic(v, e->bytes, 0, 1, e), port));
}

static void decode_estimate(const cd_llm_op_record *r, const machine *v, cd_llm_op_estimate *e) {
    const double b = r->size[1], n = r->size[2], kv = r->size[3], d = r->size[4];
    const double len = r->size[5] > 0 ? fmin(r->size[5], r->size[0] + 1) : r->size[0] + 1;
    decode(v, b, n, kv, len, d, d,
           2 * b * kv * len * d * cd_llm_op_type_weight_bytes((cd_llm_op_type)r->kv), 4 * b * n * d,
           e);
}

static void latent_decode_estimate(const cd_llm_op_record *r, const machine *v,
                                   cd_llm_op_estimate *e) {
    const double len = r->size[0] + 1, b = r->size[1], n = r->size[2];
    decode(v, b, n, 1, len, 576, 512,
           b * len * 576 * cd_llm_op_type_weight_bytes((cd_llm_op_type)r->kv), 2176 * b * n, e);
}

/* ---- streams, collectives ---- */
static void stream_estimate(const cd_llm_op_record *r, const machine *v, cd_llm_op_estimate *e) {
    const double n = r->size[0] * r->size[1];
    e->flops = n;
    e->bytes = n * (2 + cd_llm_op_type_input_bytes((cd_llm_op_type)r->type));
    e->each = r->size[1];
    e->groups = r->size[0];
    e->base_s = LAUNCH / v->clock + traffic(v, e->bytes, 0, 1, e);
}

/* What collectives reach of a GPU's link in one direction. GPUs without a link of their own (PCIe
 * has 64 GB/s at most) share those of the host. */
static double reached(double link, double gpus) {
    return link > PCIE ? 0.75 * link : (gpus > 2 ? 0.3 : 0.6) * link;
}

/* Steps wait for each other; bytes of a GPU's link in one direction. */
static double steps(double n, double bytes, double link) { return 2e-6 + 2e-6 * n + bytes / link; }

static cdmpp_status collective_estimate(const cd_llm_op_record *r, const cd_device *d,
                                        cd_llm_op_estimate *e, cdmpp_err *err) {
    const double g = r->size[1], part = r->size[0] * (g - 1) / g, sheet = d->link_gb_s * 1e9,
                 link = reached(sheet, g);
    if (d->kind == CD_DEVICE_CPU)
        return cd_err_key(
            err,
            CD_FAIL(err, EMODEL, "%s is a CPU; operators of language models are of GPUs", d->name),
            "device");
    if (!(d->link_gb_s > 0))
        return cd_llm_op_machine_lacks(d, "link_gb_s", d->link_gb_s, "link", NULL, err);
    const bool both = r->kind == CD_LLM_OP_ALL_REDUCE;
    e->flops = both ? r->size[0] / 2 : 0;
    e->bytes = (both ? 2 : 1) * part;
    e->memory_s = e->bytes / sheet;
    e->each = g;
    e->groups = r->size[0] / g;
    /* through the host GPUs come one after the other */
    const double once = sheet > PCIE ? 1 : 1.5 * (g - 1);
    /* all at once, and round a ring */
    e->base_s = fmin(steps((both ? 2 : 1) * once, e->bytes, link),
                     steps((both ? 2 : 1) * (g - 1), e->bytes, link));
    /* everybody reads everything */
    if (both) e->base_s = fmin(e->base_s, steps(once, (g - 1) * r->size[0], link));
    return CDMPP_OK;
}

void cd_llm_op_estimate_raise(cd_llm_op_estimate *e, bool alone, double host_s) {
    e->base_s = fmax(fmax(e->base_s, alone ? e->alone_s : 0), host_s);
}

static cdmpp_status known_machine(const cd_device *d, cd_llm_op_type t, cd_llm_op_known *known,
                                  machine *m, cdmpp_err *err) {
    machine *k = known ? &known->machine[t][(uintptr_t)d / sizeof *d % CD_LLM_OP_MACHINES] : m;
    if (k->device != d) CD_TRY(cd_llm_op_machine_of(d, t, k, err));
    *m = *k;
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_estimate_by(const cd_llm_op_record *r, const cd_device *d,
                                   cd_llm_op_known *known, cd_llm_op_estimate *out,
                                   cdmpp_err *err) {
    static void (*const of[CD_LLM_OP_N_FAMILY])(const cd_llm_op_record *, const machine *,
                                                cd_llm_op_estimate *) = {product_estimate,
                                                                         prefill_estimate,
                                                                         decode_estimate,
                                                                         latent_prefill_estimate,
                                                                         latent_decode_estimate,
                                                                         NULL,
                                                                         NULL,
                                                                         stream_estimate};
    const cd_llm_op_family f = families[r->kind];
    machine m = {0};
    *out = (cd_llm_op_estimate){.waves = 1, .tile_m = 1, .tile_n = 1, .split = 1};
    if (f == CD_LLM_OP_COLLECTIVE) {
        CD_TRY(collective_estimate(r, d, out, err));
    } else {
        CD_TRY(known_machine(d, f == CD_LLM_OP_STREAM ? CD_LLM_OP_T_F32 : (cd_llm_op_type)r->type,
                             known, &m, err));
        if (f == CD_LLM_OP_FAMILY_MOE) moe_estimate(r, &m, known, out);
        else of[f](r, &m, out);
        out->compute_s = out->flops / m.sheet;
        out->memory_s = out->bytes / m.bandwidth;
    }
    out->roof_s = fmax(out->compute_s, out->memory_s);
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_estimate_of(const cd_llm_op_record *r, const cd_device *d,
                                   cd_llm_op_estimate *out, cdmpp_err *err) {
    return cd_llm_op_estimate_by(r, d, NULL, out, err);
}
