/* Answers of earlier candidates, so that a program that comes again needs no prediction. The table
 * is one of sets of four entries; in a full set the entry that was used longest ago goes. */
#include "predictor/score/answer_cache.h"

#include <pthread.h>
#include <string.h>

#include "features/rows/rows.h"

typedef struct {
    cd_hash key;
    uint64_t used; /* the clock then; 0: empty */
    cd_model_prediction pred;
    double measured_s, least_s, model_s;
    const cd_task *task; /* of records; lives with the tasks */
    cd_device_pick which;
    float trait[CD_N_TRAIT];
    bool truncated;
    cd_unlike unlike;
} entry;

struct cd_answer_cache {
    pthread_mutex_t lock;
    uint64_t clock, asked, found;
    size_t n_set;
    entry *entry; /* (n_set, CD_CACHE_WAYS) */
};

cdmpp_status cd_answer_cache_new(size_t entries, cd_answer_cache **out, cdmpp_err *err) {
    cd_answer_cache *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "cache");
    c->n_set = entries / CD_CACHE_WAYS + (entries % CD_CACHE_WAYS != 0);
    c->entry = c->n_set < SIZE_MAX / CD_CACHE_WAYS
                   ? cd_mem_zalloc(CD_CACHE_WAYS * c->n_set, sizeof *c->entry)
                   : NULL;
    if (!c->entry) {
        cd_mem_free(c);
        return CD_FAIL(err, ENOMEM, "cache of %zu answers", entries);
    }
    pthread_mutex_init(&c->lock, NULL); /* of the default kind: cannot fail here */
    *out = c;
    return CDMPP_OK;
}

void cd_answer_cache_free(cd_answer_cache *c) {
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    cd_mem_free(c->entry);
    cd_mem_free(c);
}

/* ---- keys ---- */
static void add_str(cd_hash *h, cd_str s) { cd_hash_add(h, s.p, s.n); }

static void add_aim(cd_hash *h, const cd_aim *a) {
    cd_hash_add(h, a->workload_key, strlen(a->workload_key));
    /* of one registry: the address says which definition, or none */
    cd_hash_add(h, &a->task, sizeof a->task);
    add_str(h, a->target);
    add_str(h, a->device);
    cd_hash_add(h, &a->flop, sizeof a->flop);
    if (a->has_hardware) cd_hash_add(h, &a->hardware, sizeof a->hardware);
}

cd_hash cd_answer_cache_key(const cd_candidate *ask) {
    cd_hash h = cd_hash_start();
    const int form = (int)ask->form;
    cd_hash_add(&h, &form, sizeof form);
    if (ask->aim) add_aim(&h, ask->aim);
    add_str(&h, ask->text);
    add_str(&h, ask->costs);
    add_str(&h, ask->version);
    const size_t size = ask->form == CD_CANDIDATE_ROWS_F64 ? sizeof(double) : sizeof(float);
    if (ask->row) cd_hash_add(&h, ask->row, ask->n_row * CD_N_COL * size);
    return h;
}

/* ---- entries ---- */
static entry *set_of(const cd_answer_cache *c, const cd_hash *key) {
    return c->entry + CD_CACHE_WAYS * (size_t)(key->b % c->n_set);
}

static entry *entry_of(const cd_answer_cache *c, const cd_hash *key) {
    entry *e = set_of(c, key);
    for (int k = 0; k < CD_CACHE_WAYS; k++)
        if (e[k].used && e[k].key.a == key->a && e[k].key.b == key->b) return &e[k];
    return NULL;
}

static void tell(const entry *e, const cd_candidate *ask, cd_scored *out) {
    const bool record = ask->form == CD_CANDIDATE_LINE || ask->form == CD_CANDIDATE_PARTS;
    *out = (cd_scored){.st = CDMPP_OK,
                       .pred = e->pred,
                       .measured_s = e->measured_s,
                       .which = e->which,
                       .truncated = e->truncated,
                       .least_s = e->least_s,
                       .model_s = e->model_s,
                       .unlike = e->unlike};
    out->task = record ? e->task : ask->aim ? ask->aim->task : NULL;
    out->key = record ? e->task->workload_key : ask->aim ? ask->aim->workload_key : "";
    memcpy(out->trait, e->trait, sizeof out->trait);
}

bool cd_answer_cache_find(cd_answer_cache *c, const cd_hash *key, const cd_candidate *ask,
                          cd_scored *out) {
    pthread_mutex_lock(&c->lock);
    entry *e = entry_of(c, key);
    c->asked++;
    if (e) {
        c->found++;
        e->used = ++c->clock;
        tell(e, ask, out);
    }
    pthread_mutex_unlock(&c->lock);
    return e != NULL;
}

void cd_answer_cache_put(cd_answer_cache *c, const cd_hash *key, const cd_scored *o) {
    pthread_mutex_lock(&c->lock);
    entry *e = entry_of(c, key), *set = set_of(c, key);
    if (!e) { /* twice in a batch: the first answer stays */
        e = set;
        for (int k = 1; k < CD_CACHE_WAYS; k++)
            if (set[k].used < e->used) e = &set[k];
        *e = (entry){.key = *key,
                     .used = ++c->clock,
                     .pred = o->pred,
                     .measured_s = o->measured_s,
                     .task = o->task,
                     .which = o->which,
                     .truncated = o->truncated,
                     .least_s = o->least_s,
                     .model_s = o->model_s,
                     .unlike = o->unlike};
        memcpy(e->trait, o->trait, sizeof e->trait);
    }
    pthread_mutex_unlock(&c->lock);
}

void cd_answer_cache_counts(cd_answer_cache *c, uint64_t *asked, uint64_t *found) {
    pthread_mutex_lock(&c->lock);
    *asked = c->asked;
    *found = c->found;
    pthread_mutex_unlock(&c->lock);
}
