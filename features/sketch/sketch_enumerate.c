/* A space as a whole: all its schedules in order, their number, its decisions as JSON for other
 * tuners. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

/* Spaces that are estimated to be no larger than this are counted by walking through them. */
#define WALK_MAX 20000.0

/* The list of choices after this one: the last choice that has a next option takes it, those behind
 * it are forgotten. */
static bool turn(cd_sketch_choices *c) {
    while (c->n && c->p[c->n - 1].pick + 1 >= c->p[c->n - 1].n) c->n--;
    if (!c->n) return false;
    c->p[c->n - 1].pick++;
    return true;
}

static cdmpp_status keep_choices(const cd_sketch_sampler *w, cd_sketch_choices *at,
                                 cdmpp_err *err) {
    if (!cd_sketch_choices_reserve(at, w->made.n))
        return CD_FAIL(err, ENOMEM, "%u choices", w->made.n);
    memcpy(at->p, w->made.p, w->made.n * sizeof *at->p);
    at->n = w->made.n;
    return CDMPP_OK;
}

cdmpp_status cd_sketch_sampler_next(cd_sketch_sampler *w, cd_sketch_choices *at,
                                    cd_sketch_sample *out, cdmpp_err *err) {
    *out = (cd_sketch_sample){0};
    if (at->n && !turn(at)) return CD_FAIL(err, ENODATA, "no more schedules");
    CD_TRY(cd_sketch_sampler_set(w, at->p, at->n, err));
    w->source = CD_SKETCH_PICKS;
    w->strict = true;
    const cdmpp_status st = cd_sketch_sampler_run(w, out, err);
    if (st && st != CDMPP_EREJECTED) return st;
    CD_TRY(keep_choices(w, at, err));
    return st;
}

/* Product of the options of one sketch when option 0 is taken everywhere. */
static cdmpp_status size_of(cd_sketch_sampler *w, uint32_t sketch, double *size, cdmpp_err *err) {
    cd_sketch_sample d;
    const cdmpp_status st = cd_sketch_sampler_make(
        w, &(cd_sketch_choice){.pick = sketch, .kind = CD_SKETCH_CHOICE_SKETCH}, 1, &d, err);
    if (st && st != CDMPP_EREJECTED) return st;
    *size = 1;
    for (uint32_t k = 1; k < d.n_choice; k++) *size *= d.choice[k].n;
    return CDMPP_OK;
}

static cdmpp_status walk(cd_sketch_sampler *w, double *size, cdmpp_err *err) {
    cd_sketch_choices at = {0};
    cd_sketch_sample d;
    cdmpp_status st;
    for (*size = 0; (st = cd_sketch_sampler_next(w, &at, &d, err)) != CDMPP_ENODATA; *size += !st)
        if (st && st != CDMPP_EREJECTED) break;
    cd_sketch_choices_free(&at);
    return st == CDMPP_ENODATA ? CDMPP_OK : st;
}

static cdmpp_status size_with(cd_sketch_sampler *w, double *size, bool *exact, cdmpp_err *err) {
    *size = 0;
    for (uint32_t k = 0; k < w->space->n_sketch; k++) {
        double one;
        CD_TRY(size_of(w, k, &one, err));
        *size += one;
    }
    *exact = *size <= WALK_MAX;
    return *exact ? walk(w, size, err) : CDMPP_OK;
}

cdmpp_status cd_sketch_space_size(const cd_sketch_space *s, double *size, bool *exact,
                                  cdmpp_err *err) {
    cd_sketch_sampler *w;
    CD_TRY(cd_sketch_sampler_new(s, 0, &w, err));
    const cdmpp_status st = size_with(w, size, exact, err);
    cd_sketch_sampler_free(w);
    return st;
}

/* ---- knobs as JSON ---- */

enum { FEW = 24 }; /* options that are listed */

typedef struct {
    cd_buf *json;
    const cd_sketch_space *space;
    uint32_t sketch, n;
} dumper;

static const char *const kind_name[CD_SKETCH_CHOICE_KINDS] = {
    "sketch", "tile", "place", "parallel", "unroll", "vector", "split"};

/* Tile lengths are listed where there are few; else only extent and number of parts. */
static void dump_lengths(const dumper *d, const cd_sketch_options *m) {
    const cd_sketch_open_splits *o = &d->space->open[d->sketch];
    for (uint32_t k = 0; k < o->n; k++) {
        if (o->p[k].step != m->at || !o->p[k].tile) continue;
        const cd_record_step *t = &d->space->sketch[d->sketch]->step[m->at];
        cd_buf_putf(d->json, ", \"extent\": %d, \"parts\": %u", t->i[1], t->n_list + 1);
        if (m->n > FEW || t->n_list >= CD_SKETCH_MAX_LEVEL) return;
        cd_buf_puts(d->json, ", \"lengths\": [");
        for (uint32_t pick = 0; pick < m->n; pick++) {
            int32_t len[CD_SKETCH_MAX_LEVEL];
            cd_sketch_tile_lengths(o->p[k].tile, t->n_list, pick, len);
            cd_buf_puts(d->json, pick ? ", [" : "[");
            for (uint32_t j = 0; j < t->n_list; j++)
                cd_buf_putf(d->json, j ? ", %d" : "%d", len[j]);
            cd_buf_puts(d->json, "]");
        }
        cd_buf_puts(d->json, "]");
    }
}

static void dump_place(cd_buf *b, uint32_t v) {
    if (v == CD_SKETCH_PLACE_INLINE) cd_buf_puts(b, "\"inline\"");
    else if (v == CD_SKETCH_PLACE_ROOT) cd_buf_puts(b, "\"root\"");
    else cd_buf_putf(b, "[%u, %u]", cd_sketch_place_stage(v), cd_sketch_place_loop(v));
}

static void dump_decision(void *ctx, const cd_sketch_options *m) {
    dumper *d = ctx;
    if (m->kind == CD_SKETCH_CHOICE_SKETCH) return;
    cd_buf_putf(d->json, "%s\n    {\"kind\": \"%s\", \"%s\": %u, \"options\": %u",
                d->n++ ? "," : "", kind_name[m->kind],
                m->kind == CD_SKETCH_CHOICE_TILE ? "step" : "stage", m->at, m->n);
    if (m->kind == CD_SKETCH_CHOICE_TILE) dump_lengths(d, m);
    for (uint32_t k = 0; m->value && m->n <= FEW && k < m->n; k++) {
        cd_buf_puts(d->json, k ? ", " : ", \"values\": [");
        if (m->kind == CD_SKETCH_CHOICE_PLACE) dump_place(d->json, m->value[k]);
        else cd_buf_putf(d->json, "%u", m->value[k]);
    }
    cd_buf_puts(d->json, m->value && m->n <= FEW ? "]}" : "}");
}

/* The decisions are those that completing the sketch with option 0 everywhere asks for. */
static cdmpp_status dump_sketch(cd_sketch_sampler *w, dumper *d, cdmpp_err *err) {
    const cd_sketch_state *s = w->space->sketch[d->sketch];
    const cd_record r = {.n_step = s->n_step, .step = s->step};
    cd_sketch_sample draft;
    double size;
    CD_TRY(size_of(w, d->sketch, &size, err));
    cd_buf_puts(d->json, d->sketch ? ",\n  {\"steps\": " : "\n  {\"steps\": ");
    CD_TRY(cd_record_write_steps(d->json, &r, err));
    cd_buf_puts(d->json, ",\n   \"product\": ");
    cd_buf_put_json_real(d->json, size);
    cd_buf_puts(d->json, ", \"choices\": [");
    d->n = 0;
    w->listen = dump_decision;
    w->listener = d;
    const cdmpp_status st = cd_sketch_sampler_make(
        w, &(cd_sketch_choice){.pick = d->sketch, .kind = CD_SKETCH_CHOICE_SKETCH}, 1, &draft, err);
    w->listen = NULL;
    cd_buf_puts(d->json, "]}");
    return st == CDMPP_EREJECTED ? CDMPP_OK : st;
}

static cdmpp_status dump_with(cd_sketch_sampler *w, cd_buf *json, cdmpp_err *err) {
    dumper d = {.json = json, .space = w->space};
    double size;
    bool exact;
    CD_TRY(size_with(w, &size, &exact, err));
    cd_buf_putf(json,
                "{\"target\": \"%s\", \"naive\": %s, \"size\": ", d.space->gpu ? "gpu" : "cpu",
                d.space->naive ? "true" : "false");
    cd_buf_put_json_real(json, size);
    cd_buf_putf(json, ", \"exact\": %s, \"sketches\": [", exact ? "true" : "false");
    for (; d.sketch < d.space->n_sketch; d.sketch++) CD_TRY(dump_sketch(w, &d, err));
    cd_buf_puts(json, "]}\n");
    return json->oom ? CD_FAIL(err, ENOMEM, "knobs") : CDMPP_OK;
}

cdmpp_status cd_sketch_space_dump(const cd_sketch_space *s, cd_buf *json, cdmpp_err *err) {
    cd_sketch_sampler *w;
    CD_TRY(cd_sketch_sampler_new(s, 0, &w, err));
    const cdmpp_status st = dump_with(w, json, err);
    cd_sketch_sampler_free(w);
    return st;
}
