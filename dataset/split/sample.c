/* Samples in the notation of CDMPP's scripts: which tasks of which devices, as numbers in an order
 * that depends on names and seed alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split_internal.h"
#include "features/task/task.h"

/* *piece = what comes before the next `stop`, which is passed over, or all that is left;
 * true when there was one: another piece follows.
 *
 * Pieces, words and names of a sample's text. */
static bool sample_scan_cut(cd_sample_scan *s, char stop, cd_sample_scan *piece) {
    const char *p = memchr(s->text + s->at, stop, s->end - s->at);
    *piece = *s;
    piece->end = p ? (size_t)(p - s->text) : s->end;
    s->at = p ? piece->end + 1 : s->end;
    return p != NULL;
}

/* What is left starts with `word`: pass over it. */
static bool sample_scan_word(cd_sample_scan *s, const char *word) {
    const size_t n = strlen(word);
    if (s->end - s->at < n || memcmp(s->text + s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

/* EPARSE: "character 8: expected WHAT, found '...'", what is left. */
static cdmpp_status sample_scan_expected(const cd_sample_scan *s, const char *what,
                                         cdmpp_err *err) {
    if (s->at == s->end)
        return CD_FAIL(err, EPARSE, "character %zu: expected %s, found the end of it", s->at + 1,
                       what);
    return CD_FAIL(err, EPARSE, "character %zu: expected %s, found '%.*s'", s->at + 1, what,
                   (int)(s->end - s->at < 60 ? s->end - s->at : 60), s->text + s->at);
}

/* Name i of the data set, a network's without its shape; NULL behind the last. */
static const char *known(const cd_dataset *d, cd_sample_scan_kind kind, size_t i,
                         char buf[CD_SAMPLE_NAME]) {
    if (kind == CD_SAMPLE_SCAN_DEVICE) return i < d->n_device ? d->device_name[i] : NULL;
    if (i >= d->n_network) return NULL;
    const cd_str base = cd_network_alias_base(d->network_name[i]);
    snprintf(buf, CD_SAMPLE_NAME, "%.*s",
             (int)(base.n < CD_SAMPLE_NAME ? base.n : CD_SAMPLE_NAME - 1), base.p);
    return buf;
}

static bool exists(const cd_dataset *d, cd_sample_scan_kind kind, const char *name) {
    const size_t n = kind == CD_SAMPLE_SCAN_DEVICE ? d->n_device : d->n_network;
    for (size_t i = 0; i < n; i++)
        if (kind == CD_SAMPLE_SCAN_DEVICE ? !strcmp(d->device_name[i], name)
                                          : cd_network_alias_answers(d->network_name[i], name))
            return true;
    return false;
}

/* What is left up to place `end`. */
static const char *token(const cd_sample_scan *s, size_t end, char name[CD_SAMPLE_NAME]) {
    const size_t n = end - s->at < CD_SAMPLE_NAME ? end - s->at : CD_SAMPLE_NAME - 1;
    memcpy(name, s->text + s->at, n);
    name[n] = '\0';
    return name;
}

/* What is left is no such name: ESCHEMA with the nearest. */
static cdmpp_status sample_scan_unknown(const cd_sample_scan *s, cd_sample_scan_kind kind,
                                        cdmpp_err *err) {
    char name[CD_SAMPLE_NAME], buf[CD_SAMPLE_NAME], found[CD_SAMPLE_NAME],
        best[CD_SAMPLE_NAME] = "";
    size_t least = CD_DID_YOU_MEAN_MAX, dash = s->at;
    while (dash < s->end && s->text[dash] != '-') dash++;
    token(s, dash, found); /* unless a longer piece is nearer to some name */
    for (size_t end = s->at + 1; end <= s->end && end - s->at < CD_DID_YOU_MEAN_MAX; end++) {
        if (end < s->end && s->text[end] != '-') continue;
        token(s, end, name);
        const char *k;
        for (size_t i = 0; (k = known(s->d, kind, i, buf)) != NULL; i++) {
            const size_t d = cd_did_you_mean_distance(name, k);
            if (d >= least || d > strlen(name) / 3 + 1) continue;
            least = d;
            snprintf(found, sizeof found, "%s", name);
            snprintf(best, sizeof best, "%s", k);
        }
    }
    return CD_FAIL(err, ESCHEMA,
                   "character %zu: expected a %s of the data set, found '%.60s'%s%.60s%s",
                   s->at + 1, kind == CD_SAMPLE_SCAN_DEVICE ? "device" : "network", found,
                   best[0] ? ", did you mean '" : "", best, best[0] ? "'?" : "");
}

/* "-NAME": the longest name that a device has, or that a network answers to. Errors: EPARSE
 * and those of sample_scan_unknown. */
static cdmpp_status sample_scan_name(cd_sample_scan *s, cd_sample_scan_kind kind,
                                     char name[CD_SAMPLE_NAME], cdmpp_err *err) {
    const char *what = kind == CD_SAMPLE_SCAN_DEVICE ? "'-' and a device" : "'-' and a network";
    if (!sample_scan_word(s, "-")) return sample_scan_expected(s, what, err);
    if (s->at == s->end)
        return sample_scan_expected(s, kind == CD_SAMPLE_SCAN_DEVICE ? "a device" : "a network",
                                    err);
    for (size_t end = s->end; end > s->at; end--) { /* the longest first */
        if (end < s->end && s->text[end] != '-') continue;
        if (end - s->at >= CD_SAMPLE_NAME || !exists(s->d, kind, token(s, end, name))) continue;
        s->at = end;
        return CDMPP_OK;
    }
    return sample_scan_unknown(s, kind, err);
}

/* By_device:... and by_net:... */

/* One side: names, or everybody that the other side does not name. */
typedef struct {
    cd_texts name;
    bool given;
} side;

static cdmpp_status add(cd_arena *arena, side *to, const char *name, cdmpp_err *err) {
    const char **v = CD_NEWN(arena, const char *, to->name.n + 1);
    char *copy = cd_str_dup(arena, (cd_str){name, strlen(name)});
    if (!v || !copy) return CD_FAIL(err, ENOMEM, "names");
    if (to->name.n) memcpy(v, to->name.v, to->name.n * sizeof *v);
    v[to->name.n++] = copy;
    to->name.v = v;
    return CDMPP_OK;
}

static cdmpp_status read_side(cd_sample_scan *s, cd_sample_scan_kind kind, cd_arena *arena,
                              side *to, cdmpp_err *err) {
    cd_sample_scan all = *s;
    char name[CD_SAMPLE_NAME];
    to->given = true;
    if (sample_scan_word(&all, "-all") && all.at == all.end) return CDMPP_OK;
    do {
        CD_TRY(sample_scan_name(s, kind, name, err));
        CD_TRY(add(arena, to, name, err));
    } while (s->at < s->end);
    return CDMPP_OK;
}

static cdmpp_status read_sides(cd_sample_scan *s, cd_sample_scan_kind kind, cd_arena *arena,
                               side *train, side *test, cdmpp_err *err) {
    for (bool more = true; more;) {
        cd_sample_scan piece, start;
        more = sample_scan_cut(s, ',', &piece);
        start = piece;
        side *to = sample_scan_word(&piece, "train")  ? train
                   : sample_scan_word(&piece, "test") ? test
                                                      : NULL;
        if (!to) return sample_scan_expected(&start, "train-NAME... or test-NAME...", err);
        if (to->given)
            return sample_scan_expected(&start, to == train ? "'train' once" : "'test' once", err);
        CD_TRY(read_side(&piece, kind, arena, to, err));
    }
    if (!train->name.n && !test->name.n)
        return CD_FAIL(err, EPARSE,
                       "expected names on at least one side: '%.80s' leaves all on both", s->text);
    return CDMPP_OK;
}

cdmpp_status cd_sample_split(const cd_dataset *d, const char *text, cd_arena *arena,
                             cd_split_spec *spec, cdmpp_err *err) {
    cd_sample_scan s = {d, text, 0, strlen(text)};
    side train = {0}, test = {0};
    const bool device = sample_scan_word(&s, "by_device:");
    if (!device && !sample_scan_word(&s, "by_net:"))
        return sample_scan_expected(&s, "by_device: or by_net:", err);
    CD_TRY(read_sides(&s, device ? CD_SAMPLE_SCAN_DEVICE : CD_SAMPLE_SCAN_NETWORK, arena, &train,
                      &test, err));
    spec->kind = device ? CD_SPLIT_DEVICE : CD_SPLIT_NETWORK;
    spec->train_name = train.name;
    spec->test_name = test.name;
    return CDMPP_OK;
}

static const char modes[] = "cross, sampleK, randomK, list-ID-ID... or network-NAME-NAME...";

/* A task that programs of one kind of device have. */
typedef struct {
    double flop;
    const char *name;
    uint64_t rank; /* of random */
    uint32_t task;
} numbered;

typedef struct {
    const cd_dataset *d;
    numbered *list[2]; /* of CPUs and GPUs, by number */
    size_t n_list[2];
    uint8_t *has, *take; /* (n_device, n_task) */
    uint8_t *gpu;        /* (n_device) which list */
    uint8_t *named;      /* (n_device) a part of the text is its own */
} sampler;

/* ---- tasks and their numbers ---- */
static int by_number(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->flop != y->flop) return x->flop < y->flop ? -1 : 1;
    return strcmp(x->name, y->name);
}

static uint8_t *cell(const sampler *s, uint8_t *v, size_t device, size_t task) {
    return &v[device * s->d->n_task + task];
}

/* apart from the draws of the split, which may have the same seed */
static const uint64_t draw_stream = 0x73616d70;

/* Tasks of CPUs and GPUs are numbered apart, by the largest number of operations of any of their
 * programs, then by workload key. */
static void number_tasks(sampler *s, uint64_t seed, uint32_t *slot) {
    const cd_dataset *d = s->d;
    for (int gpu = 0; gpu < 2; gpu++) {
        numbered *list = s->list[gpu];
        size_t n = 0;
        memset(slot, 0xff, d->n_task * sizeof *slot);
        for (size_t i = 0; i < d->n; i++) {
            const uint32_t t = d->task[i];
            if ((d->is_gpu[i] != 0) != gpu) continue;
            *cell(s, s->has, d->device[i], t) = 1;
            s->gpu[d->device[i]] = (uint8_t)gpu;
            if (slot[t] == UINT32_MAX) {
                slot[t] = (uint32_t)n;
                list[n++] = (numbered){
                    d->flop[i], d->task_name[t],
                    cd_rng_at(seed ^ draw_stream, cd_stable_id_name(d->task_name[t])), t};
            } else if (d->flop[i] > list[slot[t]].flop) {
                list[slot[t]].flop = d->flop[i];
            }
        }
        s->n_list[gpu] = n;
        if (n) qsort(list, n, sizeof *list, by_number);
    }
}

/* ---- one mode on one device ---- */
static void take_first(sampler *s, uint32_t dev, size_t k) {
    const int gpu = s->gpu[dev];
    for (size_t i = 0; i < s->n_list[gpu] && k; i++) {
        if (!*cell(s, s->has, dev, s->list[gpu][i].task)) continue;
        *cell(s, s->take, dev, s->list[gpu][i].task) = 1;
        k--;
    }
}

/* The k of the device's tasks with the least rank. */
static void take_random(sampler *s, uint32_t dev, size_t k) {
    const numbered *list = s->list[s->gpu[dev]];
    const size_t n = s->n_list[s->gpu[dev]];
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        if (!*cell(s, s->has, dev, list[i].task)) continue;
        for (size_t j = 0; j < n && before < k; j++)
            before += *cell(s, s->has, dev, list[j].task) &&
                      (list[j].rank < list[i].rank || (list[j].rank == list[i].rank && j < i));
        if (before < k) *cell(s, s->take, dev, list[i].task) = 1;
    }
}

static void take_network(sampler *s, uint32_t dev, const char *name) {
    const cd_dataset *d = s->d;
    for (size_t k = 0; k < d->n_net_task; k++)
        if (cd_network_alias_answers(d->network_name[d->net_network[k]], name))
            *cell(s, s->take, dev, d->net_task[k]) = 1;
}

/* ---- text ---- */
static cdmpp_status number(cd_sample_scan *s, size_t least, size_t *out, cdmpp_err *err) {
    const size_t n = strspn(s->text + s->at, "0123456789");
    const bool fits = n > 0 && n <= 9 && s->at + n <= s->end;
    *out = fits ? (size_t)strtoul(s->text + s->at, NULL, 10) : 0;
    if (!fits || *out < least)
        return sample_scan_expected(
            s, least ? "a number from 1 to 999999999" : "the number of a task", err);
    s->at += n;
    return CDMPP_OK;
}

static cdmpp_status bad_mode(const cd_sample_scan *s, cdmpp_err *err) {
    static const char *const word[] = {"cross", "sample", "random", "list", "network"};
    char text[32] = "", what[120];
    size_t n = strspn(s->text + s->at, "abcdefghijklmnopqrstuvwxyz_");
    if (n > s->end - s->at) n = s->end - s->at;
    memcpy(text, s->text + s->at, n < sizeof text ? n : sizeof text - 1);
    const char *near =
        text[0] ? cd_did_you_mean_nearest(text, word, sizeof word / sizeof *word) : NULL;
    if (!near) return sample_scan_expected(s, modes, err);
    snprintf(what, sizeof what, "%s (did you mean '%s'?)", modes, near);
    return sample_scan_expected(s, what, err);
}

/* A number that only some of the devices have counts for those. */
static cdmpp_status read_list(sampler *s, cd_sample_scan *t, const uint8_t *dev, cdmpp_err *err) {
    do {
        size_t id;
        const cd_sample_scan start = *t;
        if (!sample_scan_word(t, "-"))
            return sample_scan_expected(t, "'-' and the number of a task", err);
        CD_TRY(number(t, 0, &id, err));
        if (t->at < t->end && t->text[t->at] != '-') return sample_scan_expected(t, "'-'", err);
        bool known = false;
        for (uint32_t v = 0; v < s->d->n_device; v++) {
            if (!dev[v] || id >= s->n_list[s->gpu[v]]) continue;
            *cell(s, s->take, v, s->list[s->gpu[v]][id].task) = 1;
            known = true;
        }
        if (!known)
            return CD_FAIL(err, ESCHEMA, "character %zu: no device has a task %zu", start.at + 2,
                           id);
    } while (t->at < t->end);
    return CDMPP_OK;
}

static cdmpp_status read_networks(sampler *s, cd_sample_scan *t, const uint8_t *dev,
                                  cdmpp_err *err) {
    do {
        char name[CD_SAMPLE_NAME];
        CD_TRY(sample_scan_name(t, CD_SAMPLE_SCAN_NETWORK, name, err));
        for (uint32_t v = 0; v < s->d->n_device; v++)
            if (dev[v]) take_network(s, v, name);
    } while (t->at < t->end);
    return CDMPP_OK;
}

/* `dev` (n_device): the devices it is about. */
static cdmpp_status read_mode(sampler *s, cd_sample_scan *t, const uint8_t *dev, cdmpp_err *err) {
    size_t k = SIZE_MAX;
    const cd_sample_scan start = *t;
    bool random = false;
    if (sample_scan_word(t, "list")) return read_list(s, t, dev, err);
    if (sample_scan_word(t, "network")) return read_networks(s, t, dev, err);
    if (!sample_scan_word(t, "cross")) {
        random = sample_scan_word(t, "random");
        if (!random && !sample_scan_word(t, "sample")) return bad_mode(&start, err);
        CD_TRY(number(t, 1, &k, err));
    }
    if (t->at < t->end) return sample_scan_expected(t, "'+', ',' or the end", err);
    for (uint32_t v = 0; v < s->d->n_device; v++) {
        if (!dev[v]) continue;
        if (random) take_random(s, v, k);
        else take_first(s, v, k);
    }
    return CDMPP_OK;
}

/* The device in front of ':', which is passed over; UINT32_MAX when there is none. */
static cdmpp_status read_device(sampler *s, cd_sample_scan *part, uint32_t *out, cdmpp_err *err) {
    cd_sample_scan rest = *part, name;
    *out = UINT32_MAX;
    if (!sample_scan_cut(&rest, ':', &name)) return CDMPP_OK;
    for (uint32_t v = 0; v < s->d->n_device; v++)
        if (strlen(s->d->device_name[v]) == name.end - name.at &&
            !memcmp(s->d->device_name[v], name.text + name.at, name.end - name.at))
            *out = v;
    if (*out == UINT32_MAX) return sample_scan_unknown(&name, CD_SAMPLE_SCAN_DEVICE, err);
    *part = rest;
    return CDMPP_OK;
}

static cdmpp_status read_part(sampler *s, cd_sample_scan *part, uint8_t *dev, cdmpp_err *err) {
    uint32_t own;
    CD_TRY(read_device(s, part, &own, err));
    for (size_t v = 0; v < s->d->n_device; v++)
        dev[v] = own == UINT32_MAX ? !s->named[v] : v == own;
    for (bool more = true; more;) {
        cd_sample_scan mode;
        more = sample_scan_cut(part, '+', &mode);
        CD_TRY(read_mode(s, &mode, dev, err));
    }
    return CDMPP_OK;
}

/* Which devices have a part of their own: before any part without a device is read. */
static cdmpp_status name_devices(sampler *s, cd_sample_scan text, cdmpp_err *err) {
    bool nobody = false;
    for (bool more = true; more;) {
        cd_sample_scan part, start;
        uint32_t v;
        more = sample_scan_cut(&text, ',', &part);
        start = part;
        CD_TRY(read_device(s, &part, &v, err));
        if (v == UINT32_MAX ? nobody : s->named[v])
            return sample_scan_expected(
                &start, v == UINT32_MAX ? "one part without a device" : "one part of a device",
                err);
        if (v == UINT32_MAX) nobody = true;
        else s->named[v] = 1;
    }
    return CDMPP_OK;
}

static cdmpp_status mark(sampler *s, const char *text, uint8_t *dev, uint8_t *asked,
                         cdmpp_err *err) {
    cd_sample_scan all = {s->d, text, 0, strlen(text)};
    const char *by = strstr(text, ".by_");
    if (by)
        return CD_FAIL(err, EPARSE,
                       "character %zu: the split is a key of its own: split.mode: '%.80s'",
                       (size_t)(by - text) + 1, by + 1);
    CD_TRY(name_devices(s, all, err));
    for (bool more = true; more;) {
        cd_sample_scan part;
        more = sample_scan_cut(&all, ',', &part);
        CD_TRY(read_part(s, &part, dev, err));
    }
    for (size_t i = 0; i < s->d->n; i++)
        asked[i] = *cell(s, s->take, s->d->device[i], s->d->task[i]);
    return CDMPP_OK;
}

/* cells: one for each device and task. */
cdmpp_status cd_sample_mark(const cd_dataset *d, const char *text, uint64_t seed, uint8_t *asked,
                            cdmpp_err *err) {
    const size_t cells = d->n_device * d->n_task + 1;
    cd_arena a = {0};
    sampler s = {.d = d, .has = CD_NEWN(&a, uint8_t, cells), .take = CD_NEWN(&a, uint8_t, cells)};
    uint8_t *dev = CD_NEWN(&a, uint8_t, d->n_device);
    uint32_t *slot = CD_NEWN(&a, uint32_t, d->n_task);
    s.gpu = CD_NEWN(&a, uint8_t, d->n_device);
    s.named = CD_NEWN(&a, uint8_t, d->n_device);
    for (int k = 0; k < 2; k++) s.list[k] = CD_NEWN(&a, numbered, d->n_task);
    cdmpp_status st = a.oom ? CD_FAIL(err, ENOMEM, "%zu tasks", d->n_task) : CDMPP_OK;
    if (!st) number_tasks(&s, seed, slot);
    if (!st) st = mark(&s, text, dev, asked, err);
    cd_arena_free(&a);
    return st;
}
